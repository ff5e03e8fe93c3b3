"""Structured results: what the model is told about their form, and how its answer is read.

The schema is part of the prompt and the value part of the answer, so both are in the log, with any
model and any provider.
"""

import re
from collections.abc import Iterator
from typing import Final, Generic, TypeVar, cast

import msgspec

from perdure.lazy_pattern import lazy_pattern
from perdure.schema import codec, type_schema

T = TypeVar("T")

ATTEMPTS: Final = 3
"""The number of answers in which the model can give a value of the type."""
_FENCED: Final = lazy_pattern(r"```[^\n`]*\n(.*?)```", re.DOTALL)


class OutputError(ValueError):
    """The answer holds no value of the type that was asked for."""


class OutputType(Generic[T]):
    def __init__(self, annotation: type[T]) -> None:
        """Raises TypeSchemaError for a type without a JSON Schema."""
        self._described = type_schema.describe(annotation)

    @property
    def instruction(self) -> str:
        """Tells the model what its last message must be."""
        schema = codec.encode(self._described.schema).decode()
        return (
            "When you are done, let your last message be one JSON value that fits this JSON Schema,"
            f" and nothing else:\n{schema}"
        )

    def correction(self, error: OutputError) -> str:
        return f"That does not fit the JSON Schema: {error}\nAnswer with the JSON value alone."

    def read(self, text: str) -> T:
        """The value in the text of an answer. Raises OutputError."""
        reason = "there is no JSON in it"
        for candidate in _candidates(text):
            try:
                value = codec.decode_any(candidate.encode())
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                continue
            try:
                return cast("T", self._described.convert(value))
            except ValueError as error:
                reason = str(error)
        raise OutputError(reason)


def _candidates(text: str) -> Iterator[str]:
    """The parts of a text that may be the value, the likeliest first."""
    yield text.strip()
    yield from reversed(_FENCED.findall(text))
    for opening, closing in ("{}", "[]"):
        start, end = text.find(opening), text.rfind(closing)
        if 0 <= start < end:
            yield text[start : end + 1]
