"""Lines over two file descriptors, read and written by threads.

Threads, because a descriptor may be a pipe, a socket, a terminal or a file, and because making it
non-blocking would do so for every other program that shares it. Both directions are bounded: what
is not handled yet is not read, and a writer waits for a client that does not read.
"""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Final

from perdure.acp.wire.line_splitter import LineSplitter, LongLine
from perdure.core.limits import ACP_LINE_BYTES_MAX, ACP_UNSENT_BYTES_MAX

_READ_BYTES: Final = 64 * 1024
_CHUNKS_WAITING_MAX: Final = 16
_FLUSH_SECONDS_MAX: Final = 2.0


class StdioLines:
    """The lines of one client. Made inside the event loop that reads and writes them."""

    def __init__(self, source: int, target: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._source, self._target = source, target
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self._may_read = threading.Semaphore(_CHUNKS_WAITING_MAX)
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._changed = threading.Condition()
        self._has_room = asyncio.Event()
        self._is_lost = False
        for work in (self._read, self._write):
            threading.Thread(target=work, name=f"acp {work.__name__}", daemon=True).start()

    async def lines(self) -> AsyncGenerator[bytes | LongLine]:
        """Lines until the client closes its end, in either direction."""
        splitter = LineSplitter(ACP_LINE_BYTES_MAX)
        while chunk := await self._chunks.get():
            self._may_read.release()
            for line in splitter.feed(chunk):
                yield line
        for line in splitter.finish():
            yield line

    async def write(self, line: bytes) -> None:
        """Send a line; waits while the client reads nothing. Without a client: does nothing."""
        while self._unsent_bytes > ACP_UNSENT_BYTES_MAX and not self._is_lost:
            self._has_room.clear()
            await self._has_room.wait()
        if self._is_lost:
            return
        with self._changed:
            self._unsent += (line, b"\n")
            self._unsent_bytes += len(line) + 1
            self._changed.notify()

    async def flush(self) -> None:
        """Wait until everything is sent; not for long if the client does not read."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_SECONDS_MAX):
                while self._unsent_bytes and not self._is_lost:
                    self._has_room.clear()
                    await self._has_room.wait()

    # ---- in threads -----------------------------------------------------------------------------

    def _read(self) -> None:
        data = b"begun"
        while data:
            self._may_read.acquire()
            try:
                data = os.read(self._source, _READ_BYTES)
            except OSError:
                data = b""
            if not self._tell(data):
                return

    def _write(self) -> None:
        while True:
            with self._changed:
                while not self._unsent:
                    self._changed.wait()
                data = b"".join(self._unsent)
                self._unsent.clear()
            if not self._send(data):
                self._loop_calls(self._lose)
                return
            self._loop_calls(self._sent, len(data))

    def _send(self, data: bytes) -> bool:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._target, rest) :]
        except OSError:
            return False
        return True

    def _tell(self, data: bytes) -> bool:
        return self._loop_calls(self._chunks.put_nowait, data)

    def _loop_calls(self, call: Callable[..., None], *arguments: object) -> bool:
        """Have the event loop call this; False if it has ended."""
        try:
            self._loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:
            return False
        return True

    # ---- in the event loop ----------------------------------------------------------------------

    def _sent(self, count: int) -> None:
        self._unsent_bytes -= count
        self._has_room.set()

    def _lose(self) -> None:
        """The client no longer reads; what it says after that has no answer."""
        self._is_lost = True
        self._has_room.set()
        self._chunks.put_nowait(b"")
