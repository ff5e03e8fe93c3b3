"""Import a log that was written elsewhere: each event is stored at its own sequence or refused.

An event that is already stored must be equal; a new one must have the next sequence. A log belongs
to the owner that first imported it: events of another owner are ignored, or refused with `strict`.
The payload must name the same Session as its envelope.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final

import msgspec

from perdure.ports import Transaction
from perdure.schema import codec, ids, manifest
from perdure.schema.codec import JsonObject
from perdure.schema.ids import EventID, Seq, SessionID
from perdure.schema.session.event import SessionCreated, SessionEvent
from perdure.schema.value import Value
from perdure.store.log import event_store, projector
from perdure.store.log.event_store import EventStore, StoredEvent
from perdure.store.tables import deletion_table, row_checks

_EVENTS_PER_COMMIT: Final = 500


class ReplayError(Exception):
    """The event was refused, and nothing changed."""


class ReplayedEvent(Value, kw_only=True):
    id: EventID
    type: str
    """The stored type name, with its version."""
    seq: Seq
    session_id: SessionID
    data: JsonObject


async def replay(
    store: EventStore,
    event: ReplayedEvent,
    *,
    owner: str | None = None,
    strict: bool = False,
    publish: bool = False,
) -> bool:
    """Import one event; returns whether it was new.

    Log followers always get it, live readers only with `publish`.
    """
    decoded = _decode(event)

    async def job(tx: Transaction) -> StoredEvent | None:
        taken = await _find_taken(tx, [event.id])
        return await _import_event(tx, event, decoded, owner=owner, strict=strict, taken=taken)

    def committed(stored: StoredEvent | None) -> None:
        if stored is not None:
            store.announce(event.session_id, (stored,), None, live=publish)

    return await store.database.write(job, committed=committed) is not None


async def replay_all(
    store: EventStore,
    events: Sequence[ReplayedEvent],
    *,
    owner: str | None = None,
    strict: bool = False,
    publish: bool = False,
    progress: Callable[[int], None] | None = None,
) -> SessionID | None:
    """Import contiguous events of one Session; returns its id, or None for no events.

    They are stored in parts. A refused event leaves the parts before its own stored, and `progress`
    is told how many events are.
    """
    if not events:
        return None
    session_id, first = events[0].session_id, events[0].seq
    for offset, event in enumerate(events):
        if event.session_id != session_id:
            raise ReplayError(f"events of two sessions: {session_id} and {event.session_id}")
        if event.seq != first + offset:
            raise ReplayError(f"sequence {event.seq} where {first + offset} must be")
    for start in range(0, len(events), _EVENTS_PER_COMMIT):
        part = events[start : start + _EVENTS_PER_COMMIT]
        await _replay_part(store, part, owner=owner, strict=strict, publish=publish)
        if progress is not None:
            progress(start + len(part))
    return session_id


async def _replay_part(
    store: EventStore,
    events: Sequence[ReplayedEvent],
    *,
    owner: str | None,
    strict: bool,
    publish: bool,
) -> None:
    """Import events in one transaction."""
    decoded = [_decode(event) for event in events]

    async def job(tx: Transaction) -> list[StoredEvent]:
        taken = await _find_taken(tx, [event.id for event in events])
        found = [
            await _import_event(tx, event, fact, owner=owner, strict=strict, taken=taken)
            for event, fact in zip(events, decoded, strict=True)
        ]
        return [stored for stored in found if stored is not None]

    def committed(stored: list[StoredEvent]) -> None:
        if stored:
            store.announce(events[0].session_id, tuple(stored), None, live=publish)

    await store.database.write(job, committed=committed)


async def claim(store: EventStore, session_id: SessionID, owner: str) -> None:
    await store.database.write(lambda tx: _set_owner(tx, session_id, owner))


async def remove(store: EventStore, session_id: SessionID) -> None:
    """Delete the log and everything else of its Session, in one transaction."""
    await store.database.write(lambda tx: deletion_table.remove_all(tx, session_id))


def _decode(event: ReplayedEvent) -> SessionEvent:
    # Both go into the public JSON as they are.
    if not (ids.well_formed("evt", event.id) and ids.well_formed("ses", event.session_id)):
        raise ReplayError(f"malformed id: event {event.id!r} of session {event.session_id!r}")
    try:
        decoded = manifest.decode(event.type, codec.encode(event.data))
    except manifest.UnknownEventError as error:
        raise ReplayError(str(error)) from error
    except (msgspec.ValidationError, TypeError, UnicodeEncodeError) as error:
        raise ReplayError(f"{event.type} at {event.seq}: {error}") from error
    if decoded.session_id != event.session_id:
        raise ReplayError(
            f"the event names session {event.session_id}, its payload {decoded.session_id}"
        )
    if isinstance(decoded, SessionCreated) != (event.seq == 0):
        raise ReplayError(f"{event.type} at {event.seq}: a log begins with its session's creation")
    return decoded


async def _import_event(
    tx: Transaction,
    event: ReplayedEvent,
    decoded: SessionEvent,
    *,
    owner: str | None,
    strict: bool,
    taken: Collection[str],
) -> StoredEvent | None:
    latest = await event_store.latest_seq(tx, event.session_id)
    held_by = await _owner(tx, event.session_id)
    foreign = held_by is not None and held_by != owner
    if foreign and strict:
        raise ReplayError(f"owner mismatch: {event.session_id} belongs to {held_by}")
    if event.seq <= latest:
        await _check_same(tx, event)
        if held_by is None and owner is not None:
            await _set_owner(tx, event.session_id, owner)
        return None
    if foreign:
        return None
    if event.seq != latest + 1:
        raise ReplayError(f"sequence mismatch: {event.seq} where {latest + 1} must be")
    if event.id in taken:
        raise ReplayError(f"event id {event.id} is taken")
    if held_by is None and owner is not None:
        await _set_owner(tx, event.session_id, owner)
    data = codec.encode(event.data)
    await event_store.insert_row(
        tx,
        event.session_id,
        seq=event.seq,
        id=event.id,
        stored=event.type,
        data=data,
        location=None,
    )
    await projector.project(tx, event.session_id, event.seq, [decoded])
    wire = event_store.envelope(
        event.session_id, event.seq, id=event.id, stored=event.type, data=data, location=None
    )
    return StoredEvent(event.seq, event.id, decoded, wire)


async def _check_same(tx: Transaction, event: ReplayedEvent) -> None:
    rows = await tx.fetch(
        "SELECT id, type, data FROM event WHERE session_id = :session_id AND seq = :seq",
        {"session_id": event.session_id, "seq": event.seq},
    )
    event_id, stored, value = rows[0]
    data = row_checks.require_json(value, event.session_id, table="event", seq=event.seq)
    if (event_id, stored, codec.decode_any(data)) != (event.id, event.type, event.data):
        raise ReplayError(f"diverged: {event.session_id} has another event at {event.seq}")


async def _owner(tx: Transaction, session_id: SessionID) -> str | None:
    rows = await tx.fetch(
        "SELECT owner FROM event_owner WHERE session_id = :id", {"id": session_id}
    )
    return str(rows[0][0]) if rows else None


async def _set_owner(tx: Transaction, session_id: SessionID, owner: str) -> None:
    await tx.execute(
        "INSERT INTO event_owner (session_id, owner) VALUES (:id, :owner)"
        " ON CONFLICT (session_id) DO UPDATE SET owner = excluded.owner",
        {"id": session_id, "owner": owner},
    )


async def _find_taken(tx: Transaction, ids: Sequence[EventID]) -> set[str]:
    """The ids that stored events have."""
    # One full scan: ids made here cannot collide, so the table has no index for this check.
    rows = await tx.fetch(
        "SELECT id FROM event WHERE id IN (SELECT value FROM json_each(:ids))",
        {"ids": codec.encode(ids).decode()},
    )
    return {str(event_id) for (event_id,) in rows}
