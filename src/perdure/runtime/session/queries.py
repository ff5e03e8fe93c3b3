"""Reads Sessions: rows and events as the store holds them.

A read changes nothing and never waits for a run. runtime.session.sessions changes Sessions.
"""

from collections.abc import AsyncIterator, Sequence
from typing import TypeVar

from msgspec import Raw

from perdure.core import limits
from perdure.core.context import system_context
from perdure.core.context.system_context import ContextEpoch
from perdure.core.session import page_size
from perdure.core.session.history import Cut
from perdure.ports import Transaction
from perdure.runtime.coordination.session_locations import SessionLocations
from perdure.runtime.session.engine_services import GetEngine
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.errors import MessageNotFoundError, SessionNotFoundError
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.query import (
    MessageAnchor,
    MessageRow,
    MessageRows,
    Order,
    SessionAnchor,
    SessionQuery,
    SessionRow,
    SessionRows,
)
from perdure.store.log.event_store import NO_EVENTS, EventStore
from perdure.store.log.follow import EventFollowers
from perdure.store.tables import epoch_table, message_table, session_table

T = TypeVar("T")


class SessionQueries:
    def __init__(
        self,
        store: EventStore,
        tails: EventFollowers,
        known: SessionLocations,
        engine: GetEngine,
    ) -> None:
        self._store = store
        self._database = store.database
        self._tails = tails
        self._known = known
        self._engine = engine

    async def exists(self, session_id: SessionID) -> bool:
        if self._known.location(session_id) is not None:
            return True
        stored = await self._database.read(lambda tx: session_table.load(tx, session_id))
        # A move that was committed during the read has put the newer Location there.
        if stored is not None and self._known.location(session_id) is None:
            self._known.add(session_id, stored.location)
        return stored is not None

    async def get(self, session_id: SessionID) -> bytes:
        found = await self._database.read(lambda tx: session_table.load_json(tx, session_id))
        if found is None:
            raise SessionNotFoundError(session_id)
        return found

    async def list(
        self, query: SessionQuery, *, limit: int, anchor: SessionAnchor | None
    ) -> SessionRows:
        rows = await self._database.read(
            lambda tx: session_table.page(
                tx,
                session_table.make_filter(query),
                newest_first=(query.order == "desc") != _is_backwards(anchor),
                limit=limit + 1,
                anchor=None if anchor is None else _place(anchor),
            )
        )
        page, has_previous, has_next = _page(rows, limit, anchor)
        return SessionRows(
            rows=tuple(
                SessionRow(data=row.data, id=row.id, time_created=row.time_created, place=row.place)
                for row in page
            ),
            has_previous=has_previous,
            has_next=has_next,
        )

    async def messages(
        self,
        session_id: SessionID,
        *,
        limit: int,
        order: Order,
        anchor: MessageAnchor | None,
    ) -> MessageRows:
        newest_first = (order == "desc") != _is_backwards(anchor)
        start = None if anchor is None else Seq(anchor.seq)

        async def job(tx: Transaction) -> tuple[list[message_table.MessageRow], int]:
            await _require_session(tx, session_id)
            sizes = await message_table.page_sizes(
                tx, session_id, newest_first=newest_first, limit=limit, anchor=start
            )
            fitting = page_size.count_fitting(sizes, limit)
            rows = await message_table.page(
                tx, session_id, newest_first=newest_first, limit=fitting + 1, anchor=start
            )
            return rows, fitting

        rows, fitting = await self._database.read(job)
        page, has_previous, has_next = _page(rows, fitting, anchor)
        return MessageRows(
            rows=tuple(MessageRow(data=row.data, id=row.id, seq=row.seq) for row in page),
            has_previous=has_previous,
            has_next=has_next,
        )

    async def message(self, session_id: SessionID, message_id: MessageID) -> bytes:
        async def job(tx: Transaction) -> message_table.MessageRow | None:
            await _require_session(tx, session_id)
            return await message_table.get(tx, session_id, message_id)

        row = await self._database.read(job)
        if row is None:
            raise MessageNotFoundError(session_id, message_id)
        return row.data

    async def context(self, session_id: SessionID) -> tuple[bytes, ...]:
        """Return Session History: the messages that the model is sent, without the baseline."""
        _, messages = await self._load_history(session_id)
        return messages

    async def provider_context(self, session_id: SessionID) -> bytes:
        """Return the JSON of schema.session.request_preview.ProviderContext. Changes nothing."""
        epoch, messages = await self._load_history(session_id)
        told: JsonObject = {"sources": [], "messages": [Raw(data) for data in messages]}
        if epoch is not None:
            told["sources"] = sorted(system_context.decode_snapshot(epoch.snapshot))
            told["baseline"] = epoch.baseline
            told["baselineSeq"] = epoch.baseline_seq
        preview = await self._engine().request_previews.outlook(session_id, epoch)
        return codec.encode(told | preview)

    async def _load_history(
        self, session_id: SessionID
    ) -> tuple[ContextEpoch | None, tuple[bytes, ...]]:
        """Return the Context Epoch and the messages of Session History."""

        async def job(tx: Transaction) -> tuple[ContextEpoch | None, tuple[bytes, ...]]:
            await _require_session(tx, session_id)
            epoch = await epoch_table.get(tx, session_id)
            compaction = await message_table.latest_compaction(tx, session_id)
            cut = Cut(compaction, None if epoch is None else epoch.baseline_seq)
            rows = await message_table.list_after(tx, session_id, NO_EVENTS)
            shown = (row.data for row in rows if cut.shows(seq=row.seq, type=row.type))
            return epoch, tuple(shown)

        return await self._database.read(job)

    async def history(
        self, session_id: SessionID, *, after: int, limit: int
    ) -> tuple[tuple[bytes, ...], bool]:
        """Return public durable events after a sequence, and whether there are more."""
        assert 0 < limit <= limits.HISTORY_ITEMS_MAX
        await self.require_location(session_id)
        # Sequence 0 created the Session and is not public.
        start = Seq(max(after, 0))
        page = await self._store.read_page(session_id, after=start, limit=limit)
        # A damaged row counts as more: the request for it tells the client what is wrong.
        return tuple(wire for _, wire in page.rows), page.has_more

    async def events(
        self, session_id: SessionID, *, after: int, marks_replay: bool = False
    ) -> AsyncIterator[bytes]:
        """Replay after a sequence, then follow. Each item is one or more complete frames."""
        await self.require_location(session_id)
        async for frames in self._tails.follow(
            session_id, after=Seq(after), marks_replay=marks_replay
        ):
            yield frames

    async def require_location(self, session_id: SessionID) -> LocationRef:
        """Return where a Session works. Raises SessionNotFoundError."""
        if not await self.exists(session_id):
            raise SessionNotFoundError(session_id)
        location = self._known.location(session_id)
        assert location is not None
        return location


def _place(anchor: SessionAnchor) -> session_table.SessionPlace:
    return session_table.SessionPlace(anchor.time, anchor.place, anchor.id)


def _is_backwards(anchor: SessionAnchor | MessageAnchor | None) -> bool:
    return anchor is not None and anchor.direction == "previous"


def _page(
    rows: Sequence[T], limit: int, anchor: SessionAnchor | MessageAnchor | None
) -> tuple[Sequence[T], bool, bool]:
    """Return the page, and whether there are rows before and after it.

    `rows` has one row more than the page, if there is one.
    """
    page, more = rows[:limit], len(rows) > limit
    if _is_backwards(anchor):
        return page[::-1], more, True
    return page, anchor is not None, more


async def _require_session(tx: Transaction, session_id: SessionID) -> None:
    if await session_table.load_json(tx, session_id) is None:
        raise SessionNotFoundError(session_id)
