"""One client connection: bytes in, one exchange after the other, bytes out.

Pipelined requests wait until those before them are answered, and no more than a few are read. A
connection always has a deadline for what it waits for: it is closed when a head or a body arrives
too slowly, when the client is idle, and when the client does not read. A client that disconnects
cancels the task of its request.
"""

import asyncio
import math
from collections import deque
from typing import Final, cast

import httptools

from perdure.protocol.errors import (
    RequestHeadTooLargeError,
    RequestTimeoutError,
    TooManyRequestsError,
)
from perdure.schema.errors import DomainError, InvalidRequestError, ServiceUnavailableError
from perdure.server.http import message
from perdure.server.http.connections import Connections
from perdure.server.http.exchange import Exchange
from perdure.server.http.request_head import RequestHead
from perdure.server.http.websocket import WebSocketExchange

_NEVER: Final = math.inf
_UNTRUSTED: Final = frozenset({400, 401, 403})
"""Answers to requests that did not pass the guard, or not all of it."""
_FULL: Final = ServiceUnavailableError(
    "The server has as many connections as it may have; close some, or try again", service="http"
)


class Connection(asyncio.Protocol):
    def __init__(self, listener: Connections) -> None:
        self.deadline = _NEVER
        self.is_known = False
        self._listener = listener
        self._limits = listener.limits
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._writable = asyncio.Event()
        self._writable.set()
        self._head = RequestHead(listener.limits.head_bytes_max)
        self._head_open = False
        self._framing_bytes = 0
        """Received since the last piece of a body, or since the last message began or ended."""
        self._body_bytes = 0
        self._waits_since = 0.0
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
        # Those of other event loops are not instances of the class.
        self._transport = cast("asyncio.Transport", transport)
        self._waits_since = self._listener.loop.time()
        if not self._listener.admit(self):
            self._refuse(_FULL)
        elif self._listener.closing:
            self._close()
        else:
            self._set_deadline()

    def data_received(self, data: bytes) -> None:
        if self._ignores_input:
            return
        if self._upgraded:
            self._feed_socket(data)
            return
        self._framing_bytes += len(data)
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
        # Trailers and the framing of chunks are bounded like a head: the parser keeps a whole line.
        too_large = self._head.is_too_large or self._framing_bytes > self._limits.head_bytes_max
        if too_large and not self._ignores_input:
            self._refuse_head()

    def eof_received(self) -> bool:
        """The client will send no more: its requests are complete, or it has disconnected.

        Only a write would tell which. An answer is still sent if it comes soon; a stream ends.
        """
        answering = self._answering or (self._waiting[0] if self._waiting else None)
        if self._closing or answering is None or answering.streams:
            return False
        self._last_request = self._half_closed = True
        self.deadline = self._listener.loop.time() + self._limits.linger_seconds_max
        return answering.request_complete

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._listener.forget(self)
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
        self._listener.note_unsent(self, 0)
        if self._socket is not None:
            self._socket.resume_sending()
        if self._answering is None and not self._closing:
            self._proceed()
        self._set_deadline()

    # The parser's callbacks

    def on_message_begin(self) -> None:
        self._head = RequestHead(self._limits.head_bytes_max)
        self._head_open = True
        self._framing_bytes = 0
        if self._answering is None:
            self._set_deadline()

    def on_url(self, url: bytes) -> None:
        self._head.add_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        # After the head these are trailers, which must not be taken for headers that were checked.
        if self._head_open:
            self._head.add_header(name, value)

    def on_headers_complete(self) -> None:
        self._head_open = False
        if self._ignores_input:
            return
        if self._head.is_too_large:
            self._refuse_head()
            return
        self._framing_bytes = 0
        scope = self._head.scope(self._parser, self._transport)
        if scope["type"] == "websocket":
            exchange = self._socket = WebSocketExchange(self, scope)
        else:
            exchange = Exchange(self, scope, expects_continue=self._head.expects_continue)
        self._arriving, self._body_bytes = exchange, 0
        if not self._parser.should_keep_alive() or self._parser.get_http_version() == "1.0":
            self._last_request = True
        if self._answering is None and not self._waiting and self._writable.is_set():
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
        self._framing_bytes = 0
        self._body_bytes += len(body)
        if self._body_bytes >= self._limits.body_window_bytes:
            self._body_bytes = 0
            self._set_deadline()
            self._set_reading()

    def on_message_complete(self) -> None:
        self._framing_bytes = 0
        if self._arriving is not None:
            exchange, self._arriving = self._arriving, None
            exchange.complete_request()
            self._set_deadline()

    # ExchangeConnection

    @property
    def date(self) -> bytes:
        return self._listener.date

    @property
    def is_writable(self) -> bool:
        return self._writable.is_set()

    def write(self, data: bytes) -> None:
        self._transport.write(data)
        if unsent := self._transport.get_write_buffer_size():
            self._listener.note_unsent(self, unsent)

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
        self._waits_since = self._listener.loop.time()
        if exchange.status not in _UNTRUSTED and exchange.scope["method"] != "OPTIONS":
            self.is_known = True
        if self._closing:
            return
        if exchange.request_complete:
            self._proceed()
        else:
            self._linger()

    # Called by the server

    @property
    def waits_since(self) -> float | None:
        busy = self._closing or self._answering is not None or self._waiting
        return None if busy else self._waits_since

    def give_way(self) -> None:
        """End at once for another connection."""
        if not self._writable.is_set():
            self._transport.abort()
        elif self._head_open:
            self._refuse(_FULL)
        else:
            self._close()

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

    def _proceed(self) -> None:
        """Go on after an answer. The next one waits until the client has read enough of it."""
        if self._waiting:
            if self._writable.is_set():
                self._answer(self._waiting.popleft())
                self._set_reading()
            self._set_deadline()
        elif self._refusal is not None:
            self._refuse(self._refusal)
        elif self._last_request or self._listener.closing:
            self._close()
        else:
            self._set_deadline()

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
        if answering is None and not self._waiting:
            self.write(message.refusal(error, date=self.date))
            self._linger()
        elif answering is None or answering.request_complete:
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

    def _refuse_head(self) -> None:
        self._refuse(RequestHeadTooLargeError(self._limits.head_bytes_max))

    def _set_deadline(self) -> None:
        if self._closing or self._half_closed:
            return
        now = self._listener.loop.time()
        if not self._writable.is_set():
            self.deadline = now + self._limits.stall_seconds_max
        elif self._answering is not None:
            slow = self._answering is self._arriving and not self._reading_paused
            self.deadline = now + self._limits.read_seconds_max if slow else _NEVER
        else:
            limits, in_head = self._limits, self._head_open
            seconds = limits.read_seconds_max if in_head else limits.keep_alive_seconds_max
            self.deadline = now + seconds
            if not self.is_known:
                first = self._waits_since + limits.first_request_seconds_max
                self.deadline = min(self.deadline, first)

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
