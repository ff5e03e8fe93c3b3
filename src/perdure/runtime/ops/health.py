"""Health report of a running instance.

Reading it changes nothing and is cheap enough for a probe every second. A database that cannot be
read is reported as a problem; the report itself does not fail.
"""

import os
from collections.abc import Callable, Mapping
from typing import Final

from perdure.ports import Database, DatabaseError, Transaction
from perdure.runtime.coordination.coordinator import RunCoordinator
from perdure.runtime.ops.metrics import Metrics
from perdure.schema import redaction
from perdure.schema.health import DatabaseHealth, HealthDetail, ProcessHealth
from perdure.version import __version__

_OPEN_FILES: Final = "/proc/self/fd"
_MEMORY: Final = "/proc/self/statm"


class HealthReport:
    def __init__(
        self,
        database: Database,
        path: str,
        coordinator: RunCoordinator,
        metrics: Metrics,
        *,
        silent: Callable[[], Mapping[str, str]],
        started: int,
    ) -> None:
        self._database = database
        self._path = path
        self._coordinator = coordinator
        self.metrics = metrics
        self._silent = silent
        self._started = started

    async def is_healthy(self) -> bool:
        """Whether prompts can be stored."""
        return not await self._find_problems()

    async def detail(self) -> HealthDetail:
        problems = await self._find_problems()
        return HealthDetail(
            healthy=not problems,
            version=__version__,
            problems=problems,
            process=ProcessHealth(
                pid=os.getpid(),
                started=self._started,
                resident_bytes=_resident_bytes(),
                open_files=_open_files(),
            ),
            database=DatabaseHealth(
                path=self._path, bytes=_size(self._path), log_bytes=_size(f"{self._path}-wal")
            ),
            silent=tuple(self._silent().values()),
            running=len(self._coordinator.active),
            durations=self.metrics.durations(),
            counts=self.metrics.counts(),
            baseline_chars=self.metrics.baseline_chars,
        )

    async def _find_problems(self) -> tuple[str, ...]:
        async def look(tx: Transaction) -> None:
            await tx.fetch("SELECT 1 FROM session LIMIT 1")

        try:
            await self._database.check_file()
            await self._database.read(look)
        except DatabaseError as error:
            return (redaction.redact_message(str(error)),)
        return () if os.access(self._path, os.W_OK) else (f"{self._path} cannot be written",)


def _resident_bytes() -> int:
    """0 where the system has no /proc."""
    try:
        with open(_MEMORY, encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _open_files() -> int:
    """0 where the system has no /proc."""
    try:
        return len(os.listdir(_OPEN_FILES))
    except OSError:
        return 0


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
