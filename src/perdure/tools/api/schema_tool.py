"""Tools whose input a JSON Schema describes: those of MCP servers, and of plugins that have one.

`ToolRegistry.register_schema` offers such a tool. The registry asks for permission before it runs,
with the tool's action and the resource `*`. The tool gets the input as the model wrote it, and
checks it against the schema.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from msgspec import field

from perdure.core import limits
from perdure.core.text import jsonc
from perdure.ports import PermissionAsk
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.tool import ToolContent
from perdure.schema.value import Value
from perdure.tools.api.tool import ToolCallContext, ToolEffect

_EVERYTHING: Final = ("*",)


class SchemaToolResult(Value, kw_only=True):
    structured: JsonObject = field(default_factory=dict[str, JsonValue])
    content: tuple[ToolContent, ...] = ()
    """What the model is shown; without parts it is shown the JSON of `structured`."""


class SchemaTool(Value, kw_only=True):
    name: str
    description: str
    schema: JsonObject
    """A JSON Schema of an object."""
    execute: Callable[[JsonObject, ToolCallContext], Awaitable[SchemaToolResult]]
    """Raises ToolFailure for what the model can act on."""
    action: str | None = None
    """The permission action that governs it, when it is not its own name."""
    asks: Callable[[JsonObject], str] | None = None
    """The permission action of one call, when it depends on the input."""
    effect: ToolEffect = "once"
    """Whether a call that a crash cut may be executed again."""

    @property
    def permission_action(self) -> str:
        return self.action or self.name


def find_fault(schema: JsonObject) -> str | None:
    """What keeps a schema from being offered, in words; None if nothing does."""
    if schema.get("type") != "object":
        return "its input schema does not describe an object"
    if not _is_within_depth(schema, limits.TOOL_SCHEMA_DEPTH_MAX):
        return f"its input schema is nested more than {limits.TOOL_SCHEMA_DEPTH_MAX} levels deep"
    try:
        size = len(codec.encode(schema))
    except (msgspec.MsgspecError, UnicodeEncodeError, TypeError):
        return "its input schema is not valid JSON"
    if size > limits.TOOL_SCHEMA_BYTES_MAX:
        return f"its input schema is larger than {limits.TOOL_SCHEMA_BYTES_MAX} bytes"
    return None


def permission_ask(tool: SchemaTool, input: JsonObject, context: ToolCallContext) -> PermissionAsk:
    """The request for a person's permission before the call runs."""
    return PermissionAsk(
        session_id=context.session_id,
        agent=context.agent,
        above=context.above,
        action=tool.permission_action if tool.asks is None else tool.asks(input),
        resources=_EVERYTHING,
        save=_EVERYTHING,
        metadata={"tool": tool.name, "input": input},
        source=context.source,
    )


def _is_within_depth(value: JsonValue, levels: int) -> bool:
    """Whether a value is nested at most so deep. Not recursive: it may be nested without end."""
    layer: list[JsonValue] = [value]
    for _ in range(levels):
        layer = [inner for outer in layer for inner in _parts(outer)]
        if not layer:
            return True
    return False


def _parts(value: JsonValue) -> list[JsonValue]:
    if jsonc.is_object(value):
        return list(value.values())
    return list(value) if jsonc.is_list(value) else []
