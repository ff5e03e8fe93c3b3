"""An HTTP client that sends exactly the bytes it is given, and a listener for any ASGI app.

Unlike tests.support.api it keeps a connection open, so a test can pipeline, stall or half-close.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from perdure.host.clock import SystemClock
from perdure.schema import codec
from perdure.schema.codec import JsonValue
from perdure.server.http.asgi import Application
from perdure.server.http.server import HttpServer
from perdure.server.settings import HttpLimits

PATIENCE_SECONDS: Final = 10


@asynccontextmanager
async def listening(
    app: Application, limits: HttpLimits | None = None
) -> AsyncGenerator[tuple[HttpServer, int]]:
    """A server of `app` on a free port, and the port."""
    server = HttpServer(app, clock=SystemClock(), limits=limits or HttpLimits())
    port = await server.start("127.0.0.1", 0)
    try:
        yield server, port
    finally:
        await server.stop()


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> JsonValue:
        return codec.decode_any(self.body)


class RawClient:
    """One TCP connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self) -> Answer:
        """A response's head, with no body."""
        raw = await self.reader.readuntil(b"\r\n\r\n")
        status_line, *lines = raw.decode("latin-1").rstrip().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        return Answer(int(status_line.split()[1]), headers, b"")

    async def answer(self, *, head: bool = False) -> Answer:
        """A whole response."""
        answer = await self.head()
        if head:
            return answer
        if answer.headers.get("transfer-encoding") == "chunked":
            chunks: list[bytes] = []
            while chunk := await self.chunk():
                chunks.append(chunk)
            return Answer(answer.status, answer.headers, b"".join(chunks))
        length = int(answer.headers.get("content-length", "0"))
        return Answer(answer.status, answer.headers, await self.reader.readexactly(length))

    async def chunk(self) -> bytes:
        """The next chunk of a streamed body; empty at its end."""
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        data = await self.reader.readexactly(size + 2)
        return data[:-2]

    async def rest(self) -> bytes:
        """Everything until the server closes."""
        return await self.reader.read()


@asynccontextmanager
async def connected(port: int) -> AsyncGenerator[RawClient]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            yield RawClient(reader, writer)
        finally:
            writer.transport.abort()


async def call(
    port: int,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """One request on a connection of its own."""
    given = {"host": "localhost"} | dict(headers or {})
    if body is not None:
        given = {"content-type": "application/json", "content-length": str(len(body))} | given
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    async with connected(port) as client:
        await client.say("\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b""))
        return await client.answer(head=method == "HEAD")
