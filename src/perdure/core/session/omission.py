"""What a message has that the model is not sent: pruned results, and what the user excluded.

A compaction prunes old large results; the user excludes messages and results, and restores them.
Both are events, and their folds mark the message with a time. The content stays in the message;
core.request.history_to_llm leaves it out of requests.
"""

from collections.abc import Callable

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from perdure.schema.ids import ToolCallID
from perdure.schema.session import event as events
from perdure.schema.session.event import ExclusionEvent
from perdure.schema.session.message import AssistantMessage, SessionMessage, ToolPart
from perdure.schema.session.tool import CompletedState, ErrorState


def prune(part: ToolPart, event: events.ToolPruned) -> ToolPart:
    """Mark a settled result as pruned; its path is one of the call's output paths from now on."""
    state = part.state
    if not isinstance(state, CompletedState | ErrorState):
        return part
    if isinstance(state, CompletedState) and event.path and event.path not in state.output_paths:
        state = replace(state, output_paths=(*state.output_paths, event.path))
    return replace(part, state=state, time=replace(part.time, pruned=event.timestamp))


def after_exclusion(message: SessionMessage, event: ExclusionEvent) -> SessionMessage:
    """Return the message as it is after the event, which may name a result that it has not."""
    at = event.timestamp if isinstance(event, events.MessageExcluded) else UNSET
    if event.call_id is UNSET:
        return replace(message, time=replace(message.time, excluded=at))
    if not isinstance(message, AssistantMessage):
        return message

    def mark(part: ToolPart) -> ToolPart:
        if part.id != event.call_id:
            return part
        return replace(part, time=replace(part.time, excluded=at))

    return _with_calls(message, mark)


def is_excluded(message: SessionMessage, call_id: ToolCallID | UnsetType = UNSET) -> bool:
    """Whether the user excluded the message, or its result of that call."""
    if call_id is UNSET:
        return message.time.excluded is not UNSET
    return any(part.id == call_id and part.time.excluded is not UNSET for part in calls_of(message))


def calls_of(message: SessionMessage) -> list[ToolPart]:
    if not isinstance(message, AssistantMessage):
        return []
    return [part for part in message.content if isinstance(part, ToolPart)]


def omitted_at(message: SessionMessage) -> int | None:
    """When something of the message was last left out; None if the model is sent all of it."""
    times = [message.time.excluded]
    for part in calls_of(message):
        times += (part.time.pruned, part.time.excluded)
    return max((time for time in times if time is not UNSET), default=None)


def whole(message: SessionMessage) -> SessionMessage:
    """Return the message as if nothing had been pruned or excluded."""
    message = replace(message, time=replace(message.time, excluded=UNSET))
    if not isinstance(message, AssistantMessage):
        return message
    return _with_calls(
        message,
        lambda part: replace(part, time=replace(part.time, pruned=UNSET, excluded=UNSET)),
    )


def _with_calls(
    message: AssistantMessage, change: Callable[[ToolPart], ToolPart]
) -> AssistantMessage:
    parts = (change(part) if isinstance(part, ToolPart) else part for part in message.content)
    return replace(message, content=tuple(parts))
