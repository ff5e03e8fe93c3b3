"""An answer while its parts arrive: durable events, and fragments of the parts that are open.

A fragment costs the same however long the text and however many the parts are. Fragments count
from 1 in each part; one that does not follow the last is left out, and the whole text, which the
log gives at the end of the part, brings what is missing.
"""

from typing import Final, assert_never

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from perdure.core.session import projection
from perdure.core.session.part_list import PartList
from perdure.core.transcript.change import (
    Change,
    MessageChanged,
    PartAdded,
    PartChanged,
    TextAppended,
    TextKind,
)
from perdure.schema.ids import MessageID
from perdure.schema.live_event import ReasoningDelta, TextDelta, ToolInputDelta
from perdure.schema.session import event as events
from perdure.schema.session.event import AssistantEvent, PartEvent
from perdure.schema.session.message import (
    AssistantMessage,
    AssistantPart,
    ReasoningPart,
    TextPart,
    ToolPart,
)
from perdure.schema.session.tool import PendingState
from perdure.schema.value import State

Delta = TextDelta | ReasoningDelta | ToolInputDelta

_KINDS: Final[dict[type[AssistantPart], TextKind]] = {
    TextPart: "text",
    ReasoningPart: "reasoning",
    ToolPart: "input",
}


class _OpenText(State):
    pieces: list[str]
    cursor: int

    @property
    def text(self) -> str:
        # Joined once: the next reader goes on from here.
        self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0]


class StreamedAnswer:
    def __init__(self, message: AssistantMessage) -> None:
        self._message = message
        self._parts = PartList(message.content)
        self._texts: dict[tuple[TextKind, str], _OpenText] = {}
        for part in message.content:
            self._open(part)

    @property
    def id(self) -> MessageID:
        return self._message.id

    @property
    def message(self) -> AssistantMessage:
        """The message as it is now, with what its open parts say so far."""
        content = tuple(self._shown(part) for part in self._parts.content)
        return replace(self._message, content=content)

    def mark(self, message: AssistantMessage) -> None:
        """Take over another state of the same message; its open texts stay."""
        self._message, self._parts = message, PartList(message.content)

    def append(self, delta: Delta) -> tuple[Change, ...]:
        kind, part_id = _place(delta)
        text = self._texts.get((kind, part_id))
        if text is None or delta.cursor != text.cursor + 1:
            return ()
        text.pieces.append(delta.delta)
        text.cursor = delta.cursor
        return (TextAppended(self.id, kind, part_id, delta.delta),)

    def apply(self, event: AssistantEvent) -> tuple[Change, ...]:
        if isinstance(event, events.StepEnded | events.StepFailed):
            self._message = projection.assistant_after(self._message, event)
            return (MessageChanged(self.message),)
        projection.apply_to_parts(self._parts, event)
        return self._changes(event)

    def _changes(self, event: PartEvent) -> tuple[Change, ...]:
        kind, part_id = _place(event)
        part = self._parts.find(_PARTS[kind], part_id)
        if part is None:
            return ()
        match event:
            case events.TextStarted() | events.ReasoningStarted() | events.ToolInputStarted():
                self._texts[kind, part_id] = _OpenText([], 0)
                return (PartAdded(self.id, part),)
            case events.TextEnded(text=whole) | events.ReasoningEnded(text=whole):
                return self._complete(kind, part, whole)
            case events.ToolInputEnded(text=whole):
                return self._complete(kind, part, whole)
            case _:
                self._texts.pop((kind, part_id), None)
                return (PartChanged(self.id, part),)

    def _complete(self, kind: TextKind, part: AssistantPart, whole: str) -> tuple[Change, ...]:
        text = self._texts.pop((kind, part.id), None)
        said = "" if text is None else text.text
        if not whole.startswith(said):
            return (PartChanged(self.id, part, is_rewritten=True),)
        rest = whole[len(said) :]
        missing = (TextAppended(self.id, kind, part.id, rest),) if rest else ()
        return (*missing, PartChanged(self.id, part))

    def _open(self, part: AssistantPart) -> None:
        """Go on with a part of a snapshot that was still streaming."""
        if not isinstance(part.cursor, UnsetType):
            said = _said(part)
            self._texts[_KINDS[type(part)], part.id] = _OpenText([said], part.cursor)

    def _shown(self, part: AssistantPart) -> AssistantPart:
        text = self._texts.get((_KINDS[type(part)], part.id))
        if text is None or text.cursor == 0:
            return part if part.cursor is UNSET else replace(part, cursor=UNSET)
        if not isinstance(part, ToolPart):
            return replace(part, text=text.text, cursor=text.cursor)
        return replace(part, state=PendingState(input=text.text), cursor=text.cursor)


_PARTS: Final[dict[TextKind, type[AssistantPart]]] = {kind: part for part, kind in _KINDS.items()}


def _place(event: Delta | PartEvent) -> tuple[TextKind, str]:
    match event:
        case TextDelta(text_id=id) | events.TextStarted(text_id=id) | events.TextEnded(text_id=id):
            return "text", id
        case (
            ReasoningDelta(reasoning_id=id)
            | events.ReasoningStarted(reasoning_id=id)
            | events.ReasoningEnded(reasoning_id=id)
        ):
            return "reasoning", id
        case ToolInputDelta() | events.ToolFact():
            return "input", event.call_id
        case _:
            assert_never(event)


def _said(part: AssistantPart) -> str:
    if not isinstance(part, ToolPart):
        return part.text
    return part.state.input if isinstance(part.state, PendingState) else ""
