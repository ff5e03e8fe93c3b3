"""What a dead process left unfinished, and how it is settled.

A call that was recorded but never settled may or may not have had its effect. It is failed with a
fixed text before the next request, and never run again: the model decides what to do about it. An
answer that was cut off is a failed step. Nothing is sent to a provider again by itself.
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeGuard

from msgspec import UNSET

from perdure.schema.ids import SessionID
from perdure.schema.message import (
    AssistantMessage,
    AssistantPart,
    SessionMessage,
    ToolPart,
    UserMessage,
)
from perdure.schema.session_event import StepFailed, ToolFailed
from perdure.schema.tool import CallProvider, PendingState, RunningState, error_info

INTERRUPTED: Final = "Tool execution interrupted"
CUT_OFF: Final = "The server stopped before this answer was complete"
UNANSWERED: Final = "The server stopped before this was answered"


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
    """Whether the last thing said is a prompt that no step followed."""
    said = (m for m in reversed(messages) if isinstance(m, AssistantMessage | UserMessage))
    return isinstance(next(said, None), UserMessage)


def is_unfinished(newest: SessionMessage) -> bool:
    """Whether a Session that ends with this message was left in the middle of something."""
    if not isinstance(newest, AssistantMessage):
        return isinstance(newest, UserMessage)
    return newest.time.completed is UNSET or any(map(_is_open, newest.content))


def _is_open(part: AssistantPart) -> TypeGuard[ToolPart]:
    return isinstance(part, ToolPart) and isinstance(part.state, PendingState | RunningState)


def _provider(part: ToolPart) -> CallProvider:
    # What the provider needs to see of its own call survives the settlement.
    if part.provider is UNSET:
        return CallProvider(executed=False)
    return CallProvider(executed=part.provider.executed, metadata=part.provider.metadata)
