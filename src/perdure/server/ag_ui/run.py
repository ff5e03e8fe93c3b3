"""A run of AG-UI: the prompt is admitted once, then what the Session does is streamed to its end.

A run that is asked for again is read again from its prompt, after a snapshot of the messages before
it, so a client that was cut off has each message once.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from perdure.core import limits
from perdure.core.text import jsonc
from perdure.net import sse
from perdure.protocol.ag_ui import AgUiMessage, RunAgent
from perdure.schema import codec, ids
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.errors import DomainError, InvalidRequestError
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.session.prompt import FileInput, PromptInput
from perdure.server.ag_ui import requests
from perdure.server.ag_ui.translation import Translation
from perdure.server.call import Call
from perdure.server.results import DurableStream

if TYPE_CHECKING:
    from perdure.runtime.app.runtime import Runtime
    from perdure.runtime.live_hub import LiveReader

logger = logging.getLogger(__name__)

_SEPARATOR: Final = b"\n\n"
_DECISIVE: Final = (b'"permission.v2.asked"', b'"question.v2.asked"', b'"session.status"')
"""Kinds of events after which a run may be over."""
_LOOK_SECONDS: Final = 1.0
"""Without live events, the Session is looked at this often: another process may run it."""
_KEY: Final = "ag-ui"


async def run_agent(call: Call[None, RunAgent]) -> DurableStream[JsonObject]:
    """Everything that may be refused is refused before the stream begins."""
    asked, runtime = call.body, call.runtime
    prompt = _find_prompt(asked)
    given = _read_prompt(prompt)
    session_id = await _open_session(runtime, asked.thread_id, call.location())
    message_id = ids.message_from_external(f"{_KEY}\0{session_id}\0{prompt.id}")
    again = await runtime.sessions.find_receipt(session_id, message_id) is not None
    for entry in asked.resume or ():
        again = await requests.answer(runtime, session_id, entry) or again
    receipt = await runtime.sessions.prompt(session_id, given, id=message_id)
    run = _Run(runtime, session_id, message_id, asked, after=receipt.admitted_seq)
    return DurableStream(run.frames(snapshot=_messages_before(asked, prompt) if again else None))


class _Run:
    def __init__(
        self,
        runtime: "Runtime",
        session_id: SessionID,
        message_id: MessageID,
        asked: RunAgent,
        *,
        after: int,
    ) -> None:
        self._runtime = runtime
        self._session_id = session_id
        self._named: JsonObject = {"threadId": asked.thread_id, "runId": asked.run_id}
        self._translation = Translation(message_id)
        self._translation.after = after
        self._changed = True

    async def frames(self, *, snapshot: list[JsonValue] | None) -> AsyncGenerator[bytes]:
        yield _frame({"type": "RUN_STARTED", **self._named})
        if snapshot is not None:
            yield _frame({"type": "MESSAGES_SNAPSHOT", "messages": snapshot})
        try:
            with self._runtime.hub.subscribe() as reader:
                async for event in self._follow(reader):
                    yield _frame(event)
        except DomainError as error:
            yield _frame({"type": "RUN_ERROR", "message": error.message, "code": "unavailable"})

    async def _follow(self, reader: "LiveReader") -> AsyncGenerator[JsonObject]:
        translation = self._translation
        async for event in self._catch_up():
            yield event
        while not translation.is_over and await self._goes_on():
            frames = await self._listen(reader)
            for event in self._read(frames):
                for translated in translation.translate(event):
                    yield translated
            if not frames:
                # It may run in another process, or this reader fell behind.
                async for event in self._catch_up():
                    yield event
        async for event in self._catch_up():
            yield event
        for event in translation.close():
            yield event
        yield await self._end()

    async def _goes_on(self) -> bool:
        """Whether the Session runs, and waits for no person."""
        if not self._changed:
            return True
        self._changed = False
        if await requests.list_interrupts(self._runtime, self._session_id):
            return False
        return self._session_id in await self._runtime.sessions.list_active()

    async def _listen(self, reader: "LiveReader") -> bytes:
        """The next live frames; none if there are none for a while."""
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                frames = await reader.next()
        except TimeoutError:
            frames = None
        self._changed = self._changed or not frames
        return frames or b""

    async def _end(self) -> JsonObject:
        waits = await requests.list_interrupts(self._runtime, self._session_id)
        if waits:
            outcome: JsonObject = {"type": "interrupt", "interrupts": [*waits]}
            return {"type": "RUN_FINISHED", **self._named, "outcome": outcome}
        if self._translation.failure is not None:
            return {"type": "RUN_ERROR", "message": self._translation.failure, "code": "failed"}
        return {"type": "RUN_FINISHED", **self._named, "outcome": {"type": "success"}}

    async def _catch_up(self) -> AsyncGenerator[JsonObject]:
        """What the log has beyond the last durable event."""
        more = True
        while more and not self._translation.is_over:
            items, more = await self._runtime.sessions.history(
                self._session_id,
                after=self._translation.after,
                limit=limits.HISTORY_ITEMS_MAX,
            )
            for item in items:
                for event in self._translation.translate(codec.decode_any(item)):
                    yield event

    def _read(self, frames: bytes) -> list[JsonObject]:
        """The events of this Session; notes whether it may rest now, or wait for a person."""
        found: list[JsonObject] = []
        marker = self._session_id.encode()
        for frame in frames.split(_SEPARATOR):
            # A request may be of a Session below this one.
            self._changed = self._changed or any(kind in frame for kind in _DECISIVE)
            if marker in frame:
                event: JsonValue = codec.decode_any(frame.removeprefix(b"data: "))
                data: JsonValue = event.get("data") if jsonc.is_object(event) else None
                is_own = jsonc.is_object(data) and data.get("sessionID") == self._session_id
                if jsonc.is_object(event) and is_own:
                    found.append(event)
        return found


async def _open_session(runtime: "Runtime", thread: str, location: LocationRef) -> SessionID:
    """The Session of a thread: the one with this id, or the one that is made for it."""
    if ids.well_formed("ses", thread) and await runtime.sessions.exists(SessionID(thread)):
        return SessionID(thread)
    session_id = ids.session_from_external(f"{_KEY}\0{thread}")
    await runtime.sessions.create(id=session_id, location=location)
    return session_id


def _find_prompt(asked: RunAgent) -> AgUiMessage:
    for message in reversed(asked.messages):
        if message.role == "user":
            return message
    raise _refused("There is no message of the user")


def _messages_before(asked: RunAgent, prompt: AgUiMessage) -> list[JsonValue]:
    """The messages up to the prompt, as they were sent."""
    end = max(index for index, message in enumerate(asked.messages) if message.id == prompt.id)
    return [codec.decode_any(codec.encode(message)) for message in asked.messages[: end + 1]]


def _read_prompt(message: AgUiMessage) -> PromptInput:
    content = message.content
    if isinstance(content, str):
        return PromptInput(content)
    texts: list[str] = []
    files: list[FileInput] = []
    for part in content if jsonc.is_list(content) else []:
        if not jsonc.is_object(part):
            raise _refused("A part of the message is no object")
        if part.get("type") == "text":
            texts.append(str(part.get("text", "")))
        else:
            files.append(FileInput(uri=_address(part)))
    if not texts and not files:
        raise _refused("The message of the user is empty")
    return PromptInput("\n".join(texts), tuple(files)) if files else PromptInput("\n".join(texts))


def _address(part: JsonObject) -> str:
    source: JsonValue = part.get("source")
    value: JsonValue = source.get("value") if jsonc.is_object(source) else None
    if not jsonc.is_object(source) or not isinstance(value, str):
        raise _refused("A part of the message has no `source`")
    if source.get("type") == "url":
        return value
    media = str(source.get("mimeType") or "application/octet-stream")
    return f"data:{media};base64,{value}"


def _refused(message: str) -> InvalidRequestError:
    return InvalidRequestError(message, kind="Payload", field="messages")


def _frame(event: JsonObject) -> bytes:
    return sse.write(codec.encode(event))
