"""A real socket between a client and its server, which can be cut, limited and led elsewhere."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

_CHUNK: Final = 4096


class Gate:
    def __init__(self) -> None:
        self.upstream: int | None = None
        """The port to lead to; None turns callers away."""
        self.bytes_max: int | None = None
        """Cut a connection after so many bytes of the answer."""
        self.connections = 0
        self.visited = asyncio.Event()
        self._open: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Every connection ends now, without a farewell."""
        for writer in self._open:
            writer.transport.abort()

    async def pass_through(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        self.visited.set()
        self._open.add(writer)
        try:
            if self.upstream is None:
                return
            there = await asyncio.open_connection("127.0.0.1", self.upstream)
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(reader, there[1], None))
                group.create_task(_copy(there[0], writer, self.bytes_max))
        except* OSError:
            pass
        finally:
            self._open.discard(writer)
            writer.transport.abort()


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, bytes_max: int | None
) -> None:
    left = bytes_max
    try:
        while chunk := await reader.read(_CHUNK):
            piece = chunk if left is None else chunk[:left]
            writer.write(piece)
            await writer.drain()
            if left is not None:
                left -= len(piece)
                if left == 0:
                    raise ConnectionAbortedError
    finally:
        writer.close()


@asynccontextmanager
async def gate() -> AsyncGenerator[tuple[Gate, str]]:
    opened = Gate()
    server = await asyncio.start_server(opened.pass_through, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield opened, f"http://127.0.0.1:{port}"
    finally:
        server.close()
        opened.cut()
