"""Results of MCP tools as results of ours: texts, images, documents, and a structured value.

What a model cannot be shown (sound, an unknown binary) is named in a text instead. A link to a
resource is a text: the model reads it with `mcp_read_resource`. Reading a result does not fail,
whatever the server sent.
"""

import base64
import binascii
from collections.abc import Sequence
from typing import Final

from msgspec import field

from perdure.core import limits
from perdure.core.text import jsonc
from perdure.lazy_pattern import lazy_pattern
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.tool import FileContent, TextContent, ToolContent
from perdure.schema.value import Value

_SHOWN_TYPES: Final = frozenset(
    {"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"}
)
_MIME: Final = lazy_pattern(r"[a-z0-9][a-z0-9.+-]{0,60}/[a-z0-9][a-z0-9.+-]{0,60}")
_UNKNOWN_TYPE: Final = "application/octet-stream"


class McpResult(Value, kw_only=True):
    content: tuple[ToolContent, ...] = ()
    structured: JsonObject = field(default_factory=dict[str, JsonValue])
    failed: bool = False

    @property
    def failure(self) -> str:
        """The error of a failed call, for the model."""
        text = "\n".join(part.text for part in self.content if isinstance(part, TextContent))
        return bounded_error(text) or "The tool failed and did not say why."


def read_result(result: JsonObject) -> McpResult:
    """Translate the result of a call."""
    given: JsonValue = result.get("content")
    parts: list[JsonValue] = given if jsonc.is_list(given) else []
    content = _content(parts)
    value: JsonValue = result.get("structuredContent")
    structured = _structured(value)
    if not content and not structured and value is not None:
        # Too large to be kept, and there is nothing else that the model could be shown.
        content = (TextContent(text=_text(codec.encode(value).decode())),)
    return McpResult(content=content, structured=structured, failed=result.get("isError") is True)


def read_resource(result: JsonObject) -> tuple[ToolContent, ...]:
    """Translate what a server answers to the reading of a resource."""
    given: JsonValue = result.get("contents")
    parts: list[JsonValue] = given if jsonc.is_list(given) else []
    return _content([{"type": "resource", "resource": part} for part in parts])


def bounded_error(text: str) -> str:
    """The beginning of an error of a server, as valid Unicode."""
    plain = text.encode(errors="replace").decode().strip()
    more = len(plain) - limits.MCP_ERROR_CHARS_MAX
    if more <= 0:
        return plain
    return f"{plain[: limits.MCP_ERROR_CHARS_MAX]}... ({more} more characters)"


def _content(parts: Sequence[JsonValue]) -> tuple[ToolContent, ...]:
    shown = [_part(part) for part in parts[: limits.MCP_RESULT_PARTS_MAX]]
    more = len(parts) - limits.MCP_RESULT_PARTS_MAX
    if more > 0:
        shown.append(TextContent(text=f"[{more} more parts were left out]"))
    return tuple(_separated(shown))


def _separated(parts: Sequence[ToolContent]) -> list[ToolContent]:
    """The parts, with texts that follow each other on lines of their own."""
    found: list[ToolContent] = []
    for part in parts:
        before = found[-1] if found else None
        if isinstance(part, TextContent) and isinstance(before, TextContent):
            gap = "" if before.text.endswith("\n") else "\n"
            found[-1] = TextContent(text=f"{before.text}{gap}{part.text}")
        else:
            found.append(part)
    return found


def _part(part: JsonValue) -> ToolContent:
    if not jsonc.is_object(part):
        return TextContent(text="[a part that is not an object was left out]")
    match part.get("type"):
        case "text":
            return TextContent(text=_text(part.get("text")))
        case "image" | "audio":
            return _binary(_text(part.get("data")), part.get("mimeType"), name=None)
        case "resource_link":
            return TextContent(text=_link(part))
        case "resource":
            resource: JsonValue = part.get("resource")
            return _resource(resource if jsonc.is_object(resource) else {})
        case other:
            return TextContent(text=f"[a part of the unknown type {_short(other)} was left out]")


def _resource(resource: JsonObject) -> ToolContent:
    uri = _short(resource.get("uri"))
    if isinstance(resource.get("text"), str):
        return TextContent(text=f"{uri}:\n{_text(resource['text'])}")
    return _binary(_text(resource.get("blob")), resource.get("mimeType"), name=uri)


def _binary(data: str, given: JsonValue, *, name: str | None) -> ToolContent:
    mime = given.lower() if isinstance(given, str) else _UNKNOWN_TYPE
    if _MIME.fullmatch(mime) is None:
        mime = _UNKNOWN_TYPE
    what = mime if name is None else f"{name}, {mime}"
    if len(data) > limits.IMAGE_BASE64_BYTES_MAX:
        return TextContent(text=f"[{what}: too large to be shown]")
    try:
        size = len(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return TextContent(text=f"[{what}: not valid base64]")
    if not size or mime not in _SHOWN_TYPES:
        return TextContent(text=f"[{what}, {size} bytes: cannot be shown]")
    content = FileContent(uri=f"data:{mime};base64,{data}", mime=mime)
    return content if name is None else FileContent(uri=content.uri, mime=mime, name=name)


def _link(part: JsonObject) -> str:
    name, uri = _short(part.get("name")), _short(part.get("uri"))
    about = part.get("description") or part.get("title")
    described = f": {_text(about)}" if isinstance(about, str) else ""
    return f"[{name}]({uri}){described}"


def _structured(value: JsonValue) -> JsonObject:
    if value is None:
        return {}
    found: JsonObject = value if jsonc.is_object(value) else {"result": value}
    try:
        size = len(codec.encode(found))
    except UnicodeEncodeError:
        # Half a character, which the protocol's own reader refuses before.
        return {}
    # Stored with every message of the Session; the content holds the same for the model.
    return found if size <= limits.MCP_STRUCTURED_BYTES_MAX else {}


def _text(value: JsonValue) -> str:
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""


def _short(value: JsonValue) -> str:
    text = _text(value) if isinstance(value, str) else ""
    return text[: limits.MCP_NAME_CHARS_MAX * 10] or "unnamed"
