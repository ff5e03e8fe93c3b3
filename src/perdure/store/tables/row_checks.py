"""Stored rows that cannot be read: each is told by name, so that nothing else suffers for it.

Every row that holds JSON is taken from the database through one of these. They translate whatever
is wrong with it to a DamagedRowError that names the Session, the table and the sequence. They
repair nothing: see store.log.repair.

Invariant: bytes that leave the store are one JSON value in valid UTF-8.
"""

from typing import Final, TypeVar

import msgspec

from perdure.ports import SqlValue
from perdure.schema import codec, manifest
from perdure.schema.errors import DamagedRowError
from perdure.schema.ids import SessionID
from perdure.schema.manifest import UnknownEventError
from perdure.schema.session.event import SessionEvent

T = TypeVar("T")

# Walks over the text without making anything of it: a row is checked in the time it takes to copy.
_WELL_FORMED: Final = msgspec.json.Decoder(msgspec.Raw)
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def found(value: SqlValue, session_id: SessionID, *, table: str, seq: int | None = None) -> bytes:
    """The bytes that a row holds, which may be no JSON."""
    if not isinstance(value, bytes):
        raise DamagedRowError(
            session_id, table=table, seq=seq, reason=f"JSON expected, found {_kind(value)}"
        )
    return value


def whole(value: SqlValue, session_id: SessionID, *, table: str, seq: int | None = None) -> bytes:
    """The JSON that a row holds, to be handed out as it is."""
    data = found(value, session_id, table=table, seq=seq)
    try:
        # By way of text: the walk itself lets bytes pass that are not UTF-8.
        _WELL_FORMED.decode(data.decode())
    except _UNREADABLE as error:
        raise DamagedRowError(session_id, table=table, seq=seq, reason=str(error)) from error
    return data


def decoded(
    kind: type[T], value: SqlValue, session_id: SessionID, *, table: str, seq: int | None = None
) -> T:
    """The value that a row holds, of which nothing else is handed out."""
    data = found(value, session_id, table=table, seq=seq)
    try:
        return codec.decode(kind, data)
    except _UNREADABLE as error:
        raise DamagedRowError(session_id, table=table, seq=seq, reason=str(error)) from error


def event(
    stored: SqlValue, value: SqlValue, session_id: SessionID, *, seq: int | None
) -> SessionEvent:
    """The event that a row of the log holds, upcast to its current shape."""
    data = whole(value, session_id, table="event", seq=seq)
    try:
        found = manifest.decode(str(stored), data)
    except (UnknownEventError, *_UNREADABLE) as error:
        raise DamagedRowError(session_id, table="event", seq=seq, reason=str(error)) from error
    if found.session_id != session_id:
        raise DamagedRowError(
            session_id, table="event", seq=seq, reason=f"it speaks of {found.session_id}"
        )
    return found


def event_name(stored: SqlValue, session_id: SessionID, *, seq: int) -> str:
    """The name and version of an event, without a look at what it says."""
    name = str(stored)
    if name not in manifest.BY_STORED and name not in manifest.UPCASTS:
        reason = str(UnknownEventError(name))
        raise DamagedRowError(session_id, table="event", seq=seq, reason=reason)
    return name


def _kind(value: SqlValue) -> str:
    return "nothing" if value is None else type(value).__name__
