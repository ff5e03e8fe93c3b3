"""Turns the LLMEvents of one Provider Turn into durable events and live fragments, in order.

The assistant message begins with the first output, or with a failure. Text and reasoning stream as
fragments and end with their full value. A call is recorded before it may run, and settled exactly
once. A provider that breaks the event lifecycle fails the turn.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import UNSET, UnsetType

from perdure.core import limits
from perdure.core.session import usage
from perdure.core.session.answer_limits import AnswerLimits
from perdure.core.session.call_recorder import Call, CallRecorder, broken
from perdure.core.session.live_parts import Kind, StreamedParts
from perdure.llm import event as llm
from perdure.llm.event import LLMEvent
from perdure.schema import live_event as live
from perdure.schema import redaction
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.models.model import ModelRef, StepRoute
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.message import StepSnapshot
from perdure.schema.session.tool import CallProvider, error_info

Fragment = live.TextDelta | live.ReasoningDelta | live.ToolInputDelta
Output = SessionEvent | Fragment

TOOLS_DISABLED: Final = "Tools are disabled for this answer: the step limit is reached."
NOTHING_KEPT: Final = StepSnapshot()


class TurnRecorder(CallRecorder):
    def __init__(
        self,
        *,
        session_id: SessionID,
        message_id: MessageID,
        agent: str,
        model: ModelRef,
        route: StepRoute | UnsetType = UNSET,
    ) -> None:
        super().__init__(session_id=session_id, message_id=message_id)
        self._agent = agent
        self._model = model
        self._route = route
        self.before = NOTHING_KEPT
        """The file snapshot at the start of the step."""
        self.streamed = StreamedParts()
        self._fragments = True
        self._out: list[Output] = []
        self._limits = AnswerLimits()
        self._parts = 0
        self.provider_error: llm.ProviderError | None = None
        self._steps: dict[type[LLMEvent], Callable[..., None]] = {
            llm.TextStart: self._text_start,
            llm.TextDelta: self._text_delta,
            llm.TextEnd: self._text_end,
            llm.ReasoningStart: self._reasoning_start,
            llm.ReasoningDelta: self._reasoning_delta,
            llm.ReasoningEnd: self._reasoning_end,
            llm.ToolInputStart: self._input_start,
            llm.ToolInputDelta: self._input_delta,
            llm.ToolInputEnd: self._input_end,
            llm.ToolCall: self._tool_call,
            llm.ToolInputInvalid: self._input_invalid,
            llm.HostedToolResult: self._hosted_result,
            llm.Finish: self._finish,
            llm.ProviderError: self._provider_error,
        }

    def feed(self, batch: Sequence[LLMEvent], *, now: int, fragments: bool = True) -> list[Output]:
        """Record a batch of events; returns the outputs in order. Events after the end are ignored.

        Without `fragments`, and after very many parts, only durable events come out. Without them
        the deltas of a text that came together count as one.
        """
        self._now = now
        steps = self._steps
        for event in self._limits.within(batch if fragments else _merge_text(batch)):
            if self.finish is not None or self.provider_error is not None:
                break
            self._fragments = fragments and self._parts <= limits.LIVE_PARTS_MAX
            steps[type(event)](event)
        out, self._out = self._out, []
        return out

    @property
    def over(self) -> bool:
        return self.finish is not None or self.provider_error is not None

    @property
    def only_text(self) -> str | None:
        """The id of the text that is all of the answer so far, and has not ended."""
        texts = self.streamed.list_open("text")
        return texts[0] if texts and self._parts == 1 else None

    # ---- what the runtime reports back ----------------------------------------------------------

    def flush(self, *, now: int) -> list[SessionEvent]:
        """End every open fragment with the text so far."""
        self._now = now
        self._end_fragments()
        out, self._out = self._out, []
        return [item for item in out if not isinstance(item, Fragment)]

    def step_ended(
        self, *, now: int, cost: float, after: StepSnapshot = NOTHING_KEPT
    ) -> list[SessionEvent]:
        assert self.finish is not None
        self._now = now
        self._begin()
        spent = self.finish.usage or llm.Usage()
        self._out.append(
            events.StepEnded(
                *self._stamp,
                finish=self.finish.reason,
                cost=cost,
                tokens=usage.tokens_of(spent),
                snapshot=after.end,
                files=after.files,
            )
        )
        return self._durable()

    def step_failed(self, message: str, *, now: int) -> list[SessionEvent]:
        """Fail the step; its output so far is kept."""
        self._now = now
        self._begin()
        self._end_fragments()
        shown = redaction.redact_message(message)
        self._out.append(events.StepFailed(*self._stamp, error=error_info(shown)))
        return self._durable()

    # ---- one method for each LLMEvent -----------------------------------------------------------

    def _text_start(self, event: llm.TextStart) -> None:
        self._open("text", event.id)
        self._out.append(events.TextStarted(*self._stamp, text_id=event.id))

    def _text_delta(self, event: llm.TextDelta) -> None:
        cursor = self._continue("text", event.id, event.text)
        if self._fragments:
            delta = live.TextDelta(*self._stamp, text_id=event.id, delta=event.text, cursor=cursor)
            self._out.append(delta)

    def _text_end(self, event: llm.TextEnd) -> None:
        text = self._close("text", event.id, event.text)
        self._out.append(events.TextEnded(*self._stamp, text_id=event.id, text=text))

    def _reasoning_start(self, event: llm.ReasoningStart) -> None:
        self._open("reasoning", event.id)
        self._out.append(
            events.ReasoningStarted(
                *self._stamp, reasoning_id=event.id, provider_metadata=event.metadata or UNSET
            )
        )

    def _reasoning_delta(self, event: llm.ReasoningDelta) -> None:
        cursor = self._continue("reasoning", event.id, event.text)
        if self._fragments:
            part, text = event.id, event.text
            delta = live.ReasoningDelta(*self._stamp, reasoning_id=part, delta=text, cursor=cursor)
            self._out.append(delta)

    def _reasoning_end(self, event: llm.ReasoningEnd) -> None:
        self._out.append(
            events.ReasoningEnded(
                *self._stamp,
                reasoning_id=event.id,
                text=self._close("reasoning", event.id),
                provider_metadata=event.metadata or UNSET,
            )
        )

    def _input_start(self, event: llm.ToolInputStart) -> None:
        if event.id in self._calls:
            raise broken(f"call {event.id} started twice")
        self._open("input", event.id)
        self._calls[event.id] = Call(event.name)
        self._out.append(
            events.ToolInputStarted(*self._stamp, call_id=ToolCallID(event.id), name=event.name)
        )

    def _input_delta(self, event: llm.ToolInputDelta) -> None:
        call = self._call(event.id)
        if call.input_ended:
            raise broken(f"input of call {event.id} continued after its end")
        cursor = self._continue("input", event.id, event.text)
        if self._fragments:
            call_id, text = ToolCallID(event.id), event.text
            delta = live.ToolInputDelta(*self._stamp, call_id=call_id, delta=text, cursor=cursor)
            self._out.append(delta)

    def _input_end(self, event: llm.ToolInputEnd) -> None:
        call = self._call(event.id)
        if call.input_ended:
            raise broken(f"input of call {event.id} ended twice")
        call.input_ended = True
        text = self._close("input", event.id, event.text)
        self._out.append(
            events.ToolInputEnded(*self._stamp, call_id=ToolCallID(event.id), text=text)
        )

    def _tool_call(self, event: llm.ToolCall) -> None:
        if event.id not in self._calls:
            self._input_start(llm.ToolInputStart(event.id, event.name))
        call = self._call(event.id)
        if not call.input_ended:
            self._input_end(llm.ToolInputEnd(event.id, self.streamed.said("input", event.id)))
        if call.called or call.settled:
            raise broken(f"call {event.id} was made twice")
        if call.name != event.name:
            raise broken(f"call {event.id} changed its tool from {call.name} to {event.name}")
        call.called = True
        call.executed = event.provider_executed
        self.local_calls += not event.provider_executed
        call.metadata = event.metadata
        self._out.append(
            events.ToolCalled(
                *self._stamp,
                call_id=ToolCallID(event.id),
                tool=event.name,
                input=event.input,
                provider=CallProvider(
                    executed=event.provider_executed, metadata=event.metadata or UNSET
                ),
            )
        )

    def _input_invalid(self, event: llm.ToolInputInvalid) -> None:
        call = self._call(event.id)
        if call.called or call.settled:
            raise broken(f"call {event.id} was made twice")
        # Answered, not executed: the model sees what was wrong and can try again.
        self.local_calls += 1
        self._out.append(self.failed(event.id, now=self._now, message=event.message))

    def _hosted_result(self, event: llm.HostedToolResult) -> None:
        call = self._call(event.id)
        if not call.executed:
            raise broken(f"call {event.id} has a result, and is not the provider's to run")
        if call.settled:
            if event.result.type == "error":
                return
            raise broken(f"call {event.id} has two results")
        call.settled = True
        value = {"type": event.result.type, "value": event.result.value}
        provider = CallProvider(executed=True, metadata=event.metadata or UNSET)
        if event.result.type == "error":
            self._out.append(
                events.ToolFailed(
                    *self._stamp,
                    call_id=ToolCallID(event.id),
                    error=error_info(str(event.result.value)),
                    result=value,
                    provider=provider,
                )
            )
            return
        self._out.append(
            events.ToolSucceeded(
                *self._stamp,
                call_id=ToolCallID(event.id),
                structured={},
                content=(),
                result=value,
                provider=provider,
            )
        )

    def _finish(self, event: llm.Finish) -> None:
        self._end_fragments()
        self.finish = event

    def _provider_error(self, event: llm.ProviderError) -> None:
        self.provider_error = event

    # ---- small steps ----------------------------------------------------------------------------

    def _begin(self) -> None:
        if self.started:
            return
        self.started = True
        self._out.append(
            events.StepStarted(
                *self._stamp, self._agent, self._model, self.before.start, self._route
            )
        )

    def _open(self, kind: Kind, id: str) -> None:
        if not self.streamed.open(kind, id):
            raise broken(f"{kind} {id} started twice")
        self._begin()
        self._parts += 1

    def _continue(self, kind: Kind, id: str, text: str) -> int:
        cursor = self.streamed.add(kind, id, text)
        if cursor is None:
            raise broken(f"{kind} {id} continued before it started")
        return cursor

    def _close(self, kind: Kind, id: str, given: str | None = None) -> str:
        text = self.streamed.close(kind, id, given)
        if text is None:
            raise broken(f"{kind} {id} ended before it started")
        return text

    def _end_fragments(self) -> None:
        for part_id in self.streamed.list_open("reasoning"):
            self._reasoning_end(llm.ReasoningEnd(part_id))
        for part_id in self.streamed.list_open("text"):
            self._text_end(llm.TextEnd(part_id))

    def _durable(self) -> list[SessionEvent]:
        out, self._out = self._out, []
        return [item for item in out if not isinstance(item, Fragment)]


def _merge_text(batch: Sequence[LLMEvent]) -> list[LLMEvent]:
    """The batch with each run of deltas of a text as one delta."""
    merged: list[LLMEvent] = []
    run: list[str] = []
    text_id = ""
    for event in batch:
        if type(event) is llm.TextDelta:
            if run and event.id == text_id:
                run.append(event.text)
                continue
            if run:
                merged.append(llm.TextDelta(text_id, "".join(run)))
            run, text_id = [event.text], event.id
            continue
        if run:
            merged.append(llm.TextDelta(text_id, "".join(run)))
            run = []
        merged.append(event)
    if run:
        merged.append(llm.TextDelta(text_id, "".join(run)))
    return merged
