"""What a dead process left unfinished, and how it is settled.

A call that was recorded but never settled may or may not have had its effect. It is failed with a
fixed text before the next request, and never run again: the model decides what to do about it.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import UNSET

from perdure.schema.ids import SessionID
from perdure.schema.message import AssistantMessage, SessionMessage, ToolPart
from perdure.schema.session_event import ToolFailed
from perdure.schema.tool import CallProvider, PendingState, RunningState, error_info

INTERRUPTED: Final = "Tool execution interrupted"


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
        if isinstance(part, ToolPart) and isinstance(part.state, PendingState | RunningState)
    )


def _provider(part: ToolPart) -> CallProvider:
    # What the provider needs to see of its own call survives the settlement.
    if part.provider is UNSET:
        return CallProvider(executed=False)
    return CallProvider(executed=part.provider.executed, metadata=part.provider.metadata)
