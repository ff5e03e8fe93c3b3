"""The streamed input of a tool call, once it is whole: a call, or the reason why it is none.

Pure and total. Empty input is an empty object, unless the answer was cut off: then nobody knows
whether an empty input was meant. Executing calls and checking them against a schema are not done
here.
"""

import msgspec

from perdure.llm.encoding import shared
from perdure.llm.event import ToolCall, ToolInputInvalid
from perdure.schema import codec
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
    """What the call `id` with the raw input `text` comes to."""
    if not text.strip():
        if cut:
            message = "the answer was cut off before the tool's input was complete"
            return ToolInputInvalid(id, name, message)
        return ToolCall(id, name, {}, hosted, metadata)
    try:
        value = codec.decode_any(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        return ToolInputInvalid(id, name, f"the tool's input is not JSON: {error}")
    whole = value if shared.is_object(value) else {"value": value}
    return ToolCall(id, name, whole, hosted, metadata)
