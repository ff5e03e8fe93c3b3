"""A client transport without a network: requests go straight to an ASGI application.

The application runs in a task per request, so an endless response can be read while it is
produced. The buffer between them holds a few chunks: a slow reader blocks the application, as a
full socket would. Nothing is compressed, cached or retried.

Invariant: the task of a request ends when its response has been read or closed, and never outlives
the TaskGroup it was started in.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from typing import Final
from urllib.parse import unquote

from perdure.client.errors import ClientError
from perdure.client.transport import Request, Response
from perdure.server.http.asgi import Application, Header, Received, Scope, Sent

_CHUNKS_MAX: Final = 16
_CLOSE_SECONDS_MAX: Final = 1
"""How long running requests may take to finish when the transport is closed."""
_HOST: Final = (b"host", b"localhost")


class AsgiTransport:
    def __init__(self, application: Application, tasks: asyncio.TaskGroup) -> None:
        self._application = application
        self._tasks = tasks
        self._exchanges: dict[asyncio.Task[None], _Exchange] = {}
        self._closed = False

    async def send(self, outgoing: Request) -> Response:
        if self._closed:
            # Not a ClientError: a lost connection is tried again.
            raise RuntimeError("the host is closed: its `with` block has ended")
        exchange = _Exchange(outgoing.body or b"")
        # A new context: as over a socket, the caller's context variables do not reach the handler.
        task = self._tasks.create_task(
            exchange.run(self._application, _scope(outgoing)),
            context=contextvars.Context(),
            name="memory request",
        )
        self._exchanges[task] = exchange
        task.add_done_callback(self._exchanges.pop)
        response = _AsgiResponse(exchange, task)
        try:
            await exchange.head
        except BaseException:
            await response.aclose()
            raise
        return response

    async def aclose(self) -> None:
        """Wait a moment for running requests to finish, then cancel the rest."""
        if self._exchanges:
            await asyncio.wait(self._exchanges, timeout=_CLOSE_SECONDS_MAX)
        self._closed = True
        for task in tuple(self._exchanges):
            task.cancel()
        if self._exchanges:
            await asyncio.wait(self._exchanges)


class _AsgiResponse:
    def __init__(self, exchange: "_Exchange", task: asyncio.Task[None]) -> None:
        self._exchange = exchange
        self._task = task

    @property
    def status(self) -> int:
        return self._exchange.head.result()[0]

    @property
    def content_type(self) -> str:
        for name, value in self._exchange.head.result()[1]:
            if name == b"content-type":
                return value.decode("latin-1")
        return ""

    async def read(self) -> bytes:
        pieces: list[bytes] = []
        while (chunk := await self._exchange.next_chunk()) is not None:
            pieces.append(chunk)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def chunks(self) -> AsyncGenerator[bytes]:
        while (chunk := await self._exchange.next_chunk()) is not None:
            yield chunk

    async def aclose(self) -> None:
        if self._exchange.abandon():
            self._task.cancel()
        if not self._task.done():
            await asyncio.wait((self._task,))


class _Exchange:
    """One request and its response, shared by the transport and the application."""

    def __init__(self, body: bytes) -> None:
        loop = asyncio.get_running_loop()
        self.head: asyncio.Future[tuple[int, Sequence[Header]]] = loop.create_future()
        self._body: bytes | None = body
        self._chunks: deque[bytes] = deque()
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._ended = False
        self._broken: ClientError | None = None
        self._abandoned = asyncio.Event()

    async def run(self, application: Application, scope: Scope) -> None:
        try:
            await application(scope, self._receive, self._send)
            self._fail("The application ended before the response was complete")
        except asyncio.CancelledError:
            self._fail("The application cancelled the request")
            raise
        except BaseException as defect:
            # As over a socket, the reader sees a broken response; unlike there, also the cause.
            self._fail(f"The application failed: {defect!r}", defect)
            if not isinstance(defect, Exception):
                raise

    async def next_chunk(self) -> bytes | None:
        """Return the next chunk of the body; None after the last. Raises if it broke off."""
        while not self._chunks and not self._ended:
            self._readable.clear()
            await self._readable.wait()
        if self._chunks:
            self._writable.set()
            return self._chunks.popleft()
        if self._broken is not None:
            raise self._broken
        return None

    def abandon(self) -> bool:
        """Stop reading. Return whether the response was still being produced."""
        self._abandoned.set()
        return not self._ended

    async def _receive(self) -> Received:
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        await self._abandoned.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Sent) -> None:
        if message["type"] == "http.response.start":
            self.head.set_result((message["status"], message["headers"]))
            return
        assert message["type"] == "http.response.body", "no WebSocket goes through here"
        if body := message["body"]:
            while len(self._chunks) >= _CHUNKS_MAX:
                self._writable.clear()
                await self._writable.wait()
            self._chunks.append(body)
            self._readable.set()
        if not message.get("more_body", False):
            self._ended = True
            self._readable.set()

    def _fail(self, reason: str, cause: BaseException | None = None) -> None:
        # The response was complete, so what fails afterwards does not concern the reader.
        if self._ended:
            return
        self._ended = True
        self._broken = ClientError("transport", reason)
        self._broken.__cause__ = cause
        self._readable.set()
        if not self.head.done():
            self.head.set_exception(self._broken)


def _scope(outgoing: Request) -> Scope:
    path, _, query = outgoing.target.partition("?")
    headers = [(name.encode(), value.encode()) for name, value in outgoing.headers.items()]
    if outgoing.body is not None:
        headers.append((b"content-length", b"%d" % len(outgoing.body)))
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": outgoing.method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [_HOST, *headers],
        "server": ("localhost", None),
        "client": None,
    }
