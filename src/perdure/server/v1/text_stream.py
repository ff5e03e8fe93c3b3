"""Translates the deltas of a text, which most live events are, without decoding all of them.

A delta names its part by three ids, which are the same for all deltas of a text. What V1 says about
the part is made once; the rest are bytes that are put together. A frame that is not as the hub
writes it is left to the ordinary translation.
"""

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from perdure.schema import codec
from perdure.schema.codec import Record
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.value import Value

_START: Final = b'{"id":'
_TYPE: Final = b',"type":"session.next.text.delta",'
_TYPE_WITHIN: Final = 120
"""Bytes of a frame in which its type stands: the id before it is short."""
_DATA: Final = b'"data":'
_IDS: Final = b'"sessionID":'
_DELTA: Final = b',"delta":'
_CURSOR: Final = b',"cursor":'


class _Delta(Record):
    session_id: SessionID
    assistant_message_id: MessageID
    text_id: str


class _Envelope(Record):
    data: _Delta
    location: LocationRef | UnsetType = UNSET


_ENVELOPES: Final = msgspec.json.Decoder(_Envelope)


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
        self._ids = b""
        """The ids of its deltas, as the hub writes them; empty if there was none."""
        self._place = b""
        self._location: LocationRef | None = None
        self._head = b""

    def forget(self) -> None:
        self._ids = b""

    def begin(self, data: bytes, place: TextPlace, part_id: str) -> None:
        """Say which part of V1 the deltas with the ids and the place of this one are for."""
        at = data.index(_IDS)
        self._ids = data[at : data.index(_DELTA, at)]
        self._place = data[data.index(_TYPE) + len(_TYPE) : data.rindex(_DATA, 0, at)]
        location = _ENVELOPES.decode(data).location
        self._location = None if location is UNSET else location
        self._head = b'{"sessionID":%b,"messageID":%b,"partID":%b,"field":"text","delta":' % tuple(
            map(codec.encode, (place.session_id, place.message_id, part_id))
        )

    def translate(self, data: bytes) -> TranslatedDelta | TextPlace | None:
        """The V1 events of a delta; its place if `begin` must be called first, None for others."""
        kind = data.find(_TYPE, 0, _TYPE_WITHIN)
        at = data.find(_IDS, kind)
        delta, end = data.find(_DELTA, at), data.rfind(_CURSOR)
        if kind < 0 or not at < delta < end or not data.startswith(_START):
            return None
        content = data.rfind(_DATA, kind, at)
        place = data[kind + len(_TYPE) : content]
        if data[at:delta] != self._ids or place != self._place:
            found = _ENVELOPES.decode(data).data
            return TextPlace(found.session_id, found.assistant_message_id, found.text_id)
        event_id = data[len(_START) : kind]
        same = b'{"id":%b%b"properties":%b' % (event_id, _TYPE, data[content + len(_DATA) :])
        v1 = b'{"id":%b,"type":"message.part.delta","properties":%b%b}}' % (
            event_id,
            self._head,
            data[delta + len(_DELTA) : end],
        )
        return TranslatedDelta(self._location, (same, v1))
