"""One client connection: bytes in, one exchange after the other, bytes out.

Pipelined requests wait until those before them are answered, and no more than a few are read. A
connection always has a deadline for what it waits for: it is closed when a head or a body arrives
too slowly, when the client is idle, and when the client does not read. A client that disconnects
cancels the task of its request.
"""

import asyncio
import math
from collections import deque
from typing import Final

import httptools
import msgspec

from perdure.protocol.errors import (
    RequestHeadTooLargeError,
    RequestTimeoutError,
    TooManyRequestsError,
)
from perdure.protocol.query import unquote
from perdure.schema.errors import DomainError, InvalidRequestError, ServiceUnavailableError
from perdure.schema.value import State
from perdure.server.http import message
from perdure.server.http.asgi import Application, Header, Scope
from perdure.server.http.exchange import Exchange
from perdure.server.http.websocket import WebSocketExchange
from perdure.server.settings import HttpLimits

_ASGI: Final = {"version": "3.0", "spec_version": "2.4"}
_NEVER: Final = math.inf


class Listener(State):
    """What the connections of one server share."""

    app: Application
    limits: HttpLimits
    loop: asyncio.AbstractEventLoop
    date: bytes = b""
    closing: bool = False
    connections: "set[Connection]" = msgspec.field(default_factory=set["Connection"])
    tasks: set[asyncio.Task[None]] = msgspec.field(default_factory=set[asyncio.Task[None]])
    empty: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    """Set while there is no connection."""


class Connection(asyncio.Protocol):
    def __init__(self, listener: Listener) -> None:
        self.deadline = _NEVER
        self._listener = listener
        self._limits = listener.limits
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._writable = asyncio.Event()
        self._writable.set()
        self._url = b""
        self._headers: list[Header] = []
        self._head_open = False
        self._head_bytes = 0
        self._body_bytes = 0
        self._arriving: Exchange | None = None
        self._answering: Exchange | None = None
        self._task: asyncio.Task[None] | None = None
        self._waiting: deque[Exchange] = deque()
        self._reading_paused = False
        self._last_request = False
        self._refusal: DomainError | None = None
        self._half_closed = False
        self._ignores_input = False
        self._upgraded = False
        self._socket: WebSocketExchange | None = None
        self._closing = False

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._listener.connections.add(self)
        self._listener.empty.clear()
        self.deadline = self._listener.loop.time() + self._limits.read_seconds_max
        if len(self._listener.connections) > self._limits.connections_max:
            self._refuse(ServiceUnavailableError("Too many connections", service="http"))

    def data_received(self, data: bytes) -> None:
        if self._ignores_input:
            return
        if self._upgraded:
            self._feed_socket(data)
            return
        in_head = self._head_open
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # The bytes after the head belong to another protocol.
            self._last_request = self._upgraded = True
            self._feed_socket(data[upgrade.args[0] :])
        except httptools.HttpParserCallbackError:
            raise
        except httptools.HttpParserError as error:
            self._refuse(InvalidRequestError(f"Malformed HTTP request: {error}"))
            return
        if in_head and self._head_open:
            self._head_bytes += len(data)
            self._check_head(self._head_bytes)

    def eof_received(self) -> bool:
        """The client will send no more: its requests are complete, or it has disconnected.

        Only a write would tell which. An answer is still sent if it comes soon; a stream ends.
        """
        answering = self._answering
        if self._closing or answering is None or answering.streams:
            return False
        self._last_request = self._half_closed = True
        self.deadline = self._listener.loop.time() + self._limits.linger_seconds_max
        return answering.request_complete

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._listener.connections.discard(self)
        if not self._listener.connections:
            self._listener.empty.set()
        self._ignores_input = self._closing = True
        self._writable.set()
        for exchange in (self._arriving, self._answering, *self._waiting):
            if exchange is not None:
                exchange.lose()
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()
        self._set_deadline()

    def resume_writing(self) -> None:
        self._writable.set()
        self._set_deadline()

    # The parser's callbacks

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers = []
        self._head_open = True
        self._head_bytes = 0
        if self._answering is None:
            self._set_deadline()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        # After the head these are trailers, which must not be taken for headers that were checked.
        if self._head_open:
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._head_open = False
        size = len(self._url) + sum(len(name) + len(value) + 4 for name, value in self._headers)
        if self._ignores_input or not self._check_head(size):
            return
        expects = any(
            name == b"expect" and value.lower() == b"100-continue" for name, value in self._headers
        )
        scope = self._scope()
        if scope["type"] == "websocket":
            exchange = self._socket = WebSocketExchange(self, scope)
        else:
            exchange = Exchange(self, scope, expects_continue=expects)
        self._arriving, self._body_bytes = exchange, 0
        if not self._parser.should_keep_alive() or self._parser.get_http_version() == "1.0":
            self._last_request = True
        if self._answering is None:
            self._answer(exchange)
        elif len(self._waiting) < self._limits.pipelined_max:
            self._waiting.append(exchange)
        else:
            self._arriving = None
            self._refuse(TooManyRequestsError("Too many pipelined requests on one connection"))
            return
        self._set_deadline()
        self._set_reading()

    def on_body(self, body: bytes) -> None:
        if self._arriving is None:
            return
        self._arriving.feed(body)
        self._body_bytes += len(body)
        if self._body_bytes >= self._limits.body_window_bytes:
            self._body_bytes = 0
            self._set_deadline()
            self._set_reading()

    def on_message_complete(self) -> None:
        if self._arriving is not None:
            exchange, self._arriving = self._arriving, None
            exchange.complete_request()
            self._set_deadline()

    # ExchangeConnection

    @property
    def date(self) -> bytes:
        return self._listener.date

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    async def writable(self) -> None:
        if not self._writable.is_set():
            await self._writable.wait()

    def body_taken(self) -> None:
        self._set_reading()

    def keeps_alive(self, exchange: Exchange) -> bool:
        if self._listener.closing or not exchange.request_complete:
            return False
        return bool(self._waiting) or not self._last_request

    def finished(self, exchange: Exchange) -> None:
        assert exchange is self._answering
        self._answering = self._task = None
        if self._closing:
            return
        if not exchange.request_complete:
            self._linger()
        elif self._waiting:
            self._answer(self._waiting.popleft())
            self._set_reading()
            self._set_deadline()
        elif self._refusal is not None:
            self._refuse(self._refusal)
        elif self._last_request or self._listener.closing:
            self._close()
        else:
            self._set_deadline()

    # Called by the server

    def begin_shutdown(self) -> None:
        """Take no further request; an answer under way is finished."""
        self._waiting.clear()
        if self._answering is None:
            self._close()

    def expire(self) -> None:
        """End the connection: its deadline has passed."""
        answering = self._answering
        if self._closing or self._half_closed or not self._writable.is_set():
            self._transport.abort()
        elif self._head_open or (answering is not None and not answering.response_started):
            self._refuse(RequestTimeoutError())
        elif answering is not None:
            self._transport.abort()
        else:
            self._close()

    def abort(self) -> None:
        self._transport.abort()

    # Internal

    def _answer(self, exchange: Exchange) -> None:
        self._answering = exchange
        task = self._listener.loop.create_task(self._run(exchange), name="http request")
        self._task = task
        self._listener.tasks.add(task)
        task.add_done_callback(self._listener.tasks.discard)

    async def _run(self, exchange: Exchange) -> None:
        try:
            await self._listener.app(exchange.scope, exchange.receive, exchange.send)
        finally:
            # An answer that is incomplete must not look complete.
            if not exchange.response_complete:
                self._transport.abort()

    def _refuse(self, error: DomainError) -> None:
        """Answer without the application and close, after the requests before this one."""
        self._ignores_input = True
        answering, task = self._answering, self._task
        if answering is None:
            self.write(message.refusal(error, date=self.date))
            self._linger()
        elif answering.request_complete:
            self._refusal = error
            if self._waiting and self._waiting[-1] is self._arriving:
                self._waiting.pop()
        elif answering.response_started or task is None:
            self._transport.abort()
        else:
            self.write(message.refusal(error, date=self.date))
            answering.response_complete = True
            answering.lose()
            task.cancel()
            self._answering = None
            self._linger()

    def _linger(self) -> None:
        """Close after the client had time to read: closing with unread input sends a reset."""
        self._ignores_input = self._closing = True
        self._resume_reading()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self.deadline = self._listener.loop.time() + self._limits.linger_seconds_max

    def _close(self) -> None:
        self._ignores_input = self._closing = True
        self._transport.close()
        self.deadline = self._listener.loop.time() + self._limits.stall_seconds_max

    def _check_head(self, size: int) -> bool:
        if size <= self._limits.head_bytes_max:
            return True
        self._refuse(RequestHeadTooLargeError(self._limits.head_bytes_max))
        return False

    def _set_deadline(self) -> None:
        if self._closing or self._half_closed:
            return
        now = self._listener.loop.time()
        if not self._writable.is_set():
            self.deadline = now + self._limits.stall_seconds_max
        elif self._answering is not None:
            slow = self._answering is self._arriving and not self._reading_paused
            self.deadline = now + self._limits.read_seconds_max if slow else _NEVER
        elif self._head_open:
            self.deadline = now + self._limits.read_seconds_max
        else:
            self.deadline = now + self._limits.keep_alive_seconds_max

    def _set_reading(self) -> None:
        """Pause reading while a pipelined request waits or the application takes no body."""
        arriving = self._socket if self._upgraded else self._arriving
        held = arriving is not None and arriving.buffered >= self._limits.body_window_bytes
        if self._waiting or held:
            if not self._reading_paused:
                self._reading_paused = True
                self._transport.pause_reading()
                self._set_deadline()
        else:
            self._resume_reading()

    def _feed_socket(self, data: bytes) -> None:
        """Bytes after an upgrade; they are dropped if it was not to a WebSocket."""
        if self._socket is None:
            self._ignores_input = True
        else:
            self._socket.feed(data)
            self._set_reading()

    def _resume_reading(self) -> None:
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()
            self._set_deadline()

    def _scope(self) -> Scope:
        target = self._url
        if not target.startswith((b"/", b"*")):
            target = target.partition(b"://")[2]
            target = target[target.find(b"/") :] if b"/" in target else b"/"
        raw_path, _, query_string = target.partition(b"?")
        websocket = self._parser.should_upgrade() and (b"upgrade", b"websocket") in {
            (name, value.lower()) for name, value in self._headers
        }
        return {
            "type": "websocket" if websocket else "http",
            "asgi": _ASGI,
            "http_version": self._parser.get_http_version(),
            "method": self._parser.get_method().decode("ascii"),
            "scheme": "ws" if websocket else "http",
            "path": unquote(raw_path),
            "raw_path": raw_path,
            "query_string": query_string,
            "root_path": "",
            "headers": self._headers,
            "client": self._transport.get_extra_info("peername"),
            "server": self._transport.get_extra_info("sockname"),
        }
