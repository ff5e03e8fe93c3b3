"""Crash recovery: how unfinished work is settled, and whether the run continues.

A call that was recorded but never settled may or may not have had its effect. Whether it is run
again depends on what its tool declares (tools.api.tool.ToolEffect); else it is failed with a text
that says that its outcome is unknown, and the run goes on: the model decides what to do about it. A
request that was never sent is sent. For a request that may have been sent, and brought no answer or
a part of one, the configuration or a person decides.

Invariant: nothing here alone resends a request that may have reached a provider.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, TypeGuard

from msgspec import UNSET

from perdure.core import limits
from perdure.schema import ids
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.session.event import ShellEnded, StepFailed, ToolFailed
from perdure.schema.session.message import (
    AssistantMessage,
    AssistantPart,
    SessionMessage,
    ShellMessage,
    SyntheticMessage,
    ToolPart,
    UserMessage,
)
from perdure.schema.session.recovery import WaitReason
from perdure.schema.session.tool import CallProvider, PendingState, RunningState, error_info
from perdure.schema.value import Value

InputMessage = UserMessage | SyntheticMessage
"""Messages that wait for an answer."""

INTERRUPTED: Final = "Tool execution interrupted"
OUTCOME_UNKNOWN: Final = f"{INTERRUPTED}: the server stopped while it ran, outcome unknown."
SHELL_ENDED: Final = "The command was interrupted."
SHELL_STOPPED: Final = "The server stopped while the command ran, so it was ended."
SHELL_UNKNOWN: Final = (
    "The server stopped while the command ran; its output and outcome are unknown."
)
GO_ON: Final = (
    "Your last answer was cut before it was complete. What it had said so far is above. Go on from"
    " there."
)
"""What the model is told when it is asked again."""
CUT_OFF: Final = "The server stopped before this answer was complete"
UNANSWERED: Final = "The server stopped before this was answered"
ABANDONED: Final = "The server stopped while this was being answered; it was not sent again"

WAITING: Final[Mapping[WaitReason, str]] = {
    "unclear": "The request may have reached the provider before the server stopped",
    "deaths": (
        f"The server stopped {limits.RECOVERY_DEATHS_MAX} times in a row while this ran, before any"
        " step of it had ended"
    ),
}
"""Why a Session waits for a person's decision, in words."""

AttemptState = Literal["owed", "begun", "prepared", "dispatched", "settled"]
"""How far a run has come. `owed`: a client, a notice or a person asked for it, and it has yet to
begin. `begun`: it has, and no request is due yet. `prepared`: all that the request depends on is
durable, and nothing was sent. `dispatched`: the first byte may have been sent. `settled`: its tools
are settled, and the next request is due."""


class Attempt(Value, kw_only=True):
    """The durable mark of a run's request. It survives the death of the process."""

    state: AttemptState
    step: int
    deaths: int = 0
    """How many processes died in the run, without a step in between that ended by itself."""
    waits: WaitReason | None = None
    """Why the run waits for a person's decision."""
    abandoned: bool = False
    """Whether new input has been admitted since."""

    @property
    def has_request(self) -> bool:
        """Whether the run has come to a request, so that one may be due."""
        return self.state not in ("owed", "begun")


class SendRequest(Value):
    """Send the request: none was sent for this step."""

    step: int


class Unclear(Value):
    """The request may have been sent, and no answer came."""

    step: int


class AskPerson(Value):
    reason: WaitReason


class GiveUp(Value):
    """Record it as failed, and continue with the newer input."""


class NothingDue(Value):
    pass


Verdict = SendRequest | Unclear | AskPerson | GiveUp | NothingDue


def classify(attempt: Attempt | None) -> Verdict:
    """How to continue an unfinished run, after its open steps and calls are settled."""
    if attempt is None:
        return NothingDue()
    if attempt.waits is not None:
        return GiveUp() if attempt.abandoned else AskPerson(attempt.waits)
    if attempt.deaths >= limits.RECOVERY_DEATHS_MAX:
        return GiveUp() if attempt.abandoned else AskPerson("deaths")
    match attempt.state:
        case "owed" | "begun":
            return NothingDue()
        case "prepared" | "settled":
            return SendRequest(attempt.step)
        case "dispatched":
            return GiveUp() if attempt.abandoned else Unclear(attempt.step)


def settle_dangling(
    session_id: SessionID,
    messages: Iterable[SessionMessage],
    *,
    now: int,
    orphans: Sequence[str] = (),
    leave: MessageID | None = None,
) -> tuple[ToolFailed, ...]:
    """One failure for each pending or running call, hosted ones included, in history order.

    `orphans`: what was started for the Session, still runs, and could not be ended. The calls of
    the step `leave` are for the run that goes on with it.
    """
    return tuple(
        ToolFailed(
            timestamp=now,
            session_id=session_id,
            assistant_message_id=message.id,
            call_id=part.id,
            error=error_info(tell_unknown(orphans) if is_made(part) else INTERRUPTED),
            provider=_provider(part),
        )
        for message in messages
        if isinstance(message, AssistantMessage) and message.id != leave
        for part in message.content
        if _is_open(part)
    )


def end_open_shells(
    session_id: SessionID,
    messages: Iterable[SessionMessage],
    *,
    now: int,
    orphans: Sequence[str] = (),
) -> tuple[ShellEnded, ...]:
    """The end of each command of the user that a process left when it died."""
    still = f" Still running: {', '.join(orphans)}." if orphans else ""
    return tuple(
        ShellEnded(
            timestamp=now,
            session_id=session_id,
            call_id=message.call_id,
            output=SHELL_UNKNOWN + still,
        )
        for message in messages
        if isinstance(message, ShellMessage) and message.time.completed is UNSET
    )


def tell_unknown(orphans: Sequence[str]) -> str:
    """What the model is told about a call that may have taken effect."""
    if not orphans:
        return OUTCOME_UNKNOWN
    return f"{INTERRUPTED}; outcome unknown, still running: {', '.join(orphans)}"


def find_cut_step(messages: Sequence[SessionMessage]) -> AssistantMessage | None:
    """The newest step, if it is still open."""
    newest = next((m for m in reversed(messages) if isinstance(m, AssistantMessage)), None)
    return None if newest is None or newest.time.completed is not UNSET else newest


def has_calls(step: AssistantMessage) -> bool:
    """Whether the model made a call that this program runs: it waits for the result."""
    return any(isinstance(part, ToolPart) and is_local(part) for part in step.content)


def is_local(part: ToolPart) -> bool:
    """Whether the call was made, and is run by this program."""
    hosted = part.provider is not UNSET and part.provider.executed
    return not hosted and not isinstance(part.state, PendingState)


def is_made(part: ToolPart) -> bool:
    """Whether the call may have begun to run here."""
    return is_local(part) and isinstance(part.state, RunningState)


def fail_open_step(
    session_id: SessionID, messages: Sequence[SessionMessage], *, now: int, reason: str = CUT_OFF
) -> tuple[StepFailed, ...]:
    """The failure of the newest step, if it is still open."""
    step = find_cut_step(messages)
    if step is None:
        return ()
    return (
        StepFailed(
            timestamp=now,
            session_id=session_id,
            assistant_message_id=step.id,
            error=error_info(reason),
        ),
    )


def is_unanswered(messages: Sequence[SessionMessage]) -> bool:
    """Whether the newest message is a prompt or a notice that no step followed."""
    candidates = (m for m in reversed(messages) if isinstance(m, AssistantMessage | InputMessage))
    return isinstance(next(candidates, None), InputMessage)


def go_on_id(step: MessageID) -> MessageID:
    """The id of the notice that tells the model that its answer was cut."""
    return ids.message_from_external(f"cut\x00{step}")


def is_unfinished(newest: SessionMessage) -> bool:
    """Whether a Session whose newest message is this one has unfinished work."""
    if not isinstance(newest, AssistantMessage):
        return isinstance(newest, InputMessage)
    return newest.time.completed is UNSET or has_open_calls(newest)


def has_open_calls(message: SessionMessage) -> bool:
    """Whether a call of this message has no outcome yet."""
    return isinstance(message, AssistantMessage) and any(map(_is_open, message.content))


def open_calls(step: AssistantMessage) -> set[ToolCallID]:
    """The calls of a step that have no outcome yet."""
    return {ToolCallID(part.id) for part in step.content if _is_open(part)}


def _is_open(part: AssistantPart) -> TypeGuard[ToolPart]:
    return isinstance(part, ToolPart) and isinstance(part.state, PendingState | RunningState)


def _provider(part: ToolPart) -> CallProvider:
    # The provider needs its metadata of the call in later requests.
    if part.provider is UNSET:
        return CallProvider(executed=False)
    return CallProvider(executed=part.provider.executed, metadata=part.provider.metadata)
