"""Tool calls for people: what is called on one line, and what came of it, with the diff of an edit.

What a tool gets and returns was written by a model or a program, so every text is taken as it
comes and nothing in it is required.
"""

from collections.abc import Callable, Mapping
from typing import Final, cast

from perdure.cli.render.tables import plural
from perdure.cli.style import Span, Style
from perdure.schema.codec import JsonObject, JsonValue

DIFF_LINES_MAX: Final = 120
_MAIN_INPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "bash": ("command",),
    "edit": ("path",),
    "glob": ("pattern", "path"),
    "grep": ("pattern", "path"),
    "read": ("path",),
    "skill": ("name",),
    "task": ("subagent_type", "description"),
    "webfetch": ("url",),
    "websearch": ("query",),
    "write": ("path",),
}
"""The inputs of a tool that tell what it does."""
_FURTHER_SHOWN: Final = ("workdir", "background", "replaceAll", "include", "offset", "limit")


def describe_call(tool: str, input: JsonValue) -> str:
    """What a call does, in one line: `edit src/cart.py`."""
    values: JsonObject = cast("JsonObject", input) if isinstance(input, dict) else {}
    main = [str(values[key]) for key in _MAIN_INPUTS.get(tool, ()) if key in values]
    if not main:
        return f"{tool} {_compact(input)}" if input else tool
    further = [
        f"{key} {values[key]}" for key in _FURTHER_SHOWN if values.get(key) not in (None, "")
    ]
    return f"{tool} {' '.join(main)}" + (f" ({', '.join(further)})" if further else "")


def describe_result(tool: str, structured: JsonValue) -> str:
    """What came of a call, in a few words; empty if there is nothing to tell."""
    found: JsonObject = cast("JsonObject", structured) if isinstance(structured, dict) else {}
    describe = _RESULTS.get(tool)
    return describe(found) if describe is not None else ""


def list_patches(tool: str, input: JsonValue, structured: JsonValue) -> list[tuple[str, str]]:
    """The files that a call changed, each with its unified diff; empty if it changed none."""
    found: JsonObject = cast("JsonObject", structured) if isinstance(structured, dict) else {}
    if files := _files_of(found):
        return [(str(file.get("path", "")), str(file.get("patch", ""))) for file in files]
    values: JsonObject = cast("JsonObject", input) if isinstance(input, dict) else {}
    if tool == "write" and found.get("existed") is False and "content" in values:
        path, lines = str(found.get("resource", "")), str(values["content"]).splitlines()
        heading = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n"
        return [(path, heading + "".join(f"+{line}\n" for line in lines))]
    return []


def render_diff(patch: str, *, lines_max: int = DIFF_LINES_MAX, indent: str = "  ") -> list[Span]:
    """A unified diff, coloured by line and cut after `lines_max` lines."""
    lines = patch.splitlines()
    spans = [Span(f"{indent}{line}\n", _style_of(line)) for line in lines[:lines_max]]
    if (rest := len(lines) - lines_max) > 0:
        spans.append(
            Span(f"{indent}({plural(rest, 'more line')}; `perdure diff` shows all)\n", Style.DIM)
        )
    return spans


def _style_of(line: str) -> Style:
    if line.startswith(("+++", "---", "Index:", "===", "diff ")):
        return Style.BOLD
    if line.startswith("@@"):
        return Style.CYAN
    return {"+": Style.GREEN, "-": Style.RED}.get(line[:1], Style.PLAIN)


def _describe_bash(found: JsonObject) -> str:
    if "job" in found:
        return f"runs in the background as {found['job']}"
    if found.get("timeout") is True:
        return "stopped: its time was over"
    return f"exit status {found['exit']}" if "exit" in found else ""


def _describe_list(key: str, noun: str) -> Callable[[JsonObject], str]:
    def describe(found: JsonObject) -> str:
        items = found.get(key)
        if not isinstance(items, list):
            return ""
        more = " or more" if found.get("truncated") is True else ""
        return plural(len(cast("list[object]", items)), noun) + more

    return describe


def _describe_files(found: JsonObject) -> str:
    changed = _files_of(found)
    if not changed:
        return ""
    added = sum(int(file.get("additions", 0)) for file in changed)
    removed = sum(int(file.get("deletions", 0)) for file in changed)
    return f"{plural(len(changed), 'file')} changed, +{added} -{removed}"


def _files_of(found: JsonObject) -> list[JsonObject]:
    files = found.get("files")
    items = cast("list[object]", files) if isinstance(files, list) else []
    return [cast("JsonObject", file) for file in items if isinstance(file, dict)]


def _describe_write(found: JsonObject) -> str:
    return "replaced" if found.get("existed") is True else "created"


_RESULTS: Final[Mapping[str, Callable[[JsonObject], str]]] = {
    "apply_patch": _describe_files,
    "bash": _describe_bash,
    "edit": _describe_files,
    "glob": _describe_list("entries", "file"),
    "grep": _describe_list("matches", "match"),
    "write": _describe_write,
}


def _compact(value: JsonValue) -> str:
    # Imported late: the tools that people see most do not need it.
    import json

    return json.dumps(value, ensure_ascii=False)
