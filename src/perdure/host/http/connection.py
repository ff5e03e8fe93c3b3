"""One HTTP/1.1 connection: sends requests and reads their responses, one after another.

host.http.client assigns requests to connections. Reading pauses while too much is unread, so that
a slow reader applies backpressure to the server. A model sends a word at a time; the words that
arrive within `gather_seconds` of a read are read together, and cost one wake-up instead of many.

Invariant: a waiting reader always wakes: by bytes, by the end, or by the loss of the connection.
"""

import asyncio
from collections.abc import Iterable
from typing import Final, Protocol, cast

from perdure.host.http.response import ResponseParser
from perdure.net.transport import TransportError

UNREAD_BYTES_MAX: Final = 1024 * 1024
GATHERED_BYTES_MAX: Final = 16 * 1024
LINGER_SECONDS_MAX: Final = 1.0
LINGER_BYTES_MAX: Final = 64 * 1024

Head = tuple[int, dict[str, str]]
"""Status and headers, with names in lower case."""


class Owner(Protocol):
    def idle(self, connection: "Connection") -> None:
        """The response is complete and the connection can be reused."""
        ...

    def lost(self, connection: "Connection") -> None: ...


class Connection(asyncio.Protocol):
    def __init__(self, owner: Owner, *, gather_seconds: float = 0) -> None:
        loop = asyncio.get_running_loop()
        self.is_open = False
        self.requests = 0
        self.gone: asyncio.Future[None] = loop.create_future()
        """Done when the connection is closed."""
        self._loop = loop
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        self._response = ResponseParser()
        self._failure: TransportError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._gather_seconds = gather_seconds
        self._gather_timer: asyncio.TimerHandle | None = None
        self._due_at = 0.0
        """When bytes that arrive may be read; until then they are gathered."""
        self._paused = False
        self._finished = True

    def send(self, pieces: Iterable[bytes]) -> None:
        """Send a request. The previous exchange must be over."""
        assert self._transport is not None
        self._stop_timer()
        self.requests += 1
        self._finished = False
        self._response = ResponseParser()
        self._due_at = 0.0
        self._transport.writelines(pieces)

    async def head(self) -> Head:
        """Wait for status and headers."""
        while self._response.status is None:
            await self._progress()
        return self._response.status, self._response.headers

    async def read(self) -> bytes:
        """The body bytes that have arrived, waiting for some; empty at the end."""
        while not self._is_readable():
            self._gather()
            await self._progress()
        data = self._response.take()
        if self._gather_seconds:
            self._due_at = self._loop.time() + self._gather_seconds
        self._resume_reading()
        return data

    @property
    def answered(self) -> bool:
        """Whether any byte of the response has arrived."""
        return self._response.bytes_seen > 0

    def finish(self) -> None:
        """Stop reading. The connection is reused if the response ends very soon.

        A reader often knows the end of an answer before its last bytes arrive, and a new
        connection costs several round trips.
        """
        self._finished = True
        self._response.take()
        self._resume_reading()
        if not self._settle():
            self.close_after(LINGER_SECONDS_MAX)

    def close_after(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(seconds, self.abort)

    def abort(self) -> None:
        """Close at once; unsent and unread data is dropped."""
        self._stop_timer()
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Those of other event loops are not instances of the class.
        self._transport = cast("asyncio.Transport", transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        response = self._response
        try:
            response.feed(data)
        except TransportError as failure:
            self._fail(failure)
            return
        if self._finished:
            self._discard()
        elif response.ready_bytes > UNREAD_BYTES_MAX and not self._paused:
            assert self._transport is not None
            self._transport.pause_reading()
            self._paused = True
        if self._waiter is None:
            return
        if self._is_readable() or not response.ready_bytes:
            self._wake()
        else:
            self._gather()

    def eof_received(self) -> None:
        self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self._stop_timer()
        self._end(exc)
        if not self.gone.done():
            self.gone.set_result(None)
            self._owner.lost(self)

    def _is_readable(self) -> bool:
        """Whether a read returns now: at the end, with many bytes, or with bytes that waited."""
        response = self._response
        if response.complete:
            return True
        if not response.ready_bytes:
            return False
        if response.ready_bytes >= GATHERED_BYTES_MAX or self._failure is not None:
            return True
        return not self.is_open or not self._due_at or self._loop.time() >= self._due_at

    def _gather(self) -> None:
        """Have the bytes that arrived, and those that follow shortly, read together."""
        if self._response.ready_bytes and self._gather_timer is None:
            self._gather_timer = self._loop.call_at(self._due_at, self._end_gathering)

    def _end_gathering(self) -> None:
        self._gather_timer = None
        self._due_at = 0.0
        self._wake()

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

    def _discard(self) -> None:
        self._response.take()
        if not self._settle() and self._response.bytes_seen > LINGER_BYTES_MAX:
            self.abort()

    def _settle(self) -> bool:
        """Return the connection to its owner, or close it; False while the response continues."""
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
            # Only read if a request is in progress.
            failure.__cause__ = cause
            self._failure = self._failure or failure
        self.is_open = False
        self._wake()

    def _fail(self, failure: TransportError) -> None:
        self._failure = failure
        self._wake()
        self.abort()

    def _resume_reading(self) -> None:
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
        if self._gather_timer is not None:
            self._gather_timer.cancel()
            self._gather_timer = None
