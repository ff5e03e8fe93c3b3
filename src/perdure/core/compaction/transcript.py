"""Session History as plain text: one labelled line per message part.

Made for a summary and for the `recent` text of a compaction, never for a provider conversation.
Bytes of attachments are left out, long tool output is cut; the stored messages keep both.

Invariant: every stored message has a text, which is empty if it is not part of the conversation.
"""

from typing import assert_never

from msgspec import UNSET, UnsetType

from perdure.core import limits
from perdure.core.request import history_to_llm
from perdure.core.session import omission
from perdure.core.session.recovery import INTERRUPTED
from perdure.schema import codec
from perdure.schema.codec import JsonValue
from perdure.schema.session import message as messages
from perdure.schema.session.message import AssistantMessage, AssistantPart, SessionMessage, ToolPart
from perdure.schema.session.tool import (
    CompletedState,
    ErrorState,
    FileContent,
    PendingState,
    RunningState,
    TextContent,
    ToolContent,
)


def text_of(
    message: SessionMessage, *, result_chars: int = limits.TRANSCRIPT_RESULT_CHARS_MAX
) -> str:
    """The lines of one message, with at most `result_chars` of each tool result."""
    if omission.is_excluded(message):
        return ""
    return "\n".join(line for line in _lines(message, result_chars) if line)


def text_as_sent(message: SessionMessage) -> str:
    """The lines of one message, with the marker of a pruned result in place of its text."""
    if not isinstance(message, AssistantMessage) or omission.is_excluded(message):
        return text_of(message)
    lines: list[str] = []
    for part in message.content:
        if isinstance(part, ToolPart) and part.time.pruned is not UNSET:
            lines += (_called(part), f"[Tool result]: {history_to_llm.pruned_marker(part)}")
        else:
            lines += _part(part, limits.TRANSCRIPT_RESULT_CHARS_MAX)
    return "\n".join(filter(None, lines))


def _lines(message: SessionMessage, chars: int) -> list[str]:
    match message:
        case messages.UserMessage(text=text, files=files):
            attached = () if files is UNSET else files
            return [f"[User]: {text}", *(_attached(file.mime, file.name) for file in attached)]
        case AssistantMessage(content=parts):
            return [line for part in parts for line in _part(part, chars)]
        case messages.SystemMessage(text=text):
            return [f"[System update]: {text}"]
        case messages.SyntheticMessage(text=text):
            return [f"[Synthetic context]: {text}"]
        case messages.ShellMessage(command=command, output=output):
            return [f"[Shell]: {command}\n{_cut(output, chars)}"]
        case messages.CompactionMessage():
            # A checkpoint is carried over separately: see core.compaction.plan.
            return []
        case messages.AgentSwitchedMessage() | messages.ModelSwitchedMessage():
            return []
        case _:
            assert_never(message)


def _part(part: AssistantPart, chars: int) -> list[str]:
    match part:
        case messages.TextPart(text=text):
            return [f"[Assistant]: {text}"] if text else []
        case messages.ReasoningPart(text=text):
            return [f"[Assistant reasoning]: {text}"] if text else []
        case ToolPart():
            return _call(part, chars)
        case _:
            assert_never(part)


def _called(part: ToolPart) -> str:
    state = part.state
    raw = state.input if isinstance(state, PendingState) else _json(state.input)
    return f"[Assistant tool call]: {part.name}({raw})"


def _call(part: ToolPart, chars: int) -> list[str]:
    state = part.state
    called = _called(part)
    if part.time.excluded is not UNSET:
        return [called, f"[Tool result]: {history_to_llm.EXCLUDED_RESULT}"]
    match state:
        case CompletedState(result=result) if result is not UNSET:
            return [called, f"[Tool result]: {_cut(_json(result), chars)}"]
        case CompletedState(content=()):
            return [called, f"[Tool result]: {_cut(_json(state.structured), chars)}"]
        case CompletedState(content=content):
            return [called, *(_content(item, chars, state.output_paths) for item in content)]
        case ErrorState(error=error):
            return [called, f"[Tool error]: {_cut(error.message, chars)}"]
        case PendingState() | RunningState():
            return [called, f"[Tool error]: {INTERRUPTED}"]
        case _:
            assert_never(state)


def _content(item: ToolContent, chars: int, paths: tuple[str, ...]) -> str:
    match item:
        case TextContent(text=text):
            return f"[Tool result]: {_cut(text, chars, paths)}"
        case FileContent(mime=mime, name=name):
            return _attached(mime, name)
        case _:
            assert_never(item)


def _attached(mime: str, name: str | UnsetType) -> str:
    return f"[Attached {mime}]" if name is UNSET else f"[Attached {mime}: {name}]"


def _json(value: JsonValue) -> str:
    return codec.encode(value).decode()


def _cut(text: str, kept: int, paths: tuple[str, ...] = ()) -> str:
    if len(text) <= kept:
        return text
    where = f"; full output: {paths[-1]}" if paths else ""
    return f"{text[:kept]}\n[{len(text) - kept} more characters left out{where}]"
