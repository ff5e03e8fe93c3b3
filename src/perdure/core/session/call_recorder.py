"""The calls of one step: which are open, and the durable event that settles each of them once.

The base of core.session.turn_recorder, which adds what a model's stream says. A step that another
process recorded is restored from its message, so that its open calls can be settled here.
"""

from collections.abc import Container
from typing import Final

from msgspec import UNSET

from perdure.core.session.recovery import INTERRUPTED, OUTCOME_UNKNOWN
from perdure.llm import event as llm
from perdure.llm.error import LLMError
from perdure.schema.codec import JsonObject
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.message import AssistantMessage, ToolPart
from perdure.schema.session.tool import (
    CallProvider,
    PendingState,
    ProviderMetadata,
    RunningState,
    ToolContent,
    error_info,
)
from perdure.schema.value import State

NO_HOSTED_RESULT: Final = "The provider did not return a result for this call"


class Call(State):
    name: str
    input_ended: bool = False
    called: bool = False
    settled: bool = False
    executed: bool = False
    metadata: ProviderMetadata | None = None


class CallRecorder:
    def __init__(self, *, session_id: SessionID, message_id: MessageID) -> None:
        self._session_id = session_id
        self.message_id = message_id
        self._calls: dict[str, Call] = {}
        self._now = 0
        self.started = False
        self.local_calls = 0
        """Calls whose result the model expects from this program."""
        self.finish: llm.Finish | None = None

    @property
    def has_calls(self) -> bool:
        """Whether the answer has begun a call."""
        return bool(self._calls)

    @property
    def unsettled(self) -> tuple[str, ...]:
        return tuple(call_id for call_id, call in self._calls.items() if not call.settled)

    def is_unsettled(self, call_id: str) -> bool:
        return not self._call(call_id).settled

    def succeeded(
        self,
        call_id: str,
        *,
        now: int,
        structured: JsonObject,
        content: tuple[ToolContent, ...],
        output_paths: tuple[str, ...],
    ) -> events.ToolSucceeded:
        self._now = now
        call = self._settle(call_id)
        return events.ToolSucceeded(
            *self._stamp,
            call_id=ToolCallID(call_id),
            structured=structured,
            content=content,
            output_paths=output_paths,
            provider=CallProvider(executed=call.executed),
        )

    def failed(
        self, call_id: str, *, now: int, message: str, reported: bool = True
    ) -> events.ToolFailed:
        """`reported` is False if the call was cut off instead of failing by itself."""
        self._now = now
        call = self._settle(call_id)
        return events.ToolFailed(
            *self._stamp,
            call_id=ToolCallID(call_id),
            error=error_info(message),
            result={"type": "error", "value": message} if reported else UNSET,
            provider=CallProvider(executed=call.executed),
        )

    def fail_unsettled(self, message: str, *, now: int) -> list[SessionEvent]:
        return [
            self.failed(call_id, now=now, message=message, reported=False)
            for call_id in self.unsettled
        ]

    def fail_cut(self, *, now: int, leave: Container[str]) -> list[SessionEvent]:
        """Fail the calls that the end of the process cuts, except those to `leave` open."""
        return [
            self.failed(
                call_id,
                now=now,
                message=OUTCOME_UNKNOWN if call.called and not call.executed else INTERRUPTED,
                reported=False,
            )
            for call_id, call in tuple(self._calls.items())
            if not call.settled and call_id not in leave
        ]

    def restore(self, step: AssistantMessage) -> None:
        """Go on with a step that another process recorded: its answer is over."""
        self.started = True
        for part in step.content:
            if isinstance(part, ToolPart):
                hosted = part.provider is not UNSET and part.provider.executed
                is_open = isinstance(part.state, PendingState | RunningState)
                self._calls[part.id] = Call(
                    part.name,
                    input_ended=True,
                    called=not isinstance(part.state, PendingState),
                    settled=not is_open,
                    executed=hosted,
                )
                self.local_calls += not hosted
        self.finish_with_calls()

    def finish_with_calls(self) -> None:
        """Take the answer for complete: it made calls, and what it cost is not known."""
        self.finish = llm.Finish("tool-calls")

    def fail_hosted(self, *, now: int) -> list[SessionEvent]:
        return [
            self.failed(call_id, now=now, message=NO_HOSTED_RESULT, reported=False)
            for call_id in self.unsettled
            if self._calls[call_id].executed
        ]

    @property
    def _stamp(self) -> tuple[int, SessionID, MessageID]:
        """The leading fields of every event and fragment of this step."""
        return self._now, self._session_id, self.message_id

    def _call(self, id: str) -> Call:
        call = self._calls.get(id)
        if call is None:
            raise broken(f"call {id} is not known")
        return call

    def _settle(self, id: str) -> Call:
        call = self._call(id)
        assert not call.settled, f"call {id} settled twice"
        call.settled = True
        return call


def broken(what: str) -> LLMError:
    return LLMError("invalid-provider-output", f"The provider broke its own stream: {what}")
