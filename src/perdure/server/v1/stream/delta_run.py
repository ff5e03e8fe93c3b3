"""Translates deltas, which most live events are, many at once and without decoding them.

A delta names its part by ids that are the same for all deltas of the part. What V1 says instead is
made once for each part; a run of frames is then translated by replacing bytes. That is exact,
because no text in JSON contains a line break or a bare quotation mark. A frame that is not as the
hub writes it is left to the ordinary translation.
"""

import re
from collections import OrderedDict
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from perdure.schema import codec
from perdure.schema.codec import Record
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.value import Value

_FRAME_START: Final = rb'data: \{"id":"[^"]*"'
_RUN: Final = re.compile(
    _FRAME_START + rb'(?P<before>,"type":"session\.next\.(?:text|reasoning|tool\.input)\.delta",'
    rb'(?:"location":\{[^\n]*?\},)?"data":\{"timestamp":)\d+'
    rb'(?P<between>,"sessionID":"[^"]*","assistantMessageID":"[^"]*",'
    rb'"(?:text|reasoning|call)ID":"(?:[^"\\]|\\.)*","delta":)[^\n]*\n\n'
    rb"(?:" + _FRAME_START + rb"(?P=before)\d+(?P=between)[^\n]*\n\n)*+"
)
"""The deltas of one part that follow each other."""
_TIMES: Final = re.compile(rb'\{"timestamp":\d+,"sessionID"')
_CURSORS: Final = re.compile(rb',"cursor":\d+\}\}\n\n')
_PARTS_MAX: Final = 256


class DeltaPlace(Record):
    """The ids by which a delta names its part; neither id for a call of a tool."""

    session_id: SessionID
    assistant_message_id: MessageID
    text_id: str | UnsetType = UNSET
    reasoning_id: str | UnsetType = UNSET


class _Envelope(Record):
    type: str
    data: DeltaPlace
    location: LocationRef | UnsetType = UNSET


_ENVELOPES: Final = msgspec.json.Decoder(_Envelope)


class DeltaRun(Value):
    """Deltas of one part, as frames of the hub, and the bytes that all of them share."""

    frames: bytes
    before: bytes
    """From the id of the event to the time."""
    between: bytes
    """From the time to the delta."""

    def read_place(self) -> DeltaPlace:
        return self._read().data

    def read_type(self) -> str:
        return self._read().type

    def read_location(self) -> LocationRef | None:
        found = self._read().location
        return None if found is UNSET else found

    def _read(self) -> "_Envelope":
        first = self.frames[len(b"data: ") : self.frames.index(b"\n")]
        return _ENVELOPES.decode(first)


def find_run(frames: bytes, at: int) -> DeltaRun | None:
    """The run of deltas that begins at this place, where a frame begins."""
    found = _RUN.match(frames, at)
    if found is None:
        return None
    return DeltaRun(found[0], found["before"], found["between"])


class DeltaPart(Value):
    """A part that deltas are for, and the bytes of V1 for those that they share."""

    location: LocationRef | None
    same_before: bytes
    """`before` in an event of V2 on a stream of V1."""
    own_before: bytes
    own_between: bytes
    twice: bool
    has_own: bool

    def translate(self, run: DeltaRun) -> bytes:
        """The frames of V1 that say the same as the run."""
        same = run.frames.replace(run.before, self.same_before) if self.twice else b""
        if not self.has_own:
            return same
        own = run.frames.replace(run.before, self.own_before)
        own = _TIMES.sub(b'{"sessionID"', own.replace(run.between, self.own_between))
        return same + _CURSORS.sub(b"}}\n\n", own)


class DeltaParts:
    """The parts whose deltas are known, by what their frames share."""

    def __init__(self) -> None:
        self._parts: OrderedDict[tuple[bytes, bytes], DeltaPart] = OrderedDict()

    def forget(self) -> None:
        self._parts.clear()

    def get(self, run: DeltaRun) -> DeltaPart | None:
        return self._parts.get((run.before, run.between))

    def begin(self, run: DeltaRun, part_id: str | None, *, twice: bool) -> DeltaPart:
        """Say which part of V1 deltas like these are for, if it has one.

        `twice`: they are told in the form of V2 as well.
        """
        place = run.read_place()
        ids = map(codec.encode, (place.session_id, place.assistant_message_id, part_id))
        part = DeltaPart(
            location=run.read_location(),
            same_before=b',"type":"%b","properties":{"timestamp":' % run.read_type().encode(),
            own_before=b',"type":"message.part.delta","properties":{"timestamp":',
            own_between=b',"sessionID":%b,"messageID":%b,"partID":%b,"field":"text","delta":'
            % tuple(ids),
            twice=twice,
            has_own=part_id is not None,
        )
        self._parts[run.before, run.between] = part
        if len(self._parts) > _PARTS_MAX:
            self._parts.popitem(last=False)
        return part
