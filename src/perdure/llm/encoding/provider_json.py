"""JSON as a provider sent it. What cannot be read, or is not all, is its failure and not ours.

Which shapes there are is each wire protocol's knowledge.
"""

from typing import TypeVar

import msgspec

from perdure.llm.error import LLMError

T = TypeVar("T")


def decode(decoder: msgspec.json.Decoder[T], data: bytes, what: str) -> T:
    """Raises LLMError when `data` is not `what` the decoder is for."""
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise not_understood(what, error) from error


def not_understood(what: str, error: Exception) -> LLMError:
    return invalid_output(f"{what} that is not understood: {error}")


def invalid_output(what: str) -> LLMError:
    return LLMError("invalid-provider-output", f"The provider sent {what}")


def incomplete() -> LLMError:
    """The stream is over, and the provider has not said that its answer is."""
    return LLMError("transport", "The provider's answer ended before it was complete")
