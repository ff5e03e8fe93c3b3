"""Events with decoded data, as the clients give them.

A newer server may send kinds that this version does not know. Their data is an UnknownFact with the
plain JSON, and the stream goes on.
"""

from typing import Final, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from perdure.client.errors import ClientError
from perdure.schema import codec, manifest
from perdure.schema.codec import JsonObject, Record
from perdure.schema.ids import EventID, Seq, SessionID
from perdure.schema.live_event import LIVE_TYPES
from perdure.schema.live_event import LiveEvent as LiveValue
from perdure.schema.location import LocationRef
from perdure.schema.manifest import UnknownEventError
from perdure.schema.session.event import SessionEvent
from perdure.schema.value import Value

T = TypeVar("T")


class UnknownFact(Value):
    """The data of an event that this version has no class for."""

    data: JsonObject


class DurablePlace(Record):
    """Where an event stands in the log of its Session."""

    aggregate_id: SessionID
    seq: Seq
    version: int


class DurableEvent(Value, kw_only=True):
    id: EventID
    type: str
    data: SessionEvent | UnknownFact
    durable: DurablePlace
    location: LocationRef | None = None


class LiveEvent(Value, kw_only=True):
    """`durable` is set if the event is in the log as well."""

    id: EventID
    type: str
    data: LiveValue | SessionEvent | UnknownFact
    durable: DurablePlace | None = None
    location: LocationRef | None = None


class Envelope(Record):
    """An event whose data is not decoded yet."""

    id: EventID
    type: str
    data: msgspec.Raw
    durable: DurablePlace | UnsetType = UNSET
    location: LocationRef | UnsetType = UNSET


def durable_event(envelope: Envelope) -> DurableEvent:
    if envelope.durable is UNSET:
        raise ClientError("malformed-response", f"{envelope.type} has no place in the log")
    return DurableEvent(
        id=envelope.id,
        type=envelope.type,
        data=_stored(envelope, envelope.durable),
        durable=envelope.durable,
        location=_given(envelope.location),
    )


def live_event(envelope: Envelope) -> LiveEvent:
    return LiveEvent(
        id=envelope.id,
        type=envelope.type,
        data=_live(envelope),
        durable=_given(envelope.durable),
        location=_given(envelope.location),
    )


def _live(envelope: Envelope) -> LiveValue | SessionEvent | UnknownFact:
    if envelope.durable is not UNSET:
        return _stored(envelope, envelope.durable)
    shape = _SHAPES.get(envelope.type)
    return _unknown(envelope) if shape is None else codec.decode(shape, bytes(envelope.data))


def _stored(envelope: Envelope, place: DurablePlace) -> SessionEvent | UnknownFact:
    try:
        return manifest.decode(f"{envelope.type}.{place.version}", bytes(envelope.data))
    except UnknownEventError:
        return _unknown(envelope)


def _unknown(envelope: Envelope) -> UnknownFact:
    return UnknownFact(codec.decode(JsonObject, bytes(envelope.data)))


def _given(value: T | UnsetType) -> T | None:
    return None if isinstance(value, UnsetType) else value


_SHAPES: Final[dict[str, type[LiveValue]]] = {name: shape for shape, name in LIVE_TYPES.items()}
