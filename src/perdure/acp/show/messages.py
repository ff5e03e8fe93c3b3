"""Messages and their parts as updates, for a Session that is loaded and for one that goes on."""

from collections.abc import Iterator

from msgspec import UNSET

from perdure.acp.schema.content import TextBlock
from perdure.acp.schema.updates import (
    AgentChunk,
    Plan,
    PlanEntry,
    ThoughtChunk,
    Update,
    UserChunk,
)
from perdure.acp.show import tool_calls
from perdure.schema.ids import MessageID
from perdure.schema.session.message import (
    AssistantMessage,
    AssistantPart,
    CompactionMessage,
    ReasoningPart,
    SessionMessage,
    ShellMessage,
    TextPart,
    UserMessage,
)
from perdure.schema.session.todo import Todos


def show_message(message: SessionMessage, directory: str) -> Iterator[Update]:
    """Everything of a message that people see."""
    match message:
        case UserMessage(id=id):
            yield UserChunk(TextBlock(_said(message)), id)
        case AssistantMessage():
            for part in message.content:
                yield from show_part(message.id, part, directory)
            if message.error is not UNSET:
                yield failure(message.id, message.error.message)
        case ShellMessage(id=id):
            fence = "```"
            text = f"`{message.command}`\n{fence}\n{message.output}\n{fence}"
            yield UserChunk(TextBlock(text), id)
        case CompactionMessage(id=id):
            yield ThoughtChunk(TextBlock(f"Older messages were summarised:\n{message.summary}"), id)
        case _:
            # Told to the model alone, or shown by the options of the Session.
            return


def show_part(message_id: MessageID, part: AssistantPart, directory: str) -> Iterator[Update]:
    """A part with what it has so far."""
    match part:
        case TextPart(text=text):
            if text:
                yield AgentChunk(TextBlock(text), message_id)
        case ReasoningPart(text=text):
            if text:
                yield ThoughtChunk(TextBlock(text), message_id)
        case _:
            yield tool_calls.begin(message_id, part, directory)


def show_todos(todos: Todos) -> Plan:
    return Plan(tuple(_entry(todo.content, todo.priority, todo.status) for todo in todos))


def failure(message_id: str, reason: str) -> AgentChunk:
    """Why an answer ended early, as a line of its own."""
    return AgentChunk(TextBlock(f"\n\n**The answer ended early:** {reason}\n"), message_id)


def _entry(content: str, priority: str, status: str) -> PlanEntry:
    level = "high" if priority == "high" else "low" if priority == "low" else "medium"
    if status == "cancelled":
        return PlanEntry(f"(cancelled) {content}", level, "completed")
    return PlanEntry(
        content,
        level,
        "in_progress"
        if status == "in_progress"
        else "completed"
        if status == "completed"
        else "pending",
    )


def _said(message: UserMessage) -> str:
    names = [file.name for file in message.files or () if file.name is not UNSET]
    missing = [name for name in names if name not in message.text]
    return "\n".join([message.text, *(f"[{name}]" for name in missing)])
