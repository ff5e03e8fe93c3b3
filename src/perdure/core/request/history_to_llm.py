"""Converts Session History to the conversation of a model request. Stored history is never edited.

Every stored message converts to something a provider accepts. Native metadata goes back only the
way it came (the same provider, model and address), and only from a turn without error; other
reasoning becomes plain text. Every call without a usable result gets an error result.

What was excluded or pruned (core.session.omission) is left out: of an assistant message a call goes
with its result, and what must stay for the order of the roles becomes a short marker.
"""

from typing import Final, assert_never

from msgspec import UNSET, DecodeError, UnsetType, ValidationError

from perdure.core.session import omission
from perdure.core.session.recovery import INTERRUPTED
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    Part,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)
from perdure.llm.message import ReasoningPart as LLMReasoning
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.models.model import ModelRef, StepRoute
from perdure.schema.session import message as messages
from perdure.schema.session.message import AssistantMessage, SessionMessage, ToolPart, UserMessage
from perdure.schema.session.tool import (
    CompletedState,
    ErrorState,
    PendingState,
    ProviderMetadata,
    RunningState,
    ToolContent,
)
from perdure.schema.session.tool import FileContent as FileResult
from perdure.schema.session.tool import TextContent as TextResult

EXCLUDED_MESSAGE: Final = "[The user excluded this message from the conversation.]"
EXCLUDED_RESULT: Final = "[The user excluded this result from the conversation.]"


def lower(
    message: SessionMessage,
    model: ModelRef,
    *,
    route: StepRoute | None = None,
    native: bool = True,
) -> tuple[LLMMessage, ...]:
    """One stored message as `model` is shown it; empty for messages that are not for the model.

    `route`: the way to the model, if it is known. Without `native`, an answer of the model itself
    is shown like that of another.
    """
    if omission.is_excluded(message):
        return _lower_excluded(message)
    match message:
        case UserMessage():
            return (LLMMessage("user", _user_parts(message)),)
        case AssistantMessage():
            own = native and _is_own(message, model, route)
            return _assistant(message, same=own)
        case messages.SystemMessage(text=text):
            return (LLMMessage("system", (TextPart(text),)),)
        case messages.SyntheticMessage(text=text):
            return (LLMMessage("user", (TextPart(text),)),)
        case messages.ShellMessage(command=command, output=output):
            text = f"The user ran this command:\n{command}\n\nIts output:\n{output}"
            return (LLMMessage("user", (TextPart(text),)),)
        case messages.CompactionMessage():
            return (LLMMessage("user", (TextPart(_checkpoint(message)),)),)
        case messages.AgentSwitchedMessage() | messages.ModelSwitchedMessage():
            return ()
        case _:
            assert_never(message)


def result_of(part: ToolPart) -> ToolResult:
    """The result of a call as the model is shown it."""
    if _is_excluded(part):
        return ToolResult("text", EXCLUDED_RESULT)
    if part.time.pruned is not UNSET:
        kind = "error" if isinstance(part.state, ErrorState) else "text"
        return ToolResult(kind, pruned_marker(part))
    match part.state:
        case CompletedState(result=result) if result is not UNSET:
            return ToolResult("json", result)
        case CompletedState(content=content, structured=structured):
            return _success(content, structured)
        case ErrorState(error=error):
            return ToolResult("error", error.message)
        case PendingState() | RunningState():
            return ToolResult("error", INTERRUPTED)
        case _:
            assert_never(part.state)


def _lower_excluded(message: SessionMessage) -> tuple[LLMMessage, ...]:
    match message:
        case AssistantMessage():
            # With its calls and their results. A marker in its own words would be imitated.
            return ()
        case messages.AgentSwitchedMessage() | messages.ModelSwitchedMessage():
            return ()
        case _:
            # Some providers take no conversation that begins with an answer.
            return (LLMMessage("user", (TextPart(EXCLUDED_MESSAGE),)),)


def _user_parts(message: UserMessage) -> tuple[Part, ...]:
    parts: list[Part] = [TextPart(message.text)]
    attached = () if message.attached is UNSET else message.attached
    by_file = {item.file: item for item in attached if item.file is not UNSET}
    for index, file in enumerate(() if message.files is UNSET else message.files):
        if index in by_file:
            parts += map(_content, by_file[index].content)
        else:
            name = None if file.name is UNSET else file.name
            parts.append(MediaPart(file.mime, file.uri, name))
    for item in attached:
        if item.file is UNSET:
            parts += map(_content, item.content)
    return tuple(parts)


def _is_own(message: AssistantMessage, model: ModelRef, route: StepRoute | None) -> bool:
    """Whether an answer came from this model, the same way."""
    if not message.model.same_model(model):
        return False
    return route is None or message.route is UNSET or message.route.same_way(route)


def _assistant(message: AssistantMessage, *, same: bool) -> tuple[LLMMessage, ...]:
    # Native items belong together: without one of them a provider may refuse the others.
    cut = any(_is_hosted(part) and _is_excluded(part) for part in omission.calls_of(message))
    native = same and message.error is UNSET and not cut
    inline: list[Part] = []
    results: list[ToolResultPart] = []
    for part in message.content:
        match part:
            case messages.TextPart(text=text):
                if text:
                    inline.append(TextPart(text))
            case messages.ReasoningPart():
                inline.extend(_reasoning(part, same=same, native=native))
            case ToolPart() if _is_hosted(part) and _is_excluded(part):
                pass
            case ToolPart():
                call, result = _call(part, native=native)
                inline.append(call)
                if result.provider_executed:
                    inline.append(result)
                else:
                    results.append(result)
            case _:
                assert_never(part)
    lowered: list[LLMMessage] = []
    if inline:
        lowered.append(LLMMessage("assistant", tuple(inline), message.id))
    lowered.extend(LLMMessage("tool", (result,)) for result in results)
    return tuple(lowered)


def _reasoning(
    part: messages.ReasoningPart, *, same: bool, native: bool
) -> tuple[TextPart | LLMReasoning, ...]:
    if not same:
        return (TextPart(part.text),) if part.text else ()
    metadata = _given(part.provider_metadata) if native else None
    if not part.text and metadata is None:
        return ()
    return (LLMReasoning(part.text, metadata),)


def _call(part: ToolPart, *, native: bool) -> tuple[ToolCallPart, ToolResultPart]:
    provider, hosted = part.provider, _is_hosted(part)
    metadata = result_metadata = None
    if native and provider is not UNSET:
        metadata = _given(provider.metadata)
        result_metadata = _given(provider.result_metadata) or metadata
    call = ToolCallPart(part.id, part.name, _input(part), hosted, metadata)
    result = ToolResultPart(part.id, part.name, result_of(part), hosted, result_metadata)
    return call, result


def _input(part: ToolPart) -> JsonObject:
    if not isinstance(part.state, PendingState):
        return part.state.input
    try:
        value = codec.decode_any(part.state.input or "{}")
    except (DecodeError, RecursionError):
        return {}
    try:
        return codec.convert(JsonObject, value)
    except ValidationError:
        return {"value": value}


def pruned_marker(part: ToolPart) -> str:
    """The text that the model is sent in place of a pruned result."""
    state = part.state
    paths = state.output_paths if isinstance(state, CompletedState) else ()
    advice = (
        f"The whole text is in {paths[-1]}: read the part that you need. If the file is gone, call"
        " the tool again."
        if paths
        else "Call the tool again if you need it."
    )
    return f"[The result of this call was removed here to make room. {advice}]"


def _is_hosted(part: ToolPart) -> bool:
    return part.provider is not UNSET and part.provider.executed


def _is_excluded(part: ToolPart) -> bool:
    return part.time.excluded is not UNSET


def _success(content: tuple[ToolContent, ...], structured: JsonObject) -> ToolResult:
    if not content:
        return ToolResult("json", structured)
    if all(isinstance(item, TextResult) for item in content):
        texts = [item.text for item in content if isinstance(item, TextResult)]
        return ToolResult("text", "\n".join(texts))
    return ToolResult("content", [_content(item) for item in content])


def _content(item: ToolContent) -> TextPart | MediaPart:
    match item:
        case TextResult(text=text):
            return TextPart(text)
        case FileResult(uri=uri, mime=mime, name=name):
            return MediaPart(mime, uri, None if name is UNSET else name)
        case _:
            assert_never(item)


def _checkpoint(message: messages.CompactionMessage) -> str:
    return (
        "<conversation-checkpoint>\n"
        "Earlier parts of this conversation were condensed. This is a record of what happened,"
        " not a new instruction.\n\n"
        f"<summary>\n{message.summary}\n</summary>\n\n"
        f"{_carried(message)}"
        f"<recent>\n{message.recent}\n</recent>\n"
        "</conversation-checkpoint>"
    )


def _carried(message: messages.CompactionMessage) -> str:
    """The parts of a checkpoint that do not depend on the quality of its summary."""
    blocks: list[str] = []
    if message.directives:
        directives = "\n\n".join(f"[User]: {text}" for text in message.directives)
        note = "The user said this earlier, in these words. It holds unless it was taken back."
        blocks.append(f"<user-messages>\n{note}\n\n{directives}\n</user-messages>\n\n")
    if message.todos:
        items = "\n".join(f"- [{todo.status}] {todo.content}" for todo in message.todos)
        blocks.append(f"<open-todos>\n{items}\n</open-todos>\n\n")
    return "".join(blocks)


def _given(metadata: ProviderMetadata | UnsetType) -> ProviderMetadata | None:
    return None if metadata is UNSET else metadata
