"""A call that the server could not read, as a call that failed: the model is told why.

Groq refuses such an answer, before it or inside the stream, and says what the model wrote (API
reference, error `tool_use_failed`). Refused for good, the turn would be lost; told of it, the model
can make the call again.
"""

import re
from typing import Final

import msgspec

from perdure.llm.event import ToolInputEnd, ToolInputInvalid, ToolInputStart
from perdure.schema import codec

_NAMED: Final = re.compile(
    r"""<function[=/]([\w.-]{1,64})|"name"\s{0,9}:\s{0,9}"([\w.-]{1,64})\""""
    r"|(?:for|call) tool '?([\w.-]{1,64})"
)
"""The name of the tool in what a model wrote, or in what the server says of it."""
_NOT_NAMED: Final = "unknown"


class _ToolUseFailed(msgspec.Struct):
    code: str | int | None = None
    message: str | None = None
    failed_generation: str | None = None


def read(
    error: msgspec.Raw, call_id: str
) -> tuple[ToolInputStart, ToolInputEnd, ToolInputInvalid] | tuple[()]:
    """The events of the call `call_id`; empty if the error is another one."""
    try:
        failed = codec.decode(_ToolUseFailed, bytes(error))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    if failed.code != "tool_use_failed":
        return ()
    wrote, said = failed.failed_generation or "", failed.message or "it is not valid"
    found = _NAMED.search(wrote) or _NAMED.search(said)
    name = _NOT_NAMED if found is None else next(filter(None, found.groups()), _NOT_NAMED)
    return (
        ToolInputStart(call_id, name),
        ToolInputEnd(call_id, wrote),
        ToolInputInvalid(call_id, name, f"The provider could not read this call: {said}"),
    )
