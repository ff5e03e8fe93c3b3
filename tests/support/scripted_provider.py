"""A model provider on the loopback address: chat completions over SSE, answered from a script.

Everything is real but the thinking: sockets, HTTP, chunks, frames. Each request takes the next
reply of the script; when that is used up, `otherwise` decides from the request's body. Requests
are kept, and a test can wait for one to arrive or hold a reply in the middle.

Invariant: a reply never decides by itself when it goes on; only frames, events and the test do.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Literal

from perdure.schema import codec
from perdure.schema.codec import JsonObject

PATIENCE_SECONDS: Final = 10
SECRET: Final = "sk-acceptance-5f2e9c77"

USAGE: Final[JsonObject] = {
    "prompt_tokens": 120,
    "completion_tokens": 30,
    "prompt_tokens_details": {"cached_tokens": 20},
    "completion_tokens_details": {"reasoning_tokens": 5},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What one request gets. An Event among the pieces is waited for before the next piece."""

    pieces: tuple[bytes | asyncio.Event, ...] = ()
    ending: Literal["complete", "cut"] = "complete"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; `arguments` is sent as it is when it is a text."""

    name: str
    arguments: JsonObject | str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    body: JsonObject
    raw: bytes
    headers: Mapping[str, str]

    @property
    def messages(self) -> list[JsonObject]:
        return self.body["messages"]

    @property
    def roles(self) -> list[str]:
        return [message["role"] for message in self.messages]

    def texts(self, role: str) -> list[str]:
        return [message["content"] for message in self.messages if message["role"] == role]


def text(
    *deltas: str,
    reasoning: Sequence[str] = (),
    finish: str = "stop",
    usage: JsonObject | None = None,
    hold: asyncio.Event | None = None,
) -> Reply:
    """A text answer, a frame for each delta; `hold` stands between the text and its end."""
    pieces: list[bytes | asyncio.Event] = [
        _frame({"reasoning_content": delta}) for delta in reasoning
    ]
    pieces += [_frame({"content": delta}) for delta in deltas]
    return Reply(pieces=(*pieces, *_end(finish, usage, hold)))


def calls(
    *wanted: Call,
    saying: str = "",
    usage: JsonObject | None = None,
    hold: asyncio.Event | None = None,
) -> Reply:
    """An answer that asks for tools, their arguments in two halves."""
    pieces: list[bytes | asyncio.Event] = [_frame({"content": saying})] if saying else []
    for index, call in enumerate(wanted):
        pieces += _call_frames(index, call)
    return Reply(pieces=(*pieces, *_end("tool_calls", usage, hold)))


def cut(*deltas: str) -> Reply:
    """Text, and then the connection is gone."""
    return Reply(pieces=tuple(_frame({"content": delta}) for delta in deltas), ending="cut")


def refusal(status: int, body: JsonObject | bytes = b"", **headers: str) -> Reply:
    """An error answer; `retry_after_ms="1"` is sent as `retry-after-ms: 1`."""
    content = body if isinstance(body, bytes) else codec.encode(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, body=content, headers=named)


class ScriptedProvider:
    def __init__(self) -> None:
        self.port = 0
        self.requests: list[Request] = []
        self.keeps_requests = True
        """A test with thousands of long requests sets this to False and counts what it needs."""
        self.otherwise: Callable[[Request], Reply] = lambda request: text("ok")
        self._script: deque[Reply] = deque()
        self._arrived = asyncio.Condition()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def then(self, *replies: Reply) -> None:
        self._script.extend(replies)

    async def arrived(self, count: int) -> Request:
        """Wait until that many requests are here; the last of them."""
        async with asyncio.timeout(PATIENCE_SECONDS), self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)
        return self.requests[count - 1]

    def requests_with(self, marker: str) -> int:
        """How many requests were made to answer the prompt that holds `marker`."""
        return sum(_last_user(request).find(marker) >= 0 for request in self.requests)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (request := await _read(reader)) is not None:
            if self.keeps_requests:
                self.requests.append(request)
            async with self._arrived:
                self._arrived.notify_all()
            reply = self._script.popleft() if self._script else self.otherwise(request)
            await _send(reply, writer)
            if reply.ending == "cut":
                writer.transport.abort()
                return


@asynccontextmanager
async def scripted_provider() -> AsyncGenerator[ScriptedProvider]:
    provider = ScriptedProvider()
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await provider.serve(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            # Cancelled only below, when the test is over and nothing awaits this task.
            pass
        finally:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=512)
    async with server:
        provider.port = server.sockets[0].getsockname()[1]
        yield provider
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _end(
    finish: str, usage: JsonObject | None, hold: asyncio.Event | None
) -> tuple[bytes | asyncio.Event, ...]:
    held = () if hold is None else (hold,)
    return (*held, _frame({}, finish=finish, usage=usage or USAGE), b"data: [DONE]\n\n")


def _call_frames(index: int, call: Call) -> list[bytes]:
    sent = call.arguments
    arguments = sent if isinstance(sent, str) else codec.encode(sent).decode()
    half = len(arguments) // 2
    call_id = call.id or f"call_{index}"
    begun = {"name": call.name, "arguments": arguments[:half]}
    first = {"index": index, "id": call_id, "type": "function", "function": begun}
    rest = {"index": index, "function": {"arguments": arguments[half:]}}
    return [_frame({"tool_calls": [first]}), _frame({"tool_calls": [rest]})]


def _frame(
    delta: JsonObject, *, finish: str | None = None, usage: JsonObject | None = None
) -> bytes:
    chunk: JsonObject = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    if usage is not None:
        chunk["usage"] = usage
    return b"data: " + codec.encode(chunk) + b"\n\n"


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    lines = head.decode().rstrip().split("\r\n")[1:]
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(body=codec.decode_any(raw), raw=raw, headers=headers)


async def _send(reply: Reply, writer: asyncio.StreamWriter) -> None:
    named = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
    if reply.status != 200:
        head = f"HTTP/1.1 {reply.status} Refused\r\ncontent-length: {len(reply.body)}\r\n{named}"
        writer.write(head.encode() + b"\r\n" + reply.body)
        await writer.drain()
        return
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
        b"transfer-encoding: chunked\r\n" + named.encode() + b"\r\n"
    )
    for piece in reply.pieces:
        if isinstance(piece, asyncio.Event):
            await writer.drain()
            await piece.wait()
        else:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
    await writer.drain()
    if reply.ending == "complete":
        writer.write(b"0\r\n\r\n")
        await writer.drain()


def _last_user(request: Request) -> str:
    said = request.texts("user")
    return said[-1] if said else ""
