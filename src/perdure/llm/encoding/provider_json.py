"""Decodes the JSON of a provider. Invalid or incomplete data is the provider's error.

Each wire protocol defines the shapes.
"""

from typing import TypeVar

import msgspec

from perdure.llm.error import LLMError
from perdure.schema import json_values

T = TypeVar("T")


def decode(decoder: msgspec.json.Decoder[T], data: bytes, what: str) -> T:
    """Decode `data`. Raises LLMError that names `what` was expected."""
    if json_values.is_too_many(data):
        raise invalid_output(f"{what} with more than {json_values.JSON_VALUES_MAX} values")
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise not_understood(what, error) from error


def not_understood(what: str, error: Exception) -> LLMError:
    return invalid_output(f"{what} that is not understood: {error}")


def invalid_output(what: str) -> LLMError:
    return LLMError("invalid-provider-output", f"The provider sent {what}")


def incomplete() -> LLMError:
    """The error of a stream that ended without the provider's end of the answer."""
    return LLMError("transport", "The provider's answer ended before it was complete")
