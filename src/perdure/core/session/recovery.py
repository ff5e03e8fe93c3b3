"""What a dead process left unfinished: how it is settled, and whether the run goes on.

A call that was recorded but never settled may or may not have had its effect. It is failed with a
fixed text before the next request, and never run again: the model decides what to do about it. An
answer that was cut off is a failed step. A request that never went out is sent; one that may have
gone out, and of which nothing came back, is a matter of policy or of a person.

Invariant: nothing here alone has a request sent again that may have reached a provider.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, TypeGuard

from msgspec import UNSET

from perdure.core import limits
from perdure.schema.ids import SessionID
from perdure.schema.session.event import StepFailed, ToolFailed
from perdure.schema.session.message import (
    AssistantMessage,
    AssistantPart,
    SessionMessage,
    SyntheticMessage,
    ToolPart,
    UserMessage,
)
from perdure.schema.session.recovery import WaitReason
from perdure.schema.session.tool import CallProvider, PendingState, RunningState, error_info
from perdure.schema.value import Value

InputMessage = UserMessage | SyntheticMessage
"""What waits for an answer."""

INTERRUPTED: Final = "Tool execution interrupted"
CUT_OFF: Final = "The server stopped before this answer was complete"
UNANSWERED: Final = "The server stopped before this was answered"
ABANDONED: Final = "The server stopped while this was being answered; it was not sent again"

WAITING: Final[Mapping[WaitReason, str]] = {
    "unclear": "The request may have reached the provider before the server stopped",
    "deaths": "The server stopped again and again while this ran",
}
"""What a Session waits for a person's decision about, in words."""

AttemptState = Literal["begun", "prepared", "dispatched", "settled"]
"""How far a request has come. `begun`: a run was taken up, and owes nothing yet. `prepared`: all it
depends on is durable, and nothing was sent. `dispatched`: the first byte may have gone out.
`settled`: its tools are settled, and the next request is owed."""


class Attempt(Value, kw_only=True):
    """What a run owes. It is there while the run is, and outlives a process that dies."""

    state: AttemptState
    step: int
    deaths: int = 0
    """How many processes died in the run, without a settled step in between."""
    waits: WaitReason | None = None
    """Why nothing is done about it before a person decides."""
    abandoned: bool = False
    """Whether somebody has said something new since it was left behind."""


class SendRequest(Value):
    """Send the request: none has gone out for this step."""

    step: int


class Unclear(Value):
    """It may have been sent, and nothing came back."""

    step: int


class AskPerson(Value):
    reason: WaitReason


class GiveUp(Value):
    """Fail it for all to see, and go on with what was said since."""


class NothingDue(Value):
    pass


Verdict = SendRequest | Unclear | AskPerson | GiveUp | NothingDue


def classify(attempt: Attempt | None) -> Verdict:
    """What is to be done about what was left, once open steps and calls are settled."""
    if attempt is None:
        return NothingDue()
    if attempt.waits is not None:
        return GiveUp() if attempt.abandoned else AskPerson(attempt.waits)
    if attempt.deaths >= limits.RECOVERY_DEATHS_MAX:
        return GiveUp() if attempt.abandoned else AskPerson("deaths")
    match attempt.state:
        case "begun":
            return NothingDue()
        case "prepared" | "settled":
            return SendRequest(attempt.step)
        case "dispatched":
            return GiveUp() if attempt.abandoned else Unclear(attempt.step)


def settle_dangling(
    session_id: SessionID, messages: Iterable[SessionMessage], *, now: int
) -> tuple[ToolFailed, ...]:
    """One failure for each pending or running call, hosted ones included, in history order."""
    return tuple(
        ToolFailed(
            timestamp=now,
            session_id=session_id,
            assistant_message_id=message.id,
            call_id=part.id,
            error=error_info(INTERRUPTED),
            provider=_provider(part),
        )
        for message in messages
        if isinstance(message, AssistantMessage)
        for part in message.content
        if _is_open(part)
    )


def fail_open_step(
    session_id: SessionID, messages: Sequence[SessionMessage], *, now: int
) -> tuple[StepFailed, ...]:
    """The failure of the newest step, if it is still open."""
    newest = next((m for m in reversed(messages) if isinstance(m, AssistantMessage)), None)
    if newest is None or newest.time.completed is not UNSET:
        return ()
    return (
        StepFailed(
            timestamp=now,
            session_id=session_id,
            assistant_message_id=newest.id,
            error=error_info(CUT_OFF),
        ),
    )


def is_unanswered(messages: Sequence[SessionMessage]) -> bool:
    """Whether the last thing said is a prompt or a notice that no step followed."""
    said = (m for m in reversed(messages) if isinstance(m, AssistantMessage | InputMessage))
    return isinstance(next(said, None), InputMessage)


def is_unfinished(newest: SessionMessage) -> bool:
    """Whether a Session that ends with this message was left in the middle of something."""
    if not isinstance(newest, AssistantMessage):
        return isinstance(newest, InputMessage)
    return newest.time.completed is UNSET or any(map(_is_open, newest.content))


def _is_open(part: AssistantPart) -> TypeGuard[ToolPart]:
    return isinstance(part, ToolPart) and isinstance(part.state, PendingState | RunningState)


def _provider(part: ToolPart) -> CallProvider:
    # What the provider needs to see of its own call survives the settlement.
    if part.provider is UNSET:
        return CallProvider(executed=False)
    return CallProvider(executed=part.provider.executed, metadata=part.provider.metadata)
