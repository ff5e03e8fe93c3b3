"""The list of tools of one MCP server, checked and bounded, with a digest of its content.

The list is offered to models, so it is the same text for the same content: tools are sorted by
name. Whatever a server sends, reading it does not fail: what cannot be offered is left out and
reported.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from msgspec import field

from perdure.core import limits
from perdure.core.text import jsonc
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue, Record
from perdure.schema.value import Value

_DIGESTS_KEPT: Final = 64
_CUT: Final = "\n[The rest of this text was left out.]"


class McpTool(Record):
    name: str
    """As the server calls it."""
    description: str
    schema: JsonObject


class McpToolList(Record):
    """What is known of a server: its tools and its instructions for the model."""

    tools: tuple[McpTool, ...] = ()
    instructions: str = ""
    has_resources: bool = False
    """Whether it has resources that can be read."""

    def encode(self) -> bytes:
        return codec.encode(self)

    @property
    def digest(self) -> str:
        """Identifies the content, in every process."""
        return _digest(self.encode())

    def by_name(self) -> Mapping[str, McpTool]:
        return {tool.name: tool for tool in self.tools}


FindFault = Callable[[JsonObject], str | None]
"""Says what keeps a schema from being offered; None if nothing does."""


class ReadList(Value, kw_only=True):
    list: McpToolList
    problems: tuple[str, ...] = field(default=())
    """What was left out, in words."""


def decode(data: bytes) -> McpToolList:
    """Read a stored list. Raises msgspec.DecodeError."""
    return codec.decode(McpToolList, data)


def read_list(
    tools: Iterable[JsonValue],
    instructions: str,
    *,
    has_resources: bool = False,
    fault: FindFault,
) -> ReadList:
    """Read what a server sent; `fault` says what keeps a schema from being offered."""
    reading = _Reading(fault)
    given = tuple(tools)
    for tool in given[: limits.MCP_TOOLS_MAX]:
        reading.add(tool)
    if len(given) > limits.MCP_TOOLS_MAX:
        more = len(given) - limits.MCP_TOOLS_MAX
        reading.problems.append(f"{more} tools beyond the first {limits.MCP_TOOLS_MAX}")
    found = McpToolList(
        tools=tuple(sorted(reading.tools.values(), key=lambda tool: tool.name)),
        instructions=_bounded(_clean(instructions), limits.MCP_INSTRUCTIONS_CHARS_MAX),
        has_resources=has_resources,
    )
    return ReadList(list=found, problems=_summary(reading.problems))


class _Reading:
    def __init__(self, fault: FindFault) -> None:
        self.tools: dict[str, McpTool] = {}
        self.problems: list[str] = []
        self._fault = fault
        self._bytes = 0

    def add(self, value: JsonValue) -> None:
        name = value.get("name") if jsonc.is_object(value) else None
        if not jsonc.is_object(value) or not isinstance(name, str) or not _is_text(name):
            self.problems.append("a tool without a name")
            return
        shown = repr(name[: limits.MCP_NAME_CHARS_MAX])
        if name in self.tools:
            self.problems.append(f"the second tool {shown}")
            return
        schema = _object_schema(value.get("inputSchema"))
        reason = "its input schema is not an object" if schema is None else self._fault(schema)
        if schema is None or reason is not None:
            self.problems.append(f"the tool {shown}: {reason}")
            return
        tool = McpTool(name=name, description=_description(value), schema=schema)
        self._bytes += len(codec.encode(tool))
        if self._bytes > limits.MCP_TOOLS_BYTES_MAX:
            self.problems.append(
                f"the tool {shown}: all tools of a server may have"
                f" {limits.MCP_TOOLS_BYTES_MAX} bytes"
            )
            return
        self.tools[name] = tool


def _object_schema(value: JsonValue) -> JsonObject | None:
    """The schema as every provider takes it: an object with properties."""
    if value is None:
        value = {}
    if not jsonc.is_object(value):
        return None
    schema = {"type": "object", **value}
    properties: JsonValue = schema.setdefault("properties", {})
    return schema if jsonc.is_object(properties) else {**schema, "properties": {}}


def _description(tool: JsonObject) -> str:
    texts = (tool.get("description"), tool.get("title"))
    found = next((text for text in texts if isinstance(text, str) and text.strip()), "")
    return _bounded(_clean(found), limits.MCP_DESCRIPTION_CHARS_MAX)


def _clean(text: str) -> str:
    """The text as valid Unicode."""
    return text.encode(errors="replace").decode()


def _bounded(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else text[:chars_max] + _CUT


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return bool(name.strip())


def _summary(problems: Sequence[str]) -> tuple[str, ...]:
    more = len(problems) - limits.MCP_PROBLEMS_MAX
    told = tuple(problems[: limits.MCP_PROBLEMS_MAX])
    return told if more <= 0 else (*told, f"{more} more")


@lru_cache(maxsize=_DIGESTS_KEPT)
def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
