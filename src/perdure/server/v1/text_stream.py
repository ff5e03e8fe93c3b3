"""Translates the deltas of a text, which most live events are, without decoding all of them.

A delta names its part by three ids, which are the same for all deltas of a text. What V1 says about
the part is made once; the rest are bytes that are put together.
"""

from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from perdure.schema import codec
from perdure.schema.codec import Record
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.value import Value

_TYPE: Final = b',"type":"session.next.text.delta",'
_TYPE_WITHIN: Final = 120
"""Bytes of a frame in which its type stands: the id before it is short."""


class _Envelope(Record):
    id: Raw
    data: Raw
    location: Raw | UnsetType = UNSET


class _Delta(Record):
    session_id: SessionID
    assistant_message_id: MessageID
    text_id: str
    delta: Raw


_ENVELOPES: Final = msgspec.json.Decoder(_Envelope)
_DELTAS: Final = msgspec.json.Decoder(_Delta)


class TextPlace(Value):
    """The ids by which a delta names its part."""

    session_id: SessionID
    message_id: MessageID
    text_id: str


class TranslatedDelta(Value):
    location: LocationRef | None
    payloads: tuple[bytes, bytes]
    """The event of V2, and that of V1."""


class TextStream:
    """The text that the last delta belonged to."""

    def __init__(self) -> None:
        self._ids: tuple[str, str, str] | None = None
        self._head = b""
        self._location: tuple[bytes, LocationRef] | None = None

    def forget(self) -> None:
        self._ids = None

    def begin(self, place: TextPlace, part_id: str) -> None:
        """Say which part of V1 the deltas of this text are for."""
        self._ids = (place.session_id, place.message_id, place.text_id)
        self._head = b'{"sessionID":%b,"messageID":%b,"partID":%b,"field":"text","delta":' % tuple(
            map(codec.encode, (place.session_id, place.message_id, part_id))
        )

    def translate(self, data: bytes) -> TranslatedDelta | TextPlace | None:
        """The V1 events of a delta; its place if `begin` must be called first, None for others."""
        if data.find(_TYPE, 0, _TYPE_WITHIN) < 0:
            return None
        envelope = _ENVELOPES.decode(data)
        delta = _DELTAS.decode(envelope.data)
        ids = (delta.session_id, delta.assistant_message_id, delta.text_id)
        if ids != self._ids:
            return TextPlace(*ids)
        event_id, told = bytes(envelope.id), bytes(envelope.data)
        same = b'{"id":%b,"type":"session.next.text.delta","properties":%b}' % (event_id, told)
        v1 = b'{"id":%b,"type":"message.part.delta","properties":%b%b}}' % (
            event_id,
            self._head,
            bytes(delta.delta),
        )
        return TranslatedDelta(self._place(envelope.location), (same, v1))

    def _place(self, given: Raw | UnsetType) -> LocationRef | None:
        if given is UNSET:
            return None
        raw = bytes(given)
        if self._location is None or self._location[0] != raw:
            self._location = (raw, codec.decode(LocationRef, raw))
        return self._location[1]
