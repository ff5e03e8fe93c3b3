"""A real HTTP server on the loopback address that answers with the bytes a test gives it."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Loopback:
    port: int = 0
    connections: int = 0
    requests: list[Received] = field(default_factory=list[Received])
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client has closed a connection."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


Answer = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]
"""Writes a response; closing the writer ends the connection."""


def replying_late(make: Callable[[], bytes]) -> Answer:
    """As `replying`, with bytes that take a while to make and are made when they are asked for."""

    async def answer(received: Received, writer: asyncio.StreamWriter) -> None:
        await replying(make())(received, writer)

    return answer


def replying(*pieces: bytes) -> Answer:
    """The same bytes for every request, each piece in a write of its own."""

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    return answer


def response(body: bytes, *, status: str = "200 OK", headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


@asynccontextmanager
async def serving(answer: Answer, *, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Loopback]:
    """Answer requests, one after the other on each connection."""
    loopback = Loopback()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loopback.connections += 1
        try:
            while not writer.is_closing() and (request := await _read(reader)) is not None:
                loopback.requests.append(request)
                await answer(request, writer)
        finally:
            loopback.closed.set()

    async with listening(connected, tls=tls) as loopback.port:
        yield loopback


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(handler: Handler, *, tls: ssl.SSLContext | None = None) -> AsyncGenerator[int]:
    """Serve `handler` on a port; when this is left no connection of it is open."""
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await handler(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            # Cancelled only when the test is over.
            pass
        finally:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode().rstrip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method=method, target=target, headers=headers, body=body)
