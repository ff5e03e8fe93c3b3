"""The transport within one process: a client's requests go straight to an ASGI application.

The application runs in a task of its own, so that an endless answer can be read while it is made.
Few chunks wait between the two: a slow reader holds the application back, as a full socket would.
Nothing is compressed, cached or retried here.

Invariant: the task of a request ends when its answer was read or closed, and never outlives the
TaskGroup it was started in.
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
"""How long open answers may take to end by themselves when the transport is closed."""
_HOST: Final = (b"host", b"localhost")


class AsgiTransport:
    def __init__(self, application: Application, tasks: asyncio.TaskGroup) -> None:
        self._application = application
        self._tasks = tasks
        self._exchanges: dict[asyncio.Task[None], _Exchange] = {}

    async def send(self, outgoing: Request) -> Response:
        exchange = _Exchange(outgoing.body or b"")
        # As over a socket, the caller's context variables do not reach the handler.
        task = self._tasks.create_task(
            exchange.run(self._application, _scope(outgoing)),
            context=contextvars.Context(),
            name="memory request",
        )
        self._exchanges[task] = exchange
        task.add_done_callback(self._exchanges.pop)
        answer = _AsgiResponse(exchange, task)
        try:
            await exchange.head
        except BaseException:
            await answer.aclose()
            raise
        return answer

    async def aclose(self) -> None:
        """Wait for answers that are about to end, then cancel the others."""
        if self._exchanges:
            await asyncio.wait(self._exchanges, timeout=_CLOSE_SECONDS_MAX)
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
    """One request and its answer, between client and application."""

    def __init__(self, body: bytes) -> None:
        loop = asyncio.get_running_loop()
        self.head: asyncio.Future[tuple[int, Sequence[Header]]] = loop.create_future()
        self._body: bytes | None = body
        self._chunks: deque[bytes] = deque()
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._ended = False
        self._broken: ClientError | None = None
        self._abandoned = asyncio.Event()

    async def run(self, application: Application, scope: Scope) -> None:
        try:
            await application(scope, self._receive, self._send)
            self._break("The answer was not finished")
        except asyncio.CancelledError:
            self._break("The server ended the request")
            raise
        except BaseException as defect:
            # As over a socket, the reader sees a broken answer; here it also gets the cause.
            self._break(f"The application failed: {defect!r}", defect)
            if not isinstance(defect, Exception):
                raise

    async def next_chunk(self) -> bytes | None:
        """The next chunk of the answer; None after the last. Raises if the answer broke off."""
        while not self._chunks and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        if self._chunks:
            self._room.set()
            return self._chunks.popleft()
        if self._broken is not None:
            raise self._broken
        return None

    def abandon(self) -> bool:
        """Stop reading the answer; whether the application was still making it."""
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
                self._room.clear()
                await self._room.wait()
            self._chunks.append(body)
            self._changed.set()
        if not message.get("more_body", False):
            self._ended = True
            self._changed.set()

    def _break(self, reason: str, cause: BaseException | None = None) -> None:
        # The answer is complete: a later failure does not change it.
        if self._ended:
            return
        self._ended = True
        self._broken = ClientError("transport", reason)
        self._broken.__cause__ = cause
        self._changed.set()
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
