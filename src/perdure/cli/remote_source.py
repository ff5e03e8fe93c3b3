"""Reads Sessions, messages and events through a client, page by page."""

from collections.abc import AsyncIterator
from typing import cast

from perdure.client import WireClient
from perdure.schema.codec import JsonObject

_PAGE_ITEMS = 100


class RemoteSource:
    """Implements cli.session_source.SessionSource."""

    def __init__(self, client: WireClient) -> None:
        self._sessions = client.sessions

    async def sessions(self, limit: int, *, directory: str | None = None) -> tuple[JsonObject, ...]:
        page = await self._sessions.list(limit=min(limit, _PAGE_ITEMS), directory=directory)
        found = [*page.items]
        while page.next is not None and len(found) < limit:
            page = await self._sessions.list(cursor=page.next)
            found.extend(page.items)
        return cast("tuple[JsonObject, ...]", tuple(found[:limit]))

    async def session(self, session_id: str) -> JsonObject:
        return cast("JsonObject", await self._sessions.get(session_id))

    async def messages(self, session_id: str) -> AsyncIterator[JsonObject]:
        page = await self._sessions.messages(session_id, order="asc", limit=_PAGE_ITEMS)
        while True:
            for message in page.items:
                yield cast("JsonObject", message)
            if page.next is None:
                return
            page = await self._sessions.messages(session_id, cursor=page.next)

    async def events(self, session_id: str) -> AsyncIterator[JsonObject]:
        after: int | None = None
        while True:
            history = await self._sessions.history(session_id, after=after, limit=_PAGE_ITEMS)
            for event in history.items:
                yield cast("JsonObject", event)
            if not history.has_more:
                return
            after = history.items[-1]["durable"]["seq"]
