"""Model Tool Output: the bounded text of one settlement, whatever the tool returned.

One limit covers all text of a settlement, in lines and in UTF-8 bytes, whichever is met first.
Media and structured values are not counted and never changed. Keeping the complete text is the
business of tools.api.output_store.

Invariant: what `preview` returns is itself within the limits.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from perdure.core.limits import TOOL_OUTPUT_BYTES_MAX, TOOL_OUTPUT_LINES_MAX
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.session.tool import FileContent, TextContent, ToolContent
from perdure.schema.value import Value

# Two blank lines and their breaks around the marker.
_FRAME_LINES: Final = 4
_FRAME_BYTES: Final = 4


class OutputLimits(Value, kw_only=True):
    lines_max: int = TOOL_OUTPUT_LINES_MAX
    bytes_max: int = TOOL_OUTPUT_BYTES_MAX


def measured_text(structured: JsonObject, content: Sequence[ToolContent]) -> str:
    """The text that counts: the text parts, or the readable JSON of `structured` without parts."""
    if content:
        return "".join(part.text for part in content if isinstance(part, TextContent))
    return msgspec.json.format(codec.encode(structured), indent=2).decode()


def fits(text: str, limits: OutputLimits) -> bool:
    if text.count("\n") >= limits.lines_max:
        return False
    # A character is at most four bytes: most texts are settled without encoding them.
    return len(text) * 4 <= limits.bytes_max or len(text.encode()) <= limits.bytes_max


def preview(text: str, limits: OutputLimits, *, path: str | None) -> str:
    """The head and the tail of `text` around a line that says what was cut and where it is."""
    return truncate_around(text, limits, marker=_marker(text, path))


def truncate_around(text: str, limits: OutputLimits, *, marker: str) -> str:
    """The head and the tail of `text`, which does not fit, around `marker`."""
    lines_max = limits.lines_max - _FRAME_LINES
    bytes_max = limits.bytes_max - len(marker.encode()) - _FRAME_BYTES
    if lines_max <= 0 or bytes_max <= 0:
        return _cut_end(marker, limits.bytes_max)
    head, tail = _head_and_tail(text, lines_max=lines_max, bytes_max=bytes_max)
    return f"{head}\n\n{marker}\n\n{tail}"


def with_preview(content: Sequence[ToolContent], text: str) -> tuple[ToolContent, ...]:
    """One text part in place of all, before the media parts."""
    media = (part for part in content if isinstance(part, FileContent))
    return (TextContent(text=text), *media)


def _marker(text: str, path: str | None) -> str:
    lines = text.count("\n") + 1
    size = f"{lines} lines, {len(text.encode())} bytes"
    if path is None:
        return f"[Output truncated here: {size} in all. The rest was not kept.]"
    return f"[Output truncated here: {size} in all. Full output: {path}]"


def _head_and_tail(text: str, *, lines_max: int, bytes_max: int) -> tuple[str, str]:
    head = tail = text
    lines = text.split("\n")
    if len(lines) > lines_max:
        tail_lines = lines_max // 2
        head = "\n".join(lines[: lines_max - tail_lines])
        tail = "\n".join(lines[len(lines) - tail_lines :])
    # Each side has half of the room, and what the other side leaves unused.
    tail_bytes = len(tail.encode())
    head = _cut_end(head, max(bytes_max - tail_bytes, (bytes_max + 1) // 2))
    return head, _cut_start(tail, bytes_max - len(head.encode()))


def _cut_end(text: str, bytes_max: int) -> str:
    return text.encode()[: max(bytes_max, 0)].decode(errors="ignore")


def _cut_start(text: str, bytes_max: int) -> str:
    data = text.encode()
    return data[max(len(data) - bytes_max, 0) :].decode(errors="ignore")
