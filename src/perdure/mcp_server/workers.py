"""Sessions as workers: started, sent to, waited for and read through a client of Perdure.

Ids are made from the keys of the caller, so that a call that is repeated, by whichever process,
finds what the first one did. Nothing of a Session is kept here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, cast

from msgspec import UNSET

from perdure.client import ClientError, DeclaredError, WireClient
from perdure.core import limits
from perdure.core.text import jsonc
from perdure.host.mcp.result_marks import ResultMarks
from perdure.mcp_server import requests
from perdure.mcp_server.arguments import (
    ListSessions,
    ReadResult,
    ReplyToRequest,
    SendPrompt,
    StartSession,
)
from perdure.schema import ids
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.prompt import Delivery
from perdure.schema.value import Value

if TYPE_CHECKING:
    from perdure.client.generated import types

_START: Final = "mcp-server/start"
_CONFLICT: Final = "ConflictError"
_SEND: Final = "mcp-server/send"

Report = Callable[[str], Awaitable[None]]
"""Tells the waiting client what the Session does."""


class WorkerError(Exception):
    """The call cannot be done; the message says what to do."""


class Pending(Value):
    """What a Session waits for a person for."""

    permissions: tuple[JsonObject, ...]
    questions: tuple[JsonObject, ...]

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(str(one["id"]) for one in (*self.permissions, *self.questions))

    def shown(self) -> list[JsonValue]:
        return [
            *map(requests.show_permission, self.permissions),
            *map(requests.show_question, self.questions),
        ]


class Workers:
    def __init__(self, client: WireClient, marks: ResultMarks, directory: str | None) -> None:
        """`directory`: where Sessions work that name none; None for that of the server."""
        self._client = client
        self._marks = marks
        self._directory = directory

    async def start(self, asked: StartSession) -> JsonObject:
        key = None if asked.key is UNSET else f"{_START}\0{asked.key}"
        session_id = None if key is None else ids.session_from_external(key)
        existed = session_id is not None and await self._find(session_id) is not None
        directory = self._directory if asked.directory is UNSET else asked.directory
        session = await self._client.sessions.create(
            id=session_id,
            location=None if directory is None else {"directory": directory},
            model=None if asked.model is UNSET else _model(asked.model),
            agent=None if asked.agent is UNSET else asked.agent,
            title=None if asked.title is UNSET else asked.title,
        )
        await self._prompt(
            session["id"],
            asked.prompt,
            id=None if key is None else ids.message_from_external(key),
        )
        return {
            "session": session["id"],
            "created": not existed,
            "directory": session["location"]["directory"],
            "next": "session_wait",
        }

    async def send(self, asked: SendPrompt) -> JsonObject:
        key = f"{_SEND}\0{asked.session}\0{asked.key}"
        message = None if asked.key is UNSET else ids.message_from_external(key)
        receipt = await self._prompt(
            asked.session, asked.prompt, id=message, delivery=asked.delivery
        )
        return {"session": asked.session, "message": receipt, "next": "session_wait"}

    async def reply(self, asked: ReplyToRequest) -> JsonObject:
        if (asked.reply is UNSET) == (asked.answers is UNSET):
            raise WorkerError("Give `reply` for a permission, or `answers` for questions.")
        sessions = self._client.sessions
        if asked.reply is not UNSET:
            message = None if asked.message is UNSET else asked.message
            await sessions.permissions.reply(
                asked.session, asked.request, asked.reply, message=message
            )
        else:
            given = () if asked.answers is UNSET else asked.answers
            await sessions.questions.reply(asked.session, asked.request, given)
        return {"session": asked.session, "request": asked.request, "answered": True}

    async def list(self, asked: ListSessions) -> JsonObject:
        directory = None if asked.directory is UNSET else asked.directory
        found = await self._client.sessions.list(
            limit=asked.limit, order="desc", directory=directory
        )
        active = await self._client.sessions.active()
        shown: list[JsonValue] = [
            {
                "session": one["id"],
                "title": one["title"],
                "directory": one["location"]["directory"],
                "state": "running" if one["id"] in active else "idle",
            }
            for one in found.items
        ]
        return {"sessions": shown}

    async def pending(self, session_id: str) -> Pending:
        sessions = self._client.sessions
        return Pending(
            cast("tuple[JsonObject, ...]", await sessions.permissions.list(session_id)),
            cast("tuple[JsonObject, ...]", await sessions.questions.list(session_id)),
        )

    async def require(self, session_id: str) -> JsonObject:
        """The Session. Raises WorkerError if there is none."""
        session = await self._find(session_id)
        if session is None:
            self._marks.forget(session_id)
            raise WorkerError(f"There is no session {session_id[:100]}. List them: session_list")
        return session

    async def wait(self, session_id: str, seconds: float, report: Report) -> bool:
        """Wait until the Session is idle, or waits for a person; returns whether it is idle."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    try:
                        return await self._wait_connected(session_id, report)
                    except ClientError:
                        # A server that restarts: the Session goes on when it is back.
                        await asyncio.sleep(limits.MCP_SERVER_PAUSE_SECONDS)
        except TimeoutError:
            return False

    async def result(self, asked: ReadResult, *, idle: bool | None = None) -> JsonObject:
        """The state and the newest answer of a Session."""
        session_id = asked.session
        session = await self.require(session_id)
        if idle is None:
            idle = session_id not in await self._client.sessions.active()
        pending = await self.pending(session_id)
        shown: JsonObject = {"session": session_id, "title": session["title"], "state": "running"}
        if pending.ids:
            return {**shown, "state": "waiting", "waits_for": pending.shown()}
        if not idle:
            return shown
        return {**shown, **await self._answer(asked)}

    async def _answer(self, asked: ReadResult) -> JsonObject:
        page = await self._client.sessions.messages(
            asked.session, order="desc", limit=limits.MCP_SERVER_MESSAGES_READ
        )
        newest: JsonObject | None = None
        for message in cast("tuple[JsonObject, ...]", page.items):
            if message["type"] == "user":
                break
            if message["type"] == "assistant":
                newest = newest or message
                text = _text_of(message)
                if text:
                    return self._told(asked, str(newest["id"]), text, newest)
        if newest is None:
            return {"state": "idle", "result": None}
        return self._told(asked, str(newest["id"]), "", newest)

    def _told(self, asked: ReadResult, result_id: str, text: str, newest: JsonObject) -> JsonObject:
        part = text[asked.offset : asked.offset + limits.MCP_SERVER_ANSWER_CHARS]
        # Marked before it is sent: one that gets lost on the way is sent again, and says so.
        first = self._marks.claim(asked.session, result_id) if asked.offset == 0 else False
        told: JsonObject = {
            "state": "idle",
            "result": part,
            "result_id": result_id,
            "delivered": "now" if first else "before",
        }
        end = asked.offset + len(part)
        if end < len(text):
            told["cut"] = f"{len(text) - end} more characters: session_result with offset {end}"
        error: JsonValue = newest.get("error")
        if jsonc.is_object(error):
            told["state"], told["error"] = "failed", error.get("message")
        return told

    async def _wait_connected(self, session_id: str, report: Report) -> bool:
        try:
            async with asyncio.TaskGroup() as group:
                resting = group.create_task(
                    self._client.sessions.wait(session_id), name="end of a Session"
                )
                asking = group.create_task(self._follow(session_id, report), name="requests")
                await asyncio.wait((resting, asking), return_when=asyncio.FIRST_COMPLETED)
                idle = resting.done()
                resting.cancel()
                asking.cancel()
        except ExceptionGroup as failed:
            raise _first(failed) from failed
        return idle

    async def _follow(self, session_id: str, report: Report) -> None:
        """Report what happens, until there is a request to a person."""
        async with aclosing(self._client.events.subscribe()) as events:
            async for event in events:
                seen = cast("JsonObject", event)
                kind, data = str(seen["type"]), seen.get("data")
                asks = kind.endswith(".asked") or kind == "server.connected"
                if asks and (await self.pending(session_id)).ids:
                    return
                if kind == "server.connected":
                    await report("works")
                if jsonc.is_object(data) and data.get("sessionID") == session_id:
                    told = _progress(kind, data)
                    if told is not None:
                        await report(told)
        raise ClientError("transport", "the stream of events has ended")

    async def _prompt(
        self,
        session_id: str,
        text: str,
        *,
        id: str | None,
        delivery: Delivery | None = None,
    ) -> str:
        try:
            receipt = await self._client.sessions.prompt(
                session_id,
                text=text,
                id=id,
                delivery=delivery,
            )
        except DeclaredError as error:
            if error.tag == _CONFLICT:
                raise WorkerError("This key was used before, for another prompt.") from error
            raise
        return receipt["id"]

    async def _find(self, session_id: str) -> JsonObject | None:
        try:
            return cast("JsonObject", await self._client.sessions.get(session_id))
        except DeclaredError as error:
            if error.tag == "SessionNotFoundError":
                return None
            raise


def _first(failed: Exception) -> Exception:
    if isinstance(failed, ExceptionGroup):
        group = cast("ExceptionGroup[Exception]", failed)
        return _first(group.exceptions[0])
    return failed


def _model(name: str) -> "types.ModelRef":
    provider, slash, model = name.partition("/")
    if not (provider and slash and model):
        raise WorkerError("Write the model as provider/model.")
    return {"providerID": provider, "id": model}


def _text_of(message: JsonObject) -> str:
    content: JsonValue = message.get("content")
    parts = content if jsonc.is_list(content) else []
    texts = (
        str(part.get("text", ""))
        for part in parts
        if jsonc.is_object(part) and part.get("type") == "text"
    )
    return "\n".join(text for text in texts if text)


def _progress(kind: str, data: JsonObject) -> str | None:
    match kind.removeprefix("session.next."):
        case "tool.called":
            return f"uses {data.get('tool')}"
        case "step.started":
            return "thinks"
        case "text.started":
            return "writes"
        case "retry.scheduled" | "retried":
            return "waits for its provider"
        case _:
            return None
