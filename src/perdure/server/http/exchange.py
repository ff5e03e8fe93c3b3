"""One request and its response on a connection, with the `receive` and `send` of ASGI.

The body of the request is buffered here, within the connection's window, until it is received. The
response is written as it is sent: the head and the first bytes of the body in one write.

Invariant: nothing is written after the connection is lost, and at most one response is written.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from perdure.server.http import message as http_message
from perdure.server.http.asgi import Header, Received, Scope, Sent

_DISCONNECT: Final[Received] = {"type": "http.disconnect"}


class ExchangeConnection(Protocol):
    """What an exchange uses of its connection."""

    @property
    def date(self) -> bytes: ...
    @property
    def is_writable(self) -> bool:
        """Whether the client reads what it is sent."""
        ...

    def write(self, data: bytes) -> None: ...
    async def writable(self) -> None: ...
    def body_taken(self) -> None: ...
    def keeps_alive(self, exchange: "Exchange") -> bool:
        """Whether another request may follow this one."""
        ...

    def finished(self, exchange: "Exchange") -> None: ...


class Exchange:
    def __init__(self, wire: ExchangeConnection, scope: Scope, *, expects_continue: bool) -> None:
        self.scope = scope
        self.status = 0
        self.request_complete = False
        self.response_started = False
        self.response_complete = False
        self.streams = False
        self._wire = wire
        self._expects_continue = expects_continue
        self._bodiless = scope["method"] == "HEAD"
        self._body = bytearray()
        self._body_delivered = False
        self._lost = False
        self._changed: asyncio.Future[None] | None = None
        self._head: tuple[int, Sequence[Header]] | None = None
        self._chunked = False

    @property
    def buffered(self) -> int:
        return len(self._body)

    def feed(self, data: bytes) -> None:
        self._body += data
        self._wake()

    def complete_request(self) -> None:
        self.request_complete = True
        self._wake()

    def lose(self) -> None:
        """The client has disconnected."""
        self._lost = True
        self._wake()

    async def receive(self) -> Received:
        if self._expects_continue and not (self._body or self.request_complete):
            self._expects_continue = False
            if not (self.response_started or self._lost):
                self._wire.write(http_message.CONTINUE)
        while not self._receivable():
            self._changed = asyncio.get_running_loop().create_future()
            await self._changed
        if self._lost or self._body_delivered:
            return _DISCONNECT
        body = bytes(self._body)
        self._body.clear()
        self._wire.body_taken()
        self._body_delivered = self.request_complete
        return {"type": "http.request", "body": body, "more_body": not self.request_complete}

    async def send(self, message: Sent) -> None:
        if self._lost:
            return
        match message["type"]:
            case "http.response.start" | "websocket.http.response.start":
                assert not self.response_started, "response started twice"
                self.response_started = True
                self.status = message["status"]
                self._head = (self.status, message["headers"])
            case "http.response.body" | "websocket.http.response.body":
                assert self.response_started, "body before start"
                assert not self.response_complete, "body after its end"
                await self._send_body(message["body"], more=message.get("more_body", False))
            case unexpected:
                raise AssertionError(f"{unexpected} is not for an HTTP request")

    async def _send_body(self, body: bytes, *, more: bool) -> None:
        opening = b"" if self._head is None else self._opening(body, more=more)
        if self._bodiless:
            body = b""
        elif self._chunked:
            body = http_message.chunk(body) if body else b""
            body += b"" if more else http_message.LAST_CHUNK
        if opening or body:
            self._wire.write(opening + body)
        if more:
            await self._wire.writable()
            return
        self.response_complete = True
        self._wake()
        self._wire.finished(self)

    def _opening(self, body: bytes, *, more: bool) -> bytes:
        assert self._head is not None
        status, headers = self._head
        self._head = None
        framing = b""
        if not any(name == b"content-length" for name, _ in headers) and status != 204:
            framing = self._framing(body, more=more)
        if not self._wire.keeps_alive(self):
            framing += b"connection: close\r\n"
        return http_message.head(status, headers, date=self._wire.date, framing=framing)

    def _framing(self, body: bytes, *, more: bool) -> bytes:
        if not more:
            return b"content-length: %d\r\n" % len(body)
        self.streams = True
        if self.scope["http_version"] == "1.0":
            return b""  # the end of the connection is the end of the body
        self._chunked = True
        return b"transfer-encoding: chunked\r\n"

    def _receivable(self) -> bool:
        if self._lost or (self.response_complete and self._body_delivered):
            return True
        return not self._body_delivered and (bool(self._body) or self.request_complete)

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)
