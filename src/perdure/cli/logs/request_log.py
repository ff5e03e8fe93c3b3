"""The request log of `perdure serve`: a line for each answer, collected and written together.

A write for each line would cost more than many answers do. A path is written without its query,
which may hold a credential, and without characters that a terminal obeys, so nothing has to be
removed from a line.
"""

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Final

from perdure.cli import terminal
from perdure.core.text.visible import make_visible
from perdure.host.clock import SystemClock
from perdure.ports import Clock

_WAIT_SECONDS: Final = 0.1
_LINES_MAX: Final = 256
_PATH_BYTES_MAX: Final = 500
_FAILED: Final = 500
_PROBES: Final = frozenset({b"/api/health", b"/api/health/ready", b"/metrics"})

Write = Callable[[str], object]


class RequestLog:
    """Takes the method, path, status and duration of each answer; `flush` writes what waits.

    At `debug` every answer has a line, at `info` every one but those to probes that succeeded, and
    at other levels those with a status of 500 or above.
    """

    def __init__(
        self, *, form: str, level: str, write: Write | None = None, clock: Clock | None = None
    ) -> None:
        self._format = _as_json if form == "json" else _as_text
        self._skips_probes = level != "debug"
        self._only_failed = level not in {"debug", "info"}
        self._write = write or _write_to_stderr
        self._clock = clock or SystemClock()
        self._lines: list[str] = []

    def __call__(self, method: str, path: bytes, status: int, seconds: float) -> None:
        if status < _FAILED and (self._only_failed or (self._skips_probes and path in _PROBES)):
            return
        if not self._lines:
            asyncio.get_running_loop().call_later(_WAIT_SECONDS, self.flush)
        shown = make_visible(path[:_PATH_BYTES_MAX].decode("ascii", "backslashreplace"))
        shown = shown.replace("\n", "\\n")
        now = self._clock.now_millis()
        self._lines.append(self._format(now, f"{method} {shown}", status, seconds * 1_000))
        if len(self._lines) >= _LINES_MAX:
            self.flush()

    def flush(self) -> None:
        if self._lines:
            text = "".join(self._lines)
            self._lines.clear()
            self._write(text)


def _as_text(now: int, request: str, status: int, millis: float) -> str:
    date, level = _local_time(now // 1_000), _level(status).upper()
    return f"{date},{now % 1_000:03d} {level} {request} {status} {millis:.1f} ms\n"


def _as_json(now: int, request: str, status: int, millis: float) -> str:
    method, _, path = request.partition(" ")
    line = {
        "time": f"{_utc_time(now // 1_000)}.{now % 1_000:03d}Z",
        "level": _level(status),
        "logger": "perdure.request",
        "message": f"{request} {status}",
        "method": method,
        "path": path,
        "status": status,
        "milliseconds": round(millis, 1),
    }
    return f"{json.dumps(line)}\n"


def _level(status: int) -> str:
    return "info" if status < _FAILED else "warning"


@lru_cache(maxsize=1)
def _local_time(seconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


@lru_cache(maxsize=1)
def _utc_time(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def _write_to_stderr(text: str) -> None:
    # Without a reader of the log the server goes on, as the logging module does.
    with suppress(OSError, ValueError):
        terminal.print_note(text)
