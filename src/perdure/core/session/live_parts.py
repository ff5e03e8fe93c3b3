"""The parts of an answer while they stream: what each says so far, and how many fragments that is.

The number is the part's cursor. A client that joins in the middle is shown the parts as they are
now, each with its cursor, and adds the fragments whose own cursor is greater: it shows the whole
text without a gap and without a repeat. A part stays here until the step is over, because its end
is shown by the log only after a commit.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import UNSET, field
from msgspec.structs import replace

from perdure.schema.session.message import (
    AssistantMessage,
    AssistantPart,
    ReasoningPart,
    TextPart,
    ToolPart,
)
from perdure.schema.session.tool import PendingState
from perdure.schema.value import State, Value

Kind = Literal["text", "reasoning", "input"]
Key = tuple[Kind, str]


class StreamedPart(Value):
    """What a part says so far, and the number of fragments that it was said in."""

    text: str
    cursor: int


_NOTHING_SAID = StreamedPart("", 0)


class _Part(State):
    pieces: list[str] = field(default_factory=list[str])
    cursor: int = 0
    text: str | None = None
    """The whole text, when the part has ended."""


class StreamedParts:
    def __init__(self) -> None:
        self._parts: dict[Key, _Part] = {}
        self._open: dict[Key, _Part] = {}

    def open(self, kind: Kind, id: str) -> bool:
        """Begin a part; False if there was one already."""
        if (kind, id) in self._parts:
            return False
        self._parts[kind, id] = self._open[kind, id] = _Part()
        return True

    def add(self, kind: Kind, id: str, text: str) -> int | None:
        """The cursor of the part after this fragment; None for a part that is not open."""
        part = self._open.get((kind, id))
        if part is None:
            return None
        part.pieces.append(text)
        part.cursor += 1
        return part.cursor

    def close(self, kind: Kind, id: str, text: str | None = None) -> str | None:
        """The whole text, which may be given; None for a part that is not open."""
        part = self._open.pop((kind, id), None)
        if part is None:
            return None
        part.text = "".join(part.pieces) if text is None else text
        part.pieces.clear()
        return part.text

    def said(self, kind: Kind, id: str) -> str:
        """What a part says so far."""
        return _said(self._parts[kind, id])

    def list_open(self, kind: Kind) -> list[str]:
        return [part_id for of, part_id in self._open if of == kind]

    def capture(self) -> dict[Key, StreamedPart]:
        """The parts as they are at this moment."""
        return {key: StreamedPart(_said(part), part.cursor) for key, part in self._parts.items()}


def show(message: AssistantMessage, streamed: Mapping[Key, StreamedPart]) -> AssistantMessage:
    """A message of the log, with what its open parts say so far."""
    return replace(message, content=tuple(_shown(part, streamed) for part in message.content))


def _shown(part: AssistantPart, streamed: Mapping[Key, StreamedPart]) -> AssistantPart:
    match part:
        case TextPart(id=id, text=""):
            said = streamed.get(("text", id), _NOTHING_SAID)
            return replace(part, text=said.text, cursor=said.cursor)
        case ReasoningPart(id=id, text="") if part.time is UNSET or part.time.completed is UNSET:
            said = streamed.get(("reasoning", id), _NOTHING_SAID)
            return replace(part, text=said.text, cursor=said.cursor)
        case ToolPart(id=id, state=PendingState(input="")):
            said = streamed.get(("input", id), _NOTHING_SAID)
            return replace(part, state=PendingState(input=said.text), cursor=said.cursor)
        case _:
            return part


def _said(part: _Part) -> str:
    if part.text is not None:
        return part.text
    # Joined once: the next capture goes on from here.
    part.pieces[:] = ["".join(part.pieces)]
    return part.pieces[0]
