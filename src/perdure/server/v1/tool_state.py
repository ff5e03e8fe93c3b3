"""Pure translation of tool calls: the states of V1, and the fields that V1 clients draw."""

from collections.abc import Callable
from typing import Final

from msgspec import UNSET

from perdure.protocol.v1.part import V1Completed, V1Failed, V1Pending, V1Running, V1Span
from perdure.schema.codec import JsonObject
from perdure.schema.session.message import ToolPart
from perdure.schema.session.tool import (
    CompletedState,
    ErrorState,
    PendingState,
    RunningState,
    TextContent,
    ToolContent,
)

_FILE_TOOLS: Final = frozenset({"read", "write", "edit"})
_INPUT_NAMES: Final = {
    "path": "filePath",
    "old_string": "oldString",
    "new_string": "newString",
    "replace_all": "replaceAll",
}
_TITLES: Final = ("filePath", "command", "description", "pattern")
_CHANGES: Final = {"added": "add", "modified": "update", "deleted": "delete"}


def translate(part: ToolPart) -> V1Pending | V1Running | V1Completed | V1Failed:
    time, state = part.time, part.state
    start = time.created if time.ran is UNSET else time.ran
    span = V1Span(start, time.completed)
    match state:
        case PendingState(input=raw):
            return V1Pending({}, raw)
        case RunningState(input=input, structured=structured, content=content):
            metadata = _metadata(part.name, structured, content)
            return V1Running(_input(part.name, input), V1Span(start), metadata=metadata)
        case CompletedState(input=input, structured=structured, content=content):
            given = _input(part.name, input)
            title = next((str(given[name]) for name in _TITLES if given.get(name)), "")
            metadata = _metadata(part.name, structured, content)
            return V1Completed(given, _text(content), title, metadata, span)
        case ErrorState(input=input, error=error, structured=structured):
            return V1Failed(_input(part.name, input), error.message, span, metadata=structured)


def _input(tool: str, given: JsonObject) -> JsonObject:
    if tool not in _FILE_TOOLS:
        return given
    return {_INPUT_NAMES.get(name, name): value for name, value in given.items()}


def _metadata(tool: str, structured: JsonObject, content: tuple[ToolContent, ...]) -> JsonObject:
    if tool == "bash":
        return {**structured, "output": _text(content)}
    describe = _DESCRIPTIONS.get(tool)
    return structured if describe is None else {**structured, **describe(structured)}


def _describe_edit(structured: JsonObject) -> JsonObject:
    """The change of one file, of which the terminal draws `diff` and the web app `filediff`."""
    files = structured.get("files")
    if not files:
        return {}
    change = files[0]
    counts = {name: change[name] for name in ("additions", "deletions", "patch")}
    filediff = {"file": change["path"], **counts}
    return {"diff": change["patch"], "filediff": filediff, "diagnostics": {}}


def _describe_patch(structured: JsonObject) -> JsonObject:
    files = structured.get("files")
    if files is None:
        return {}
    told = [
        {
            "type": _CHANGES[change["status"]],
            "relativePath": change["path"],
            "filePath": change["path"],
            "patch": change["patch"],
            "additions": change["additions"],
            "deletions": change["deletions"],
        }
        for change in files
    ]
    return {"files": told, "diff": "".join(change["patch"] for change in files), "diagnostics": {}}


def _describe_write(structured: JsonObject) -> JsonObject:
    """A finished write; V1 clients show its content only beside `diagnostics`."""
    known = {"exists": structured["existed"]} if "existed" in structured else {}
    return {**_describe_edit(structured), **known, "diagnostics": {}} if structured else {}


def _describe_glob(structured: JsonObject) -> JsonObject:
    return {"count": len(structured["entries"])} if "entries" in structured else {}


def _describe_grep(structured: JsonObject) -> JsonObject:
    return {"matches": len(structured["matches"])} if "matches" in structured else {}


def _describe_task(structured: JsonObject) -> JsonObject:
    return {"sessionId": structured["sessionID"]} if "sessionID" in structured else {}


def _text(content: tuple[ToolContent, ...]) -> str:
    return "\n".join(item.text for item in content if isinstance(item, TextContent))


_DESCRIPTIONS: Final[dict[str, Callable[[JsonObject], JsonObject]]] = {
    "edit": _describe_edit,
    "write": _describe_write,
    "apply_patch": _describe_patch,
    "glob": _describe_glob,
    "grep": _describe_grep,
    "task": _describe_task,
}
