"""Collects the output of a command in bounded memory.

A short output is held completely. A longer one is streamed to a Managed Tool Output File, up to a
maximum size, and only its two ends are held to be shown. While the command runs, its latest output
is reported at growing intervals.

Invariant: no more than about twice BASH_OUTPUT_BYTES_MAX is held at any time.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from perdure.core.limits import (
    BASH_OUTPUT_BYTES_MAX,
    BASH_PROGRESS_BYTES_MAX,
    BASH_PROGRESS_SECONDS_MAX,
    BASH_PROGRESS_SECONDS_MIN,
    BASH_SAMPLE_BYTES,
)
from perdure.core.request import tool_output
from perdure.core.request.tool_output import OutputLimits
from perdure.tools.api.output_store import Spool

_END_BYTES: Final = BASH_OUTPUT_BYTES_MAX // 2
_TEXT_CONTROLS: Final = frozenset("\t\n\v\f\r\b\x1b")
_BINARY_CHARS_MIN: Final = 64


class CommandOutput:
    """Implements ports.OutputSink. Without a spool, the middle of a long output is lost."""

    def __init__(self, spool: Spool | None, report: Callable[[str], None]) -> None:
        self.bytes_total = 0
        self._lines = 0
        self._spool = spool
        self._report = report
        self._head = bytearray()
        """The whole output, until it is too long."""
        self._tail = bytearray()
        self._is_long = False
        self._interval = BASH_PROGRESS_SECONDS_MIN
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def is_long(self) -> bool:
        """Whether only the two ends are held."""
        return self._is_long

    @property
    def is_binary(self) -> bool:
        return _is_binary(bytes(self._head[:BASH_SAMPLE_BYTES]))

    @property
    def path(self) -> str | None:
        """The file that holds the output, if any."""
        return None if self._spool is None else self._spool.path

    async def write(self, data: bytes) -> None:
        self.bytes_total += len(data)
        self._lines += data.count(b"\n")
        self._report_soon()
        if self._is_long:
            await self._keep(data)
            self._extend_tail(data)
            return
        self._head += data
        if len(self._head) > BASH_OUTPUT_BYTES_MAX:
            self._is_long = True
            await self._keep(bytes(self._head))
            self._extend_tail(self._head[_END_BYTES:])
            del self._head[_END_BYTES:]

    def text(self) -> str:
        """The held output as readable text."""
        return readable(bytes(self._head + self._tail))

    def shorten(self, limits: OutputLimits) -> str:
        """Both ends of a long output, within `limits`, and the path of the whole output."""
        fitting = OutputLimits(
            lines_max=limits.lines_max, bytes_max=min(limits.bytes_max, _END_BYTES)
        )
        return tool_output.truncate_around(
            self.text(), fitting, marker=f"[Output cut here: {self._describe_size()}]"
        )

    async def fit(self, limits: OutputLimits) -> str:
        """The output within `limits`. One that does not fit is kept whole in the file."""
        if not self._is_long:
            text = self.text()
            if tool_output.fits(text, limits):
                return text
            await self._keep(bytes(self._head))
        return self.shorten(limits)

    async def describe_binary(self) -> str:
        """A note in place of binary output; the bytes are kept in the file."""
        if not self._is_long:
            await self._keep(bytes(self._head))
        return f"[Binary output, not shown: {self._describe_size()}]"

    def report_now(self) -> None:
        """Report the latest output now, and nothing afterwards."""
        self.close()
        if self.bytes_total:
            self._report(self._latest_output())

    def close(self) -> None:
        """Stop reporting."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    async def _keep(self, data: bytes) -> None:
        if self._spool is not None:
            await self._spool.write(data)

    def _extend_tail(self, data: bytes | bytearray) -> None:
        self._tail += data
        # Cut rarely, so that each byte is moved only a few times.
        if len(self._tail) > 2 * _END_BYTES:
            del self._tail[:-_END_BYTES]

    def _describe_size(self) -> str:
        size = f"{self._lines + 1} lines, {self.bytes_total} bytes in all."
        kept = 0 if self._spool is None else self._spool.kept
        if not kept:
            return f"{size} The rest was not kept."
        if kept < self.bytes_total:
            return f"{size} The first {kept} bytes are kept in {self.path}"
        return f"{size} Full output: {self.path}"

    def _report_soon(self) -> None:
        if self._timer is None and not self._closed:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._interval, self._report_progress)

    def _report_progress(self) -> None:
        self._timer = None
        self._interval = min(self._interval * 2, BASH_PROGRESS_SECONDS_MAX)
        self._report(self._latest_output())

    def _latest_output(self) -> str:
        end = self._head[-BASH_PROGRESS_BYTES_MAX:] + self._tail[-BASH_PROGRESS_BYTES_MAX:]
        return readable(bytes(end[-BASH_PROGRESS_BYTES_MAX:]))


def readable(data: bytes) -> str:
    """Decode as text; a NUL, which many readers cannot handle, becomes its symbol."""
    return data.decode(errors="replace").replace("\0", "\u2400")


def _is_binary(sample: bytes) -> bool:
    """Whether more than a third of it is not text. A few odd bytes are shown as they are."""
    text = sample.decode(errors="replace")
    odd = sum(char == "\ufffd" or (char < " " and char not in _TEXT_CONTROLS) for char in text)
    return len(text) >= _BINARY_CHARS_MIN and odd * 3 > len(text)
