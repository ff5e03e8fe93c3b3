"""A plain HTTP client: bytes out, status and JSON back, over one socket for each call.

It decides nothing and hides nothing, so that a test can be polite, rude, or a slow reader. Every
wait is bounded. The convenience methods answer with the JSON below the envelope.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue

PATIENCE_SECONDS: Final = 15
_NEXT: Final = "session.next."


class RefusedError(AssertionError):
    """A call that had to succeed did not."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> JsonValue:
        return codec.decode_any(self.body)

    @property
    def tag(self) -> str | None:
        """The `_tag` of a failure; None for whatever has none."""
        is_json = self.headers.get("content-type", "").startswith("application/json")
        return self.json.get("_tag") if is_json else None


@dataclass(frozen=True, slots=True)
class Frame:
    """One event or comment of a stream, as it was written."""

    text: str

    @property
    def is_comment(self) -> bool:
        return self.text.startswith(":")

    @property
    def id(self) -> str | None:
        lines = (line for line in self.text.split("\n") if line.startswith("id: "))
        return next((line.removeprefix("id: ") for line in lines), None)

    @property
    def event(self) -> JsonObject:
        data = self.text[self.text.index("data: ") + len("data: ") :]
        return codec.decode_any(data)


class Stream:
    """A server-sent-event stream that is read only when asked."""

    def __init__(self, reader: asyncio.StreamReader, headers: Mapping[str, str]) -> None:
        self.headers = headers
        self._reader = reader
        self._text = b""

    async def frame(self) -> Frame | None:
        """The next frame; None when the server ended the stream."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while b"\n\n" not in self._text:
                size = int((await self._reader.readuntil(b"\r\n")).strip(), 16)
                chunk = (await self._reader.readexactly(size + 2))[:-2]
                if not chunk:
                    return None
                self._text += chunk
        frame, self._text = self._text.split(b"\n\n", 1)
        return Frame(frame.decode())

    async def event(self) -> JsonObject:
        """The next event, past any comments."""
        while (frame := await self.frame()) is not None:
            if not frame.is_comment:
                return frame.event
        raise RefusedError("the stream ended")

    async def until(self, type: str, **data: JsonValue) -> list[JsonObject]:
        """Events up to the first of that type whose data has these values."""
        seen: list[JsonObject] = []
        while True:
            seen.append(await self.event())
            if (
                seen[-1]["type"] in {type, _NEXT + type}
                and data.items() <= seen[-1]["data"].items()
            ):
                return seen


class Api:
    def __init__(self, port: int, headers: Mapping[str, str] | None = None) -> None:
        self.port = port
        self._headers = dict(headers or {})

    # ---- bytes ----------------------------------------------------------------------------------

    async def raw(self, data: bytes) -> Answer:
        """Send exactly these bytes; what came back until the server closed."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            try:
                # A refused body may be cut off while it is still being sent.
                with suppress(ConnectionError):
                    writer.write(data)
                    await writer.drain()
                received = await reader.read()
            finally:
                writer.close()
                await asyncio.gather(writer.wait_closed(), return_exceptions=True)
        head, _, body = received.partition(b"\r\n\r\n")
        status, headers = _parse_head(head)
        return Answer(status, headers, body)

    def message(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """A whole request; a header given as the empty text is left out."""
        fields = {"host": f"127.0.0.1:{self.port}", "connection": "close"} | self._headers
        if body is not None:
            fields |= {"content-type": "application/json", "content-length": str(len(body))}
        fields |= headers or {}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
        return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + (body or b"")

    async def call(
        self,
        method: str,
        path: str,
        body: JsonValue = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        content = None if body is None else codec.encode(body)
        return await self.raw(self.message(method, path, content, headers))

    async def get(self, path: str) -> JsonValue:
        return _succeeded(await self.call("GET", path)).json

    async def post(self, path: str, body: JsonValue = None) -> JsonValue:
        answer = _succeeded(await self.call("POST", path, {} if body is None else body))
        return answer.json if answer.body else None

    @asynccontextmanager
    async def stream(
        self, path: str, headers: Mapping[str, str] | None = None
    ) -> AsyncGenerator[Stream]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                writer.write(self.message("GET", path, headers=headers))
                head = await reader.readuntil(b"\r\n\r\n")
            status, received = _parse_head(head.rstrip())
            if status != 200:
                raise RefusedError(f"{path} answered {status}")
            yield Stream(reader, received)
        finally:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    # ---- Sessions -------------------------------------------------------------------------------

    async def create(self, **fields: JsonValue) -> str:
        """A new Session; its id."""
        return (await self.post("/api/session", fields))["data"]["id"]

    async def session(self, session_id: str) -> JsonObject:
        return (await self.get(f"/api/session/{session_id}"))["data"]

    async def prompt(self, session_id: str, text: str, **fields: JsonValue) -> JsonObject:
        body = {"prompt": {"text": text}, **fields}
        return (await self.post(f"/api/session/{session_id}/prompt", body))["data"]

    async def wait(self, session_id: str) -> None:
        await self.post(f"/api/session/{session_id}/wait")

    async def ask(self, session_id: str, text: str, **fields: JsonValue) -> list[JsonObject]:
        """Prompt, wait until idle; every message so far, oldest first."""
        await self.prompt(session_id, text, **fields)
        await self.wait(session_id)
        return await self.messages(session_id)

    async def messages(self, session_id: str) -> list[JsonObject]:
        """Every message, oldest first, page by page."""
        path = f"/api/session/{session_id}/message"
        page = await self.get(f"{path}?order=asc&limit=200")
        messages: list[JsonObject] = page["data"]
        while cursor := page["cursor"].get("next"):
            page = await self.get(f"{path}?cursor={cursor}")
            messages += page["data"]
        return messages

    async def history(self, session_id: str, *, after: int = 0) -> list[JsonObject]:
        """The whole durable log after a sequence, page by page."""
        events: list[JsonObject] = []
        while True:
            page = await self.get(f"/api/session/{session_id}/history?limit=100&after={after}")
            events += page["data"]
            if not page["hasMore"]:
                return events
            after = events[-1]["durable"]["seq"]

    async def facts(self, session_id: str, *, after: int = 0) -> list[str]:
        """The types of the durable log, without the prefix that all of them share."""
        events = await self.history(session_id, after=after)
        return [event["type"].removeprefix(_NEXT) for event in events]

    @asynccontextmanager
    async def events(self, session_id: str, *, after: int = 0) -> AsyncGenerator[Stream]:
        async with self.stream(f"/api/session/{session_id}/event?after={after}") as stream:
            yield stream


def _succeeded(answer: Answer) -> Answer:
    if answer.status not in {200, 204}:
        raise RefusedError(f"{answer.status}: {answer.body[:500]!r}")
    return answer


def _parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    if not head:
        raise RefusedError("the connection was closed without an answer")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, value = (part.strip() for part in line.split(":", 1))
        name = name.lower()
        # A header that is sent twice is one with both values, as every client reads it.
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return int(first.split(" ")[1]), headers
