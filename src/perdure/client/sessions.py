"""The `sessions` group: everything a caller can do with a Session."""

from collections.abc import AsyncGenerator
from typing import Literal, TypedDict, Unpack, cast

from perdure.client.errors import ClientError
from perdure.client.session_permissions import SessionPermissions
from perdure.client.session_questions import SessionQuestions
from perdure.client.session_revert import SessionRevert
from perdure.client.wire import CallOptions, Query, Wire, data_of, items_of, present, segment
from perdure.schema.codec import JsonObject
from perdure.schema.page import Page
from perdure.schema.prompt import Delivery
from perdure.schema.value import Value

Order = Literal["asc", "desc"]


class SessionQuery(TypedDict, total=False):
    """Which Sessions to list. A `cursor` is a whole query and stands alone."""

    limit: int
    order: Order
    search: str
    directory: str
    workspace: str
    project: str
    subpath: str
    cursor: str


class MessageQuery(TypedDict, total=False):
    limit: int
    order: Order
    cursor: str


class History(Value, kw_only=True):
    """Durable events in their order, and whether there are later ones already."""

    items: tuple[JsonObject, ...]
    has_more: bool


class Sessions:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.permissions = SessionPermissions(wire)
        self.questions = SessionQuestions(wire)
        self.revert = SessionRevert(wire)

    async def create(
        self,
        *,
        id: str | None = None,
        agent: str | None = None,
        model: JsonObject | None = None,
        location: JsonObject | None = None,
        options: CallOptions | None = None,
    ) -> JsonObject:
        """A new Session; an `id` that exists gives the one that has it."""
        given = {"id": id, "agent": agent, "model": model, "location": location}
        return data_of(await self._wire.post("/api/session", present(given), options=options))

    async def get(self, session_id: str, *, options: CallOptions | None = None) -> JsonObject:
        return data_of(await self._wire.get(_path(session_id), options=options))

    async def list(
        self, *, options: CallOptions | None = None, **query: Unpack[SessionQuery]
    ) -> Page[JsonObject]:
        answer = await self._wire.get("/api/session", cast("Query", query), options=options)
        return _page(answer)

    async def prompt(
        self,
        session_id: str,
        *,
        text: str | None = None,
        prompt: JsonObject | None = None,
        id: str | None = None,
        delivery: Delivery | None = None,
        resume: bool | None = None,
        options: CallOptions | None = None,
    ) -> JsonObject:
        """Admit a prompt; the receipt. `text` is short for a `prompt` of nothing else."""
        if (text is None) == (prompt is None):
            raise TypeError("give either `text` or `prompt`")
        said = {"text": text} if prompt is None else prompt
        given = {"prompt": said, "id": id, "delivery": delivery, "resume": resume}
        path = _path(session_id, "prompt")
        return data_of(await self._wire.post(path, present(given), options=options))

    async def messages(
        self,
        session_id: str,
        *,
        options: CallOptions | None = None,
        **query: Unpack[MessageQuery],
    ) -> Page[JsonObject]:
        """Projected messages, the newest first unless asked otherwise."""
        path = _path(session_id, "message")
        return _page(await self._wire.get(path, cast("Query", query), options=options))

    async def message(
        self, session_id: str, message_id: str, *, options: CallOptions | None = None
    ) -> JsonObject:
        path = _path(session_id, "message", message_id)
        return data_of(await self._wire.get(path, options=options))

    async def provider_context(
        self, session_id: str, *, options: CallOptions | None = None
    ) -> JsonObject:
        """What the model was told, what it would be told next, and the request as it stands."""
        path = _path(session_id, "provider-context")
        return data_of(await self._wire.get(path, options=options))

    async def context(
        self, session_id: str, *, options: CallOptions | None = None
    ) -> tuple[JsonObject, ...]:
        return items_of(await self._wire.get(_path(session_id, "context"), options=options))

    async def history(
        self,
        session_id: str,
        *,
        after: int | None = None,
        limit: int | None = None,
        options: CallOptions | None = None,
    ) -> History:
        answer = await self._wire.get(
            _path(session_id, "history"), {"after": after, "limit": limit}, options=options
        )
        return History(items=items_of(answer), has_more=answer.get("hasMore") is True)

    def events(
        self, session_id: str, *, after: int | None = None, options: CallOptions | None = None
    ) -> AsyncGenerator[JsonObject]:
        """Durable events after a sequence, then those to come. To resume, ask after the last."""
        return self._wire.stream(_path(session_id, "event"), {"after": after}, options=options)

    async def active(self, *, options: CallOptions | None = None) -> JsonObject:
        """What the server's own process is running, by Session id."""
        return data_of(await self._wire.get("/api/session/active", options=options))

    async def interrupt(self, session_id: str, *, options: CallOptions | None = None) -> None:
        await self._wire.command(_path(session_id, "interrupt"), options=options)

    async def compact(self, session_id: str, *, options: CallOptions | None = None) -> None:
        """Condense the older part of what the model is shown; returns when it is done."""
        await self._wire.command(_path(session_id, "compact"), patient=True, options=options)

    async def wait(self, session_id: str, *, options: CallOptions | None = None) -> None:
        """Return when nothing runs for this Session."""
        await self._wire.command(_path(session_id, "wait"), patient=True, options=options)

    async def move(
        self,
        session_id: str,
        directory: str,
        *,
        changes: bool | None = None,
        options: CallOptions | None = None,
    ) -> None:
        """Work in another directory of the project; `changes`: take uncommitted ones along."""
        given = present({"destination": {"directory": directory}, "moveChanges": changes})
        await self._wire.command(_path(session_id, "move"), given, patient=True, options=options)

    async def switch_agent(
        self, session_id: str, agent: str, *, options: CallOptions | None = None
    ) -> None:
        await self._wire.command(_path(session_id, "agent"), {"agent": agent}, options=options)

    async def switch_model(
        self, session_id: str, model: JsonObject, *, options: CallOptions | None = None
    ) -> None:
        await self._wire.command(_path(session_id, "model"), {"model": model}, options=options)


def _path(*segments: str) -> str:
    return "/api/session/" + "/".join(segment(part) for part in segments)


def _page(answer: JsonObject) -> Page[JsonObject]:
    links = answer.get("cursor")
    if not isinstance(links, dict):
        raise ClientError("malformed-response", "The answer holds no `cursor`")
    sides = cast("dict[str, str]", links)
    return Page(items=items_of(answer), previous=sides.get("previous"), next=sides.get("next"))
