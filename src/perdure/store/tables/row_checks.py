"""Checks of stored JSON: a damaged row becomes an error that names it.

Every row that holds JSON is read through one of these functions. They raise DamagedRowError, which
names the Session, the table and the sequence, so that a damaged row affects only what needs it.
They repair nothing: see store.log.repair.

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

# Validates JSON without building objects, in about the time it takes to copy the bytes.
_WELL_FORMED: Final = msgspec.json.Decoder(msgspec.Raw)
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def require_bytes(
    value: SqlValue, session_id: SessionID, *, table: str, seq: int | None = None
) -> bytes:
    """The bytes of a row, not checked for JSON."""
    if not isinstance(value, bytes):
        raise DamagedRowError(
            session_id, table=table, seq=seq, reason=f"JSON expected, found {_kind(value)}"
        )
    return value


def require_json(
    value: SqlValue, session_id: SessionID, *, table: str, seq: int | None = None
) -> bytes:
    """The bytes of a row, checked to be one JSON value."""
    data = require_bytes(value, session_id, table=table, seq=seq)
    try:
        # Decoded first: the JSON decoder accepts bytes that are not UTF-8.
        _WELL_FORMED.decode(data.decode())
    except _UNREADABLE as error:
        raise DamagedRowError(session_id, table=table, seq=seq, reason=str(error)) from error
    return data


def decode_row(
    kind: type[T], value: SqlValue, session_id: SessionID, *, table: str, seq: int | None = None
) -> T:
    """The decoded value of a row."""
    data = require_bytes(value, session_id, table=table, seq=seq)
    try:
        return codec.decode(kind, data)
    except _UNREADABLE as error:
        raise DamagedRowError(session_id, table=table, seq=seq, reason=str(error)) from error


def decode_event(
    stored: SqlValue, value: SqlValue, session_id: SessionID, *, seq: int | None
) -> SessionEvent:
    """The event of a log row, upcast to its current shape."""
    data = require_json(value, session_id, table="event", seq=seq)
    try:
        event = manifest.decode(str(stored), data)
    except (UnknownEventError, *_UNREADABLE) as error:
        raise DamagedRowError(session_id, table="event", seq=seq, reason=str(error)) from error
    if event.session_id != session_id:
        reason = f"it names session {event.session_id}"
        raise DamagedRowError(session_id, table="event", seq=seq, reason=reason)
    return event


def require_event_name(stored: SqlValue, session_id: SessionID, *, seq: int) -> str:
    """The type name and version of a log row, without decoding its data."""
    name = str(stored)
    if name not in manifest.BY_STORED and name not in manifest.UPCASTS:
        reason = str(UnknownEventError(name))
        raise DamagedRowError(session_id, table="event", seq=seq, reason=reason)
    return name


def _kind(value: SqlValue) -> str:
    return "nothing" if value is None else type(value).__name__
