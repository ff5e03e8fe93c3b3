"""An answer that broke off: what was said is kept, and the model goes on with it or begins again.

A model that can is sent what it has said, and its next words join the same text, so that the answer
is there once and whole. Any other is asked once more from the start: the step that broke off is
recorded as failed, stays in the log, and is left out of what the model is sent. An answer that has
begun a call is not asked for again. Waiting and sending is runtime.turn.

Invariant: the events of a continuation never begin a part of the step again.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from perdure.core.session.turn_recorder import TurnRecorder
from perdure.llm import event as llm
from perdure.llm.error import LLMError
from perdure.llm.event import LLMEvent
from perdure.llm.request import AnswerPrefix
from perdure.schema.codec import JsonObject

RESTARTED: Final = "The answer broke off and is asked for again from the start"
CONTINUED: Final = "continued"
"""In the metadata of a retry: the answer goes on where it broke off."""

_NAMED: Final = (
    llm.TextStart,
    llm.TextDelta,
    llm.TextEnd,
    llm.ReasoningStart,
    llm.ReasoningDelta,
    llm.ReasoningEnd,
)


def may_go_on(recorder: TurnRecorder, failure: LLMError) -> bool:
    """Whether the connection broke in the middle of the answer, before it began a call.

    A provider that says why it stops is not asked again: it has refused.
    """
    broke_off = recorder.started and recorder.finish is None
    return broke_off and failure.reason == "transport" and not recorder.has_calls


def prefix_of(recorder: TurnRecorder, form: JsonObject | None) -> AnswerPrefix | None:
    """What the model is sent to go on with; None if it has to begin again.

    Reasoning cannot be continued: a provider takes it back only whole.
    """
    text_id = recorder.only_text
    if form is None or text_id is None:
        return None
    said = recorder.streamed.said("text", text_id)
    return AnswerPrefix(said, form) if said.strip() else None


class Continuation:
    """The events of an answer that goes on, as part of the step that has begun."""

    def __init__(self, recorder: TurnRecorder, number: int) -> None:
        self._number = number
        self._joins = recorder.only_text
        """The text that the first text of the continuation joins."""
        said = "" if self._joins is None else recorder.streamed.said("text", self._joins)
        self._space = said[len(said.rstrip()) :]
        """The space that the text ends with; not every provider is sent it."""
        self._names: dict[str, str] = {}

    def map(self, batch: Sequence[LLMEvent]) -> tuple[LLMEvent, ...]:
        """The events under ids that are new in the step. Raises nothing."""
        return tuple(mapped for event in batch if (mapped := self._mapped(event)) is not None)

    def _mapped(self, event: LLMEvent) -> LLMEvent | None:
        if not isinstance(event, _NAMED):
            return event
        if isinstance(event, llm.TextStart) and self._joins is not None:
            self._names[event.id], self._joins = self._joins, None
            return None
        name = self._names.setdefault(event.id, f"{event.id}-{self._number}")
        if isinstance(event, llm.TextDelta) and self._space:
            # A model that was not sent the space writes it again.
            event, self._space = replace(event, text=event.text.removeprefix(self._space)), ""
        return replace(event, id=name)
