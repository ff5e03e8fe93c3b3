"""Real processes that a test has a hand in."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from perdure.host.process import table
from perdure.host.process.runner import LocalProcesses
from perdure.ports import ProcessResult


class WatchedProcesses:
    """Implements ports.ProcessRunner. What a test has in mind is a `starting` of its own."""

    def __init__(self) -> None:
        self._real = LocalProcesses()

    async def run(
        self,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float,
        output_bytes_max: int,
        separate_errors: bool = False,
    ) -> ProcessResult:
        return await self._real.run(
            arguments,
            directory=directory,
            environment=environment,
            timeout_seconds=await self.starting(arguments, timeout_seconds),
            output_bytes_max=output_bytes_max,
            separate_errors=separate_errors,
        )

    async def starting(self, arguments: Sequence[str], seconds: float) -> float:
        """Before each one; how many seconds it is given instead of `seconds`."""
        return seconds


def has_process_in(directory: Path) -> bool:
    """Whether a process runs there; one in a sandbox does not know its own number."""
    for row in table.list_rows():
        try:
            if os.readlink(f"/proc/{row.pid}/cwd") == str(directory):
                return True
        except OSError:
            continue
    return False
