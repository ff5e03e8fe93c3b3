"""The complete input of a tool call: a valid call, or why it is invalid.

Empty input is an empty object, unless the answer was cut off: then an empty input may not have been
meant. Checking the schema and executing the call are done elsewhere.
"""

from typing import Final

import msgspec

from perdure.llm.encoding import shared
from perdure.llm.event import ToolCall, ToolInputInvalid
from perdure.schema import codec, json_values
from perdure.schema.session.tool import ProviderMetadata

TOOL_INPUT_CHARS_MAX: Final = 2 * 1024 * 1024
"""Of one call, as JSON: four times what a model can write in one answer."""


def parse_call(
    id: str,
    name: str,
    text: str,
    *,
    cut: bool,
    hosted: bool = False,
    metadata: ProviderMetadata | None = None,
) -> ToolCall | ToolInputInvalid:
    """The call `id` with the raw input `text`, or why that input is invalid."""
    if not text.strip():
        if cut:
            message = "the answer was cut off before the tool's input was complete"
            return ToolInputInvalid(id, name, message)
        return ToolCall(id, name, {}, hosted, metadata)
    if (excess := _find_excess(text)) is not None:
        return ToolInputInvalid(id, name, f"the tool's input has more than {excess}")
    try:
        value = codec.decode_any(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        return ToolInputInvalid(id, name, f"the tool's input is not JSON: {error}")
    whole = value if shared.is_object(value) else {"value": value}
    return ToolCall(id, name, whole, hosted, metadata)


def _find_excess(text: str) -> str | None:
    """Which bound the input exceeds; each of its copies would hold up every other Session."""
    if len(text) > TOOL_INPUT_CHARS_MAX:
        return f"{TOOL_INPUT_CHARS_MAX} characters; make it in several calls"
    if json_values.is_too_many(text.encode("utf-8", "replace")):
        return f"{json_values.JSON_VALUES_MAX} values"
    return None
