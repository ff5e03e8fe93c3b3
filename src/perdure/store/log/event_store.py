"""The durable log of every Session, and the only way to write it.

An append is one transaction: fences, events, projections and the caller's own statements commit
together or not at all. Sequences start at 0 and have no gap. Listeners are called after the
commit, in commit order. Reads never wait for writes.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec.structs import replace

from perdure.core import limits
from perdure.core.session import page_size
from perdure.ports import Database, IdSource, Processes, Row, Transaction
from perdure.schema import codec, manifest
from perdure.schema.errors import DamagedRowError, SessionNotFoundError
from perdure.schema.ids import EventID, Seq, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.session.event import Deleted, SessionCreated, SessionEvent
from perdure.schema.session.session import SessionInfo
from perdure.schema.value import Value
from perdure.store.log import projector
from perdure.store.log.projection_cache import ProjectionCache
from perdure.store.log.projector import Projected
from perdure.store.processes.lease_table import Lease
from perdure.store.processes.leases import Leases
from perdure.store.tables import attempt_table, row_checks, session_table
from perdure.store.tables.location_table import LocationNumbers

NO_EVENTS: Final = Seq(-1)
_ENDED: Final = manifest.BY_SHAPE[Deleted].stored
_INSERT: Final = """
    INSERT INTO event (session_id, seq, id, type, location, data)
    VALUES (:session_id, :seq, :id, :type, :location, :data)
"""
_SIZES: Final = """
    SELECT length(data) FROM event
    WHERE session_id = :session_id AND seq > :after ORDER BY seq LIMIT :limit
"""
_READ: Final = """
    SELECT seq, id, type, location, data FROM event
    WHERE session_id = :session_id AND seq > :after ORDER BY seq LIMIT :limit
"""


class EventPage(Value, kw_only=True):
    """Events of a log in their public form, each with its sequence."""

    rows: list[tuple[Seq, bytes]]
    has_more: bool
    damaged: DamagedRowError | None = None
    """Why the row after these cannot be read."""


class SequenceConflictError(Exception):
    """Another append came first."""

    def __init__(self, session_id: SessionID, *, expected: Seq, found: Seq) -> None:
        super().__init__(f"{session_id}: expected sequence {expected}, found {found}")
        self.expected = expected
        self.found = found


class StoredEvent(Value):
    """An event with its sequence, and the bytes of its public envelope."""

    seq: Seq
    id: EventID
    event: SessionEvent
    wire: bytes


class Appended(Value):
    events: tuple[StoredEvent, ...]
    lease: Lease | None
    location_number: int | None
    projected: Projected

    @property
    def last_seq(self) -> Seq:
        return self.events[-1].seq


Within = Callable[[Transaction, Seq], Awaitable[None]]
"""Writes operational state in the transaction of an append; gets the last sequence."""
Listener = Callable[[SessionID, tuple[StoredEvent, ...], LocationRef | None], None]
_PreparedEvent = tuple[EventID, str, bytes, SessionEvent]
"""An event with its id, stored name and JSON."""


class EventStore:
    def __init__(
        self,
        database: Database,
        ids: IdSource,
        processes: Processes,
        *,
        piece_events_max: int = limits.APPEND_EVENTS_MAX,
    ) -> None:
        self._database = database
        self._ids = ids
        self._piece_events_max = piece_events_max
        self.leases = Leases(database, processes, is_running=attempt_table.is_running)
        self._locations = LocationNumbers()
        self._projections = ProjectionCache()
        self._listeners: list[Listener] = []
        self._live_listeners: list[Listener] = []

    @property
    def database(self) -> Database:
        return self._database

    def listen(self, listener: Listener, *, live: bool = False) -> None:
        """Call `listener` after every commit made here. It must not raise and must not wait.

        A `live` listener is not called for imported events.
        """
        (self._live_listeners if live else self._listeners).append(listener)

    def new_event_id(self) -> EventID:
        """For an event that is told and not stored."""
        return self._ids.event()

    def first_piece(self, events: Sequence[SessionEvent]) -> Sequence[SessionEvent]:
        """As many of `events` as one append should take; the caller appends the rest after it."""
        return events[: self._piece_events_max]

    async def append(
        self,
        session_id: SessionID,
        events: Sequence[SessionEvent],
        *,
        location: LocationRef | None,
        expected: Seq | None = None,
        running: bool = False,
        copied: bool = False,
        within: Within | None = None,
    ) -> Appended:
        """Append events; they are durable, projected and announced when this returns.

        `expected` fences by sequence. `running` fences by lease: only the process that runs the
        Session may append on the run's behalf; the first such append takes the lease. `copied`
        marks a fork's events, which may be many: only the last one is announced. A caller with
        more events than one append takes makes several (`first_piece`).
        """
        assert 0 < len(events) <= (limits.FORK_EVENTS_MAX if copied else limits.APPEND_EVENTS_MAX)
        # Encoded before the transaction, which stops the writers of all processes.
        prepared = [
            (self._ids.event(), manifest.definition_of(event).stored, codec.encode(event), event)
            for event in events
        ]

        async def job(tx: Transaction) -> Appended:
            lease = await self.leases.hold_within(tx, session_id) if running else None
            found, last_id = await _require_open_log(tx, session_id, events[0])
            if expected is not None and found != expected:
                raise SequenceConflictError(session_id, expected=expected, found=found)
            number = None if location is None else await self._locations.number(tx, location)
            first = Seq(found + 1)
            stored = await _insert(
                tx, session_id, first, prepared, location=location, number=number
            )
            known = self._projections.get(session_id, last_id)
            projected = await projector.project(tx, session_id, first, events, known=known)
            if within is not None:
                await within(tx, Seq(found + len(events)))
            return Appended(stored, lease, number, projected)

        def committed(appended: Appended) -> None:
            if location is not None and appended.location_number is not None:
                self._locations.remember(location, appended.location_number)
            self._projections.keep(session_id, appended.events[-1].id, appended.projected)
            announced = appended.events[-1:] if copied else appended.events
            self.announce(session_id, announced, location)

        return await self._database.write(job, committed=committed)

    def announce(
        self,
        session_id: SessionID,
        events: tuple[StoredEvent, ...],
        location: LocationRef | None,
        *,
        live: bool = True,
    ) -> None:
        """Call the listeners; with `live=False`, not the live ones."""
        for listener in self._listeners:
            listener(session_id, events, location)
        if live:
            for listener in self._live_listeners:
                listener(session_id, events, location)

    async def load_session(self, session_id: SessionID) -> SessionInfo:
        """Raises SessionNotFoundError."""
        return await self._database.read(lambda tx: session_table.require(tx, session_id))

    async def latest(self, session_id: SessionID) -> Seq:
        return await self._database.read(lambda tx: latest_seq(tx, session_id))

    async def read_wire(
        self, session_id: SessionID, *, after: Seq, limit: int
    ) -> list[tuple[Seq, bytes]]:
        """Public events after a sequence, framed around their stored JSON without decoding it."""
        return await self._database.read(lambda tx: self._frame_rows(tx, session_id, after, limit))

    async def read_page(self, session_id: SessionID, *, after: Seq, limit: int) -> EventPage:
        """As `read_wire`, but fewer where they are large, and only those before a damaged row.

        Raises DamagedRowError when the first row after `after` is damaged.
        """

        async def job(tx: Transaction) -> EventPage:
            parameters = {"session_id": session_id, "after": after, "limit": limit + 1}
            sizes = [size for (size,) in await tx.fetch(_SIZES, parameters)]
            count = page_size.count_fitting(sizes, limit)
            rows = await self._frame_rows(tx, session_id, after, count)
            return EventPage(rows=rows, has_more=len(sizes) > count)

        damaged: DamagedRowError | None = None
        while True:
            try:
                page = await self._database.read(job)
            except DamagedRowError as error:
                if error.seq is None or error.seq == after + 1:
                    raise
                limit, damaged = error.seq - after - 1, error
            else:
                # A page that large rows made shorter may end before the damaged one.
                met = damaged if len(page.rows) == limit else None
                return page if met is None else replace(page, damaged=met)

    async def read(
        self, session_id: SessionID, *, after: Seq = NO_EVENTS, limit: int
    ) -> list[tuple[Seq, EventID, SessionEvent]]:
        """Decoded events after a sequence, upcast to their current shape."""

        async def job(tx: Transaction) -> list[tuple[Seq, EventID, SessionEvent]]:
            parameters = {"session_id": session_id, "after": after, "limit": limit}
            return [_decode_row(session_id, row) for row in await tx.fetch(_READ, parameters)]

        return await self._database.read(job)

    async def _frame_rows(
        self, tx: Transaction, session_id: SessionID, after: Seq, limit: int
    ) -> list[tuple[Seq, bytes]]:
        parameters = {"session_id": session_id, "after": after, "limit": limit}
        rows = await tx.fetch(_READ, parameters)
        return [await self._frame_row(tx, session_id, row) for row in rows]

    async def _frame_row(
        self, tx: Transaction, session_id: SessionID, row: Row
    ) -> tuple[Seq, bytes]:
        seq, event_id, stored, number, data = row
        assert isinstance(seq, int)
        location = None
        if isinstance(number, int):
            location = await self._locations.wire(tx, number)
            if location is None:
                reason = f"there is no location {number}"
                raise DamagedRowError(session_id, table="event", seq=seq, reason=reason)
        return Seq(seq), envelope(
            session_id,
            Seq(seq),
            id=str(event_id),
            stored=row_checks.require_event_name(stored, session_id, seq=seq),
            data=row_checks.require_json(data, session_id, table="event", seq=seq),
            location=location,
        )


def envelope(
    session_id: SessionID,
    seq: Seq,
    *,
    id: str,
    stored: str,
    data: bytes,
    location: bytes | None,
) -> bytes:
    """The public JSON of a durable event. Ids and names contain nothing that JSON escapes."""
    name, _, version = stored.rpartition(".")
    head = (
        f'{{"id":"{id}","type":"{name}","durable":'
        f'{{"aggregateID":"{session_id}","seq":{seq},"version":{version}}},'
    ).encode()
    if location is None:
        return b'%b"data":%b}' % (head, data)
    return b'%b"location":%b,"data":%b}' % (head, location, data)


async def has_event_since(
    tx: Transaction, session_id: SessionID, seq: Seq, *shapes: type[SessionEvent]
) -> bool:
    """Whether an event of one of these kinds, in its current version, follows `seq`."""
    names = {manifest.BY_SHAPE[shape].stored for shape in shapes}
    rows = await tx.fetch(
        "SELECT type FROM event WHERE session_id = :id AND seq > :seq",
        {"id": session_id, "seq": seq},
    )
    return any(stored in names for (stored,) in rows)


async def latest_of(
    tx: Transaction, session_id: SessionID, *shapes: type[SessionEvent], newest: int = -1
) -> type[SessionEvent] | None:
    """The kind of the newest event among these kinds, and among so many; None if there is none."""
    names = {manifest.BY_SHAPE[shape].stored: shape for shape in shapes}
    wanted = ", ".join(f"'{name}'" for name in names)
    rows = await tx.fetch(
        "SELECT type FROM (SELECT type FROM event WHERE session_id = :id"
        f" ORDER BY seq DESC LIMIT :newest) WHERE type IN ({wanted}) LIMIT 1",
        {"id": session_id, "newest": newest},
    )
    return names[str(rows[0][0])] if rows else None


async def latest_seq(tx: Transaction, session_id: SessionID) -> Seq:
    rows = await tx.fetch(
        "SELECT seq FROM event WHERE session_id = :session_id ORDER BY seq DESC LIMIT 1",
        {"session_id": session_id},
    )
    if not rows:
        return NO_EVENTS
    assert isinstance(rows[0][0], int)
    return Seq(rows[0][0])


async def _require_open_log(
    tx: Transaction, session_id: SessionID, event: SessionEvent
) -> tuple[Seq, str]:
    """The latest sequence and event; raises SessionNotFoundError for a deleted or missing log."""
    rows = await tx.fetch(
        "SELECT seq, type, id FROM event WHERE session_id = :session_id ORDER BY seq DESC LIMIT 1",
        {"session_id": session_id},
    )
    if not rows:
        # A late append to a deleted Session must not create half a Session.
        if not isinstance(event, SessionCreated):
            raise SessionNotFoundError(session_id)
        return NO_EVENTS, ""
    seq, stored, event_id = rows[0]
    if stored == _ENDED:
        raise SessionNotFoundError(session_id)
    assert isinstance(seq, int)
    return Seq(seq), str(event_id)


async def insert_row(
    tx: Transaction,
    session_id: SessionID,
    *,
    seq: Seq,
    id: EventID,
    stored: str,
    data: bytes,
    location: int | None,
) -> None:
    await tx.execute(
        _INSERT,
        {
            "session_id": session_id,
            "seq": seq,
            "id": id,
            "type": stored,
            "location": location,
            "data": data,
        },
    )


async def _insert(
    tx: Transaction,
    session_id: SessionID,
    first: Seq,
    events: Sequence[_PreparedEvent],
    *,
    location: LocationRef | None,
    number: int | None,
) -> tuple[StoredEvent, ...]:
    location_json = None if location is None else codec.encode(location)
    inserted: list[StoredEvent] = []
    for offset, (event_id, stored, data, event) in enumerate(events):
        assert event.session_id == session_id
        seq = Seq(first + offset)
        await insert_row(
            tx, session_id, seq=seq, id=event_id, stored=stored, data=data, location=number
        )
        wire = envelope(
            session_id, seq, id=event_id, stored=stored, data=data, location=location_json
        )
        inserted.append(StoredEvent(seq, event_id, event, wire))
    return tuple(inserted)


def _decode_row(session_id: SessionID, row: Row) -> tuple[Seq, EventID, SessionEvent]:
    seq, event_id, stored, _, data = row
    assert isinstance(seq, int)
    event = row_checks.decode_event(stored, data, session_id, seq=seq)
    return Seq(seq), EventID(str(event_id)), event
