"""JSON lines over the input and output of this process.

Standard output belongs to the protocol: whatever else prints there goes to standard error. Reading
and writing wait in threads, because either may be a pipe, a file or a terminal.
"""

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import IO, Final

from perdure.core import limits

_END: Final = b""


class Lines:
    """Owns standard input and output."""

    def __init__(self) -> None:
        self._input = os.fdopen(os.dup(0), "rb")
        self._output = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)
        self._writing = asyncio.Lock()

    async def read(self) -> AsyncGenerator[bytes | None]:
        """The lines until the input ends; None for one that is too long, which is skipped."""
        received: asyncio.Queue[bytes | None] = asyncio.Queue(limits.MCP_SERVER_CALLS_MAX)
        loop = asyncio.get_running_loop()
        reader = threading.Thread(
            target=_read, args=(self._input, received, loop), name="input", daemon=True
        )
        reader.start()
        while (line := await received.get()) != _END:
            yield line

    async def write(self, line: bytes) -> None:
        """Raises BrokenPipeError when the client is gone."""
        async with self._writing:
            await asyncio.to_thread(_write, self._output, line + b"\n")


def _read(
    source: IO[bytes],
    received: "asyncio.Queue[bytes | None]",
    loop: asyncio.AbstractEventLoop,
) -> None:
    def put(line: bytes | None) -> None:
        asyncio.run_coroutine_threadsafe(received.put(line), loop).result()

    most, skips = limits.MCP_MESSAGE_BYTES_MAX, False
    # The loop is closed when the program ends.
    with suppress(RuntimeError, concurrent.futures.CancelledError):
        while piece := source.readline(most):
            ends = piece.endswith(b"\n")
            if skips:
                skips = not ends
                continue
            skips = not ends and len(piece) >= most
            put(None if skips else piece)
        put(_END)


def _write(output: IO[bytes], line: bytes) -> None:
    view = memoryview(line)
    while view:
        view = view[output.write(view) :]
