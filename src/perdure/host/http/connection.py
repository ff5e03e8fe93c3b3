"""One HTTP/1.1 connection: a request goes out, its response comes in, then perhaps the next.

Which connection serves which request is its owner's business (host.http.client). Reading pauses
while more than a bound is unread, so that a slow reader slows its provider down.

Invariant: a waiting reader always wakes: by bytes, by the end, or by the loss of the connection.
"""

import asyncio
from collections.abc import Iterable
from typing import Final, Protocol

from perdure.host.http.response import ResponseParser
from perdure.net.transport import TransportError

UNREAD_BYTES_MAX: Final = 1024 * 1024
LINGER_SECONDS_MAX: Final = 1.0
LINGER_BYTES_MAX: Final = 64 * 1024

Head = tuple[int, dict[str, str]]
"""Status and headers, their names in lower case."""


class Owner(Protocol):
    def idle(self, connection: "Connection") -> None:
        """The response is over and the connection may carry another request."""
        ...

    def lost(self, connection: "Connection") -> None: ...


class Connection(asyncio.Protocol):
    def __init__(self, owner: Owner) -> None:
        loop = asyncio.get_running_loop()
        self.is_open = False
        self.requests = 0
        self.gone: asyncio.Future[None] = loop.create_future()
        """Done when the connection is closed for good."""
        self._loop = loop
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        self._response = ResponseParser()
        self._failure: TransportError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._paused = False
        self._left = True

    def send(self, pieces: Iterable[bytes]) -> None:
        """Begin an exchange. The previous one must be over."""
        assert self._transport is not None
        self._stop_timer()
        self.requests += 1
        self._left = False
        self._response = ResponseParser()
        self._transport.writelines(pieces)

    async def head(self) -> Head:
        """Status and headers, once they are here."""
        while self._response.status is None:
            await self._progress()
        return self._response.status, self._response.headers

    async def read(self) -> bytes:
        """Everything of the body that has arrived; empty at its end."""
        while True:
            data = self._response.take()
            if data or self._response.complete:
                self._flow()
                return data
            await self._progress()

    @property
    def answered(self) -> bool:
        """Whether a single byte of the response has come."""
        return self._response.bytes_seen > 0

    def leave(self) -> None:
        """No more will be read. The connection lives on if the response ends very soon.

        An answer is often known to be over before its last bytes have come, and a new connection
        to a provider costs several round trips.
        """
        self._left = True
        self._response.take()
        self._flow()
        if not self._settle():
            self.close_after(LINGER_SECONDS_MAX)

    def close_after(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(seconds, self.abort)

    def abort(self) -> None:
        """Close now; what is unsent or unread is dropped."""
        self._stop_timer()
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        response = self._response
        try:
            response.feed(data)
        except TransportError as failure:
            self._fail(failure)
            return
        if self._left:
            self._pass_over()
        elif response.ready_bytes > UNREAD_BYTES_MAX and not self._paused:
            assert self._transport is not None
            self._transport.pause_reading()
            self._paused = True
        self._wake()

    def eof_received(self) -> None:
        self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self._stop_timer()
        self._end(exc)
        if not self.gone.done():
            self.gone.set_result(None)
            self._owner.lost(self)

    async def _progress(self) -> None:
        if self._failure is not None:
            raise self._failure
        if not self.is_open:
            raise TransportError("the connection is closed")
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _pass_over(self) -> None:
        self._response.take()
        if not self._settle() and self._response.bytes_seen > LINGER_BYTES_MAX:
            self.abort()

    def _settle(self) -> bool:
        """Give a finished exchange's connection back; False while the response goes on."""
        if not self.is_open:
            return True
        if not self._response.complete:
            return False
        if self._response.reusable:
            self._owner.idle(self)
        else:
            self.abort()
        return True

    def _end(self, cause: Exception | None) -> None:
        try:
            self._response.end()
        except TransportError as failure:
            # Without a request under way nobody waits for this.
            failure.__cause__ = cause
            self._failure = self._failure or failure
        self.is_open = False
        self._wake()

    def _fail(self, failure: TransportError) -> None:
        self._failure = failure
        self._wake()
        self.abort()

    def _flow(self) -> None:
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
