"""Decodes the JSON of a provider. Invalid or incomplete data is the provider's error.

Each wire protocol defines the shapes.
"""

from collections.abc import Sized
from typing import Final, TypeVar

import msgspec

from perdure.llm.error import LLMError
from perdure.schema import codec, json_values

T = TypeVar("T")

PARTS_MAX: Final = 2_048
"""As core.limits.ANSWER_PARTS_MAX. One event may hold many parts, before the answer is bounded."""


def decode(
    decoder: msgspec.json.Decoder[T], data: bytes, what: str, *, keeps_raw: bool = False
) -> T:
    """Decode `data`. Raises LLMError that names `what` was expected.

    `keeps_raw`: values of unknown shape are not decoded yet, so that only these can be too deep.
    """
    try:
        # Nearly all events of a stream are too short to hold too much.
        if len(data) > codec.SHALLOW_CHARS_MAX:
            if json_values.is_too_many(data):
                raise invalid_output(f"{what} with more than {json_values.JSON_VALUES_MAX} values")
            if not keeps_raw:
                codec.require_shallow(data)
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise not_understood(what, error) from error


def not_understood(what: str, error: Exception) -> LLMError:
    return invalid_output(f"{what} that is not understood: {error}")


def invalid_output(what: str) -> LLMError:
    return LLMError("invalid-provider-output", f"The provider sent {what}")


def require_few(found: Sized, what: str) -> None:
    """Refuse an answer with more parts of a kind than any answer may have."""
    if len(found) > PARTS_MAX:
        raise invalid_output(f"more than {PARTS_MAX:,} {what} in one answer")


def incomplete() -> LLMError:
    """The error of a stream that ended without the provider's end of the answer."""
    return LLMError("transport", "The provider's answer ended before it was complete")
