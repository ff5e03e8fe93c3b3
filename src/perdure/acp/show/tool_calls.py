"""Tool calls as editors show them: a kind, a title, the places, what came of it.

What a tool gets and returns was written by a model or a program, so nothing in it is required.
"""

from collections.abc import Mapping
from typing import Final, cast

from perdure.acp.schema.content import (
    Content,
    ImageBlock,
    Location,
    ResourceLink,
    TextBlock,
    ToolContent,
)
from perdure.acp.schema.content import text_content as shown_text
from perdure.acp.schema.updates import ToolCall, ToolCallUpdate, ToolKind, ToolStatus
from perdure.acp.show import diffs
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.ids import MessageID
from perdure.schema.session import tool
from perdure.schema.session.message import ToolPart
from perdure.schema.session.tool import (
    CompletedState,
    ErrorState,
    PendingState,
    RunningState,
    ToolState,
)

KINDS: Final[Mapping[str, ToolKind]] = {
    "apply_patch": "edit",
    "bash": "execute",
    "edit": "edit",
    "glob": "search",
    "grep": "search",
    "read": "read",
    "skill": "read",
    "task": "think",
    "todowrite": "think",
    "webfetch": "fetch",
    "websearch": "fetch",
    "write": "edit",
}
_STATUSES: Final[Mapping[type[ToolState], ToolStatus]] = {
    PendingState: "pending",
    RunningState: "in_progress",
    CompletedState: "completed",
    ErrorState: "failed",
}
_MAIN_INPUTS: Final = (
    *("command", "path", "pattern", "url", "query", "description"),
    *("name", "subagent_type"),
)
"""The inputs that tell what a call does; the first that is given is shown."""
_TITLE_CHARS_MAX: Final = 200
_DATA_IMAGE: Final = "data:image/"


def call_id(message_id: MessageID, call: str) -> str:
    """The id of a call in its Session: the provider's own ids repeat."""
    return f"{message_id}/{call}"


def begin(message_id: MessageID, part: ToolPart, directory: str) -> ToolCall:
    """A call as it is now."""
    state = part.state
    return ToolCall(
        tool_call_id=call_id(message_id, part.id),
        title=title(part.name, _input_of(state)),
        name=part.name,
        kind=KINDS.get(part.name, "other"),
        status=_STATUSES[type(state)],
        content=_content(state, directory),
        locations=_locations(state, directory),
        raw_input=_input_of(state),
        raw_output=_output_of(state),
    )


def change(message_id: MessageID, part: ToolPart, directory: str) -> ToolCallUpdate:
    """What has changed of a call that was told."""
    state = part.state
    given = _input_of(state)
    return ToolCallUpdate(
        tool_call_id=call_id(message_id, part.id),
        title=title(part.name, given),
        status=_STATUSES[type(state)],
        content=_content(state, directory),
        locations=_locations(state, directory),
        raw_input=given,
        raw_output=_output_of(state),
    )


def title(name: str, input: JsonObject) -> str:
    """One line that says what the call does."""
    main = next((str(input[key]) for key in _MAIN_INPUTS if input.get(key)), "")
    line = main if name == "bash" and main else f"{name} {main}"
    line = " ".join(line.split()) or name
    return line if len(line) <= _TITLE_CHARS_MAX else f"{line[:_TITLE_CHARS_MAX]}..."


def _input_of(state: ToolState) -> JsonObject:
    return {} if isinstance(state, PendingState) else state.input


def _output_of(state: ToolState) -> JsonValue:
    if isinstance(state, CompletedState):
        return state.structured
    if isinstance(state, ErrorState):
        return {**state.structured, "error": state.error.message}
    return {}


def _content(state: ToolState, directory: str) -> tuple[ToolContent, ...]:
    if isinstance(state, PendingState):
        return ()
    said = tuple(map(_show, state.content))
    changed = tuple(
        shown
        for file in _files(state)
        for shown in diffs.show_patch(
            directory,
            str(file.get("path", "")),
            str(file.get("status", "modified")),
            str(file["patch"]),
        )
    )
    if isinstance(state, ErrorState):
        return (*said, *changed, shown_text(state.error.message))
    # The text of a change says no more than the diff, unless a checker has found something.
    return (*changed, *said)


def _show(content: tool.ToolContent) -> Content:
    if isinstance(content, tool.TextContent):
        return shown_text(content.text)
    if content.uri.startswith(_DATA_IMAGE) and ";base64," in content.uri:
        return Content(ImageBlock(content.uri.partition(",")[2], content.mime))
    name = content.uri[:_TITLE_CHARS_MAX] if content.name is tool.UNSET else content.name
    if content.uri.startswith("data:"):
        return Content(TextBlock(f"[{name}: {content.mime}]"))
    return Content(ResourceLink(content.uri, name, content.mime))


def _locations(state: ToolState, directory: str) -> tuple[Location, ...]:
    if isinstance(state, PendingState):
        return ()
    changed = [
        (str(file.get("path", "")), diffs.find_line(str(file["patch"]))) for file in _files(state)
    ]
    if changed:
        return diffs.places(directory, changed)
    path, offset = state.input.get("path"), state.input.get("offset")
    line = offset if isinstance(offset, int) and offset > 0 else None
    return diffs.places(directory, [(path, line)]) if isinstance(path, str) else ()


def _files(state: RunningState | CompletedState | ErrorState) -> list[JsonObject]:
    files = state.structured.get("files")
    items = cast("list[object]", files) if isinstance(files, list) else []
    dicts = [cast("JsonObject", file) for file in items if isinstance(file, dict)]
    return [file for file in dicts if isinstance(file.get("patch"), str)]
