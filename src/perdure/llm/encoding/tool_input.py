"""The complete input of a tool call: a valid call, or why it is invalid.

Empty input is an empty object, unless the answer was cut off: then an empty input may not have been
meant. Checking the schema and executing the call are done elsewhere.
"""

import msgspec

from perdure.llm.encoding import shared
from perdure.llm.event import ToolCall, ToolInputInvalid
from perdure.schema import codec, json_values
from perdure.schema.session.tool import ProviderMetadata


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
    if json_values.is_too_many(text.encode("utf-8", "replace")):
        message = f"the tool's input has more than {json_values.JSON_VALUES_MAX} values"
        return ToolInputInvalid(id, name, message)
    try:
        value = codec.decode_any(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        return ToolInputInvalid(id, name, f"the tool's input is not JSON: {error}")
    whole = value if shared.is_object(value) else {"value": value}
    return ToolCall(id, name, whole, hosted, metadata)
