"""The `sessions.permissions` group: what a Session waits for, and the word that settles it."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict, Unpack

from perdure.client.wire import CallOptions, Wire, data_of, items_of, present, segment
from perdure.schema.codec import JsonObject
from perdure.schema.permission import Reply


class PermissionFields(TypedDict):
    """What is wanted, for which agent. `save` is what a reply of `always` would approve."""

    action: str
    resources: Sequence[str]
    save: NotRequired[Sequence[str]]
    metadata: NotRequired[JsonObject]
    source: NotRequired[JsonObject]
    agent: NotRequired[str]
    id: NotRequired[str]


class SessionPermissions:
    """Requests are there while they wait; one that is settled is gone."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def create(
        self,
        session_id: str,
        *,
        options: CallOptions | None = None,
        **asked: Unpack[PermissionFields],
    ) -> JsonObject:
        """An id and the effect of the rules. A request of that id waits only after `ask`."""
        return data_of(await self._wire.post(_path(session_id), {**asked}, options=options))

    async def list(
        self, session_id: str, *, options: CallOptions | None = None
    ) -> tuple[JsonObject, ...]:
        return items_of(await self._wire.get(_path(session_id), options=options))

    async def get(
        self, session_id: str, request_id: str, *, options: CallOptions | None = None
    ) -> JsonObject:
        return data_of(await self._wire.get(_path(session_id, request_id), options=options))

    async def reply(
        self,
        session_id: str,
        request_id: str,
        reply: Reply,
        *,
        message: str | None = None,
        options: CallOptions | None = None,
    ) -> None:
        """Settle a request. A `reject` stops the run, or with a `message` tells the model why."""
        body = present({"reply": reply, "message": message})
        await self._wire.command(_path(session_id, request_id, "reply"), body, options=options)


def _path(session_id: str, *rest: str) -> str:
    parts = (session_id, "permission", *rest)
    return "/api/session/" + "/".join(segment(part) for part in parts)
