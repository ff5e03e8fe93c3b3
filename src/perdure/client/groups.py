"""The groups beside `sessions`: permissions, questions, events, the catalog, health."""

from collections.abc import AsyncGenerator
from typing import TypedDict, Unpack

from perdure.client.wire import CallOptions, Query, Wire, data_of, items_of, segment
from perdure.schema.codec import JsonObject


class LocationQuery(TypedDict, total=False):
    """Which Location is meant; the server's own when nothing is said."""

    directory: str
    workspace: str


class _Group:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire


class Permissions(_Group):
    """What a Location waits for, and what a project was allowed for good."""

    async def requests(
        self, *, options: CallOptions | None = None, **location: Unpack[LocationQuery]
    ) -> tuple[JsonObject, ...]:
        path = "/api/permission/request"
        return items_of(await self._wire.get(path, _query(location), options=options))

    async def saved(
        self,
        project_id: str | None = None,
        *,
        options: CallOptions | None = None,
        **location: Unpack[LocationQuery],
    ) -> tuple[JsonObject, ...]:
        """Approvals of a project; without one, of the project that the Location belongs to."""
        query = {"projectID": project_id, **_query(location)}
        return items_of(await self._wire.get("/api/permission/saved", query, options=options))

    async def remove_saved(self, rule_id: str, *, options: CallOptions | None = None) -> None:
        """Forget an approval. One that is gone already is no error."""
        await self._wire.delete(f"/api/permission/saved/{segment(rule_id)}", options=options)


class Questions(_Group):
    async def requests(
        self, *, options: CallOptions | None = None, **location: Unpack[LocationQuery]
    ) -> tuple[JsonObject, ...]:
        """What the Sessions of a Location want to know."""
        path = "/api/question/request"
        return items_of(await self._wire.get(path, _query(location), options=options))


class Events(_Group):
    def subscribe(
        self, *, options: CallOptions | None = None, **location: Unpack[LocationQuery]
    ) -> AsyncGenerator[JsonObject]:
        """What happens in the server from now on. Nothing is replayed."""
        return self._wire.stream("/api/event", _query(location), options=options)


class Agents(_Group):
    async def list(
        self, *, options: CallOptions | None = None, **location: Unpack[LocationQuery]
    ) -> tuple[JsonObject, ...]:
        return items_of(await self._wire.get("/api/agent", _query(location), options=options))


class Models(_Group):
    async def list(
        self, *, options: CallOptions | None = None, **location: Unpack[LocationQuery]
    ) -> tuple[JsonObject, ...]:
        return items_of(await self._wire.get("/api/model", _query(location), options=options))


class Providers(_Group):
    async def list(
        self, *, options: CallOptions | None = None, **location: Unpack[LocationQuery]
    ) -> tuple[JsonObject, ...]:
        return items_of(await self._wire.get("/api/provider", _query(location), options=options))

    async def get(
        self,
        provider_id: str,
        *,
        options: CallOptions | None = None,
        **location: Unpack[LocationQuery],
    ) -> JsonObject:
        path = f"/api/provider/{segment(provider_id)}"
        return data_of(await self._wire.get(path, _query(location), options=options))


class Skills(_Group):
    async def list(
        self, *, options: CallOptions | None = None, **location: Unpack[LocationQuery]
    ) -> tuple[JsonObject, ...]:
        """The skills of a Location, each with its whole text."""
        return items_of(await self._wire.get("/api/skill", _query(location), options=options))


class References(_Group):
    async def list(
        self, *, options: CallOptions | None = None, **location: Unpack[LocationQuery]
    ) -> tuple[JsonObject, ...]:
        return items_of(await self._wire.get("/api/reference", _query(location), options=options))


class Locations(_Group):
    async def get(
        self, *, options: CallOptions | None = None, **location: Unpack[LocationQuery]
    ) -> JsonObject:
        """The Location with its project."""
        return await self._wire.get("/api/location", _query(location), options=options)


class Health(_Group):
    async def get(self, *, options: CallOptions | None = None) -> JsonObject:
        return await self._wire.get("/api/health", options=options)


def _query(location: LocationQuery) -> Query:
    return {f"location[{name}]": str(value) for name, value in location.items()}
