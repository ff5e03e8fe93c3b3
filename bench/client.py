"""A small HTTP/1.1 + SSE client on asyncio protocols (stdlib only).

General-purpose clients cost more per request than a fast server does; this one costs some tens of
microseconds, so it can measure a server that answers thousands of requests per second on the
same two cores.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from urllib.parse import urlsplit


class HttpError(Exception):
    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"HTTP {status}: {body[:400]!r}")
        self.status = status
        self.body = body


class _Connection(asyncio.Protocol):
    """One connection: one request at a time; the body goes to a sink in pieces."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.buffer = bytearray()
        self.done: asyncio.Future | None = None
        self.head: asyncio.Future | None = None
        self.sink: Callable[[bytes], None] | None = None
        self.closed = False
        self._reset()

    def _reset(self) -> None:
        self.state = "head"
        self.status = 0
        self.left = 0
        self.mode = "length"
        self.reuse = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self.done is not None and not self.done.done():
            if self.state == "body" and self.mode == "eof":
                self.done.set_result(self.status)
            else:
                self.done.set_exception(
                    ConnectionError(f"connection lost in state {self.state}: {exc}")
                )
        if self.head is not None and not self.head.done():
            self.head.set_exception(ConnectionError(f"connection lost before the reply: {exc}"))

    def start(self, payload: bytes, sink: Callable[[bytes], None]) -> asyncio.Future:
        loop = asyncio.get_running_loop()
        self._reset()
        self.sink = sink
        self.done = loop.create_future()
        self.head = loop.create_future()
        # A stream may end while no task waits: mark failures as seen; awaiting still raises them.
        for future in (self.head, self.done):
            future.add_done_callback(lambda f: f.cancelled() or f.exception())
        self.transport.write(payload)
        return self.done

    def data_received(self, data: bytes) -> None:
        buffer = self.buffer
        buffer += data
        while buffer or self.state == "end":
            if self.state == "head":
                end = buffer.find(b"\r\n\r\n")
                if end < 0:
                    return
                self._parse_head(bytes(buffer[:end]))
                del buffer[: end + 4]
            elif self.state == "body" and self.mode == "length":
                piece = bytes(buffer[: self.left])
                del buffer[: self.left]
                self.left -= len(piece)
                self.sink(piece)
                if not self.left:
                    self.state = "end"
            elif self.state == "body" and self.mode == "eof":
                self.sink(bytes(buffer))
                buffer.clear()
            elif self.state == "body" and not self._parse_chunk():
                return
            if self.state == "end":
                self.state = "idle"
                if self.done is not None and not self.done.done():
                    self.done.set_result(self.status)
                return

    def _parse_head(self, head: bytes) -> None:
        lines = head.split(b"\r\n")
        self.status = int(lines[0].split(b" ", 2)[1])
        self.mode, self.left = "eof", 0
        for line in lines[1:]:
            name, _, value = line.partition(b":")
            name = name.lower()
            if name == b"content-length":
                self.mode, self.left = "length", int(value)
            elif name == b"transfer-encoding" and b"chunked" in value.lower():
                self.mode, self.left = "chunked", -1
            elif name == b"connection" and b"close" in value.lower():
                self.reuse = False
        if self.status in (204, 304):
            self.mode, self.left = "length", 0
        if self.mode == "eof":
            self.reuse = False
        self.state = "end" if self.mode == "length" and not self.left else "body"
        if self.head is not None and not self.head.done():
            self.head.set_result(self.status)

    def _parse_chunk(self) -> bool:
        buffer = self.buffer
        if self.left < 0:
            end = buffer.find(b"\r\n")
            if end < 0:
                return False
            size = int(bytes(buffer[:end]).split(b";")[0], 16)
            if size == 0:
                if len(buffer) < end + 4:
                    return False
                del buffer[: end + 4]
                self.state = "end"
                return True
            del buffer[: end + 2]
            self.left = size
        take = min(self.left, len(buffer))
        if take:
            self.sink(bytes(buffer[:take]))
            del buffer[:take]
            self.left -= take
        if self.left == 0:
            if len(buffer) < 2:
                return False
            del buffer[:2]
            self.left = -1
        return bool(buffer)


class Client:
    """Sends keep-alive requests to one base URL."""

    def __init__(self, base: str, headers: dict[str, str] | None = None) -> None:
        parts = urlsplit(base)
        self.host, self.port = parts.hostname or "127.0.0.1", parts.port or 80
        extra = "".join(f"{key}: {value}\r\n" for key, value in (headers or {}).items())
        self.common = f"Host: {self.host}:{self.port}\r\nAccept: */*\r\n{extra}".encode()
        self.idle: list[_Connection] = []
        self.open: set[_Connection] = set()

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(_Connection, self.host, self.port)
        self.open.add(connection)
        return connection

    def payload(self, method: str, path: str, body: object = None) -> bytes:
        data = b"" if body is None else json.dumps(body).encode()
        kind = b"" if body is None else b"Content-Type: application/json\r\n"
        length = b"" if body is None and method == "GET" else b"Content-Length: %d\r\n" % len(data)
        return b"%s %s HTTP/1.1\r\n%s%s%s\r\n%s" % (
            method.encode(),
            path.encode(),
            self.common,
            kind,
            length,
            data,
        )

    async def raw(self, payload: bytes, timeout: float = 60) -> tuple[int, bytes]:
        while self.idle:
            connection = self.idle.pop()
            if not connection.closed:
                break
            self.open.discard(connection)
        else:
            connection = await self._connect()
        body = bytearray()
        status = await asyncio.wait_for(connection.start(payload, body.extend), timeout)
        if connection.reuse and not connection.closed:
            self.idle.append(connection)
        else:
            self.open.discard(connection)
            connection.transport.close()
        return status, bytes(body)

    async def call(
        self, method: str, path: str, body: object = None, timeout: float = 60
    ) -> object:
        status, data = await self.raw(self.payload(method, path, body), timeout)
        if status >= 300:
            raise HttpError(status, data)
        return json.loads(data) if data else None

    async def sse(self, path: str, on_event: Callable[[bytes], None]) -> Stream:
        stream = Stream(await self._connect(), on_event)
        stream.connection.start(self.payload("GET", path), stream.feed)
        return stream

    def close(self) -> None:
        for connection in self.open:
            if connection.transport is not None:
                connection.transport.close()
        self.open.clear()
        self.idle.clear()


class Stream:
    """One server-sent-event stream; `on_event` gets the bytes after `data:` of each event."""

    def __init__(self, connection: _Connection, on_event: Callable[[bytes], None]) -> None:
        self.connection = connection
        self.on_event = on_event
        self.rest = b""
        self.events = 0
        self.bytes = 0
        self.first = self.last = 0

    @property
    def closed(self) -> bool:
        return self.connection.closed or self.connection.state in ("end", "idle")

    async def opened(self, timeout: float = 10) -> int:
        return await asyncio.wait_for(asyncio.shield(self.connection.head), timeout)

    def feed(self, data: bytes) -> None:
        self.bytes += len(data)
        parts = (self.rest + data).split(b"\n\n")
        self.rest = parts.pop()
        now = time.monotonic_ns()
        for part in parts:
            index = part.find(b"data:")
            if index < 0:
                continue
            if not self.events:
                self.first = now
            self.events += 1
            self.last = now
            self.on_event(part[index + 5 :].lstrip())

    def close(self) -> None:
        if self.connection.transport is not None:
            self.connection.transport.close()
