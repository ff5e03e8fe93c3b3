"""Permissions, seen from a Session (`sessions.permissions`) and from a Location (`permissions`)."""

from collections.abc import Sequence
from typing import Unpack

from perdure.client.groups import LocationQuery, location_query
from perdure.client.wire import CallOptions, Wire, data_of, items_of, present, segment
from perdure.schema.codec import JsonObject
from perdure.schema.permission import Reply


class SessionPermissions:
    """What one Session waits for. A request that is settled is gone."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def create(
        self,
        session_id: str,
        asked: JsonObject,
        *,
        id: str | None = None,
        agent: str | None = None,
        options: CallOptions | None = None,
    ) -> JsonObject:
        """Have the rules decide on `asked`: an action and its resources.

        The answer is an id and the effect; a request of that id is pending only after `ask`.
        """
        body = {**asked, **present({"id": id, "agent": agent})}
        return data_of(await self._wire.post(_path(session_id), body, options=options))

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


class Permissions:
    """What a Location waits for, and what a project was allowed for good."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def requests(
        self, *, options: CallOptions | None = None, **location: Unpack[LocationQuery]
    ) -> tuple[JsonObject, ...]:
        path = "/api/permission/request"
        return items_of(await self._wire.get(path, location_query(location), options=options))

    async def saved(
        self,
        project_id: str | None = None,
        *,
        options: CallOptions | None = None,
        **location: Unpack[LocationQuery],
    ) -> tuple[JsonObject, ...]:
        """Approvals of a project; without one, of the project that the Location belongs to."""
        query = {"projectID": project_id, **location_query(location)}
        return items_of(await self._wire.get("/api/permission/saved", query, options=options))

    async def remove_saved(self, rule_id: str, *, options: CallOptions | None = None) -> None:
        """Forget an approval. One that is gone already is no error."""
        await self._wire.delete(f"/api/permission/saved/{segment(rule_id)}", options=options)


def _path(session_id: str, *rest: str) -> str:
    parts = (session_id, "permission", *rest)
    return "/api/session/" + "/".join(segment(part) for part in parts)
