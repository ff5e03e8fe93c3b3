"""Finds what went wrong in the error body of any provider, also inside the bodies of gateways.

A gateway wraps the error of the provider that it asked: as an object, or as JSON text in a field
such as OpenRouter's `metadata.raw`. Each layer is opened, and all of them are shown and classified.
Only fields that hold errors are opened: others may repeat the conversation.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from perdure.llm.error import Reason
from perdure.llm.http import error_kind
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Value

BODY_BYTES_MAX: Final = 16 * 1024
_CODE_CHARS_MAX: Final = 500
_NESTING_MAX: Final = 16
"""How deep a message may be inside an error object."""

_INNER: Final = (
    "error",
    "errors",
    "message",
    "detail",
    "metadata",
    "raw",
    "innererror",
    "originalMessage",
    "cause",
    "fault",
    "base_resp",
    "response",
    "body",
)
"""Fields whose value is another error, or holds one."""
_TEXTS: Final = (
    "message",
    "Message",
    "msg",
    "detail",
    "errorMessage",
    "error_description",
    "status_msg",
    "faultstring",
)
_CODES: Final = ("code", "type", "status", "error_type", "status_code", "__type", "errorcode")

_STATUS: Final = re.compile(r"\b(4\d\d|5\d\d)\b")
_HTML_TITLE: Final = re.compile(r"<title[^>]{0,200}>([^<]{1,300})", re.IGNORECASE)


class ErrorDetail(Value):
    """An error object: text for a person, and the provider's code and type."""

    text: str
    code: str = ""

    @property
    def full_text(self) -> str:
        return f"{self.code} {self.text}"

    def reason(self, status: int | None = None, *, soon: bool = False) -> Reason:
        """The kind of failure. `soon`: the provider says when to retry."""
        if status is None:
            status = _status_in(self.code)
        return error_kind.classify(self.full_text, status, soon=soon)


def detail_of(value: JsonValue) -> ErrorDetail:
    """Find the message in an error object of any common shape."""
    layers = tuple(_layers(value, _NESTING_MAX))
    text = ": ".join(_distinct(layer.text for layer in layers))
    if not text:
        return ErrorDetail(codec.encode(value)[:BODY_BYTES_MAX].decode(errors="replace"))
    codes = dict.fromkeys(layer.code for layer in layers if layer.code)
    # Only the beginning is shown: an error inside a stream may be large.
    return ErrorDetail(text[:BODY_BYTES_MAX], " ".join(codes)[:_CODE_CHARS_MAX])


def detail_of_body(body: bytes) -> ErrorDetail:
    """Find the message in a body, which may not be JSON."""
    try:
        return detail_of(codec.decode_any(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = body.decode(errors="replace").strip()
    if text.startswith("<"):
        title = _HTML_TITLE.search(text)
        return ErrorDetail(title.group(1) if title else "a page of HTML")
    return ErrorDetail(text)


def is_error_body(body: bytes) -> bool:
    """Whether a body that should have been an answer is JSON that names an error instead."""
    try:
        value = codec.decode_any(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    match value:
        case {"error": inner} | {"errors": inner} | {"base_resp": inner}:
            return bool(inner)
        case _:
            return False


def _layers(value: JsonValue, depth: int) -> Iterator[ErrorDetail]:
    """The error and those inside it, from the outside to the inside."""
    match value:
        case str() as text:
            yield from _text_layers(text, depth)
        case [first, *_] if depth:
            yield from _layers(first, depth - 1)
        case {**fields}:
            yield from _object_layers(fields, depth)
        case _:
            return


def _text_layers(text: str, depth: int) -> Iterator[ErrorDetail]:
    """A text, or the error that it is the JSON of."""
    if depth and text.lstrip()[:1] in ("{", "[") and len(text) <= BODY_BYTES_MAX:
        try:
            inner = tuple(_layers(codec.decode_any(text), depth - 1))
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            inner = ()
        if inner:
            yield from inner
            return
    yield ErrorDetail(text)


def _object_layers(fields: JsonObject, depth: int) -> Iterator[ErrorDetail]:
    named = (fields.get(name) for name in _TEXTS)
    text = next((value for value in named if isinstance(value, str) and value), "")
    opened = [fields[name] for name in _INNER if fields.get(name) and fields[name] is not text]
    inner = [layer for value in opened if depth for layer in _layers(value, depth - 1)]
    if text:
        for layer in _text_layers(text, depth):
            text = layer.text + _place(fields)
            yield ErrorDetail(text, f"{_code(fields)} {layer.code}".strip())
    elif not inner and (code := _code(fields)):
        yield ErrorDetail("", code)
    yield from inner


def _place(value: Mapping[str, JsonValue]) -> str:
    """Where in the request the fault is, as validators say it: `["body", "messages", 1]`."""
    match value.get("loc"):
        case [*steps] if steps and all(isinstance(step, str | int) for step in steps):
            return f": {'.'.join(map(str, steps))}"
        case _:
            return ""


def _code(fields: Mapping[str, JsonValue]) -> str:
    named = (fields.get(name) for name in _CODES)
    return " ".join(str(item) for item in named if isinstance(item, str | int))


def _distinct(texts: Iterator[str]) -> list[str]:
    """The texts in order, without those that another one contains."""
    found: list[str] = []
    for text in filter(None, texts):
        if not any(text in other for other in found):
            found = [other for other in found if other not in text]
            found.append(text)
    return found


def _status_in(code: str) -> int | None:
    """The HTTP status in an error code inside a stream, if it names one."""
    named = _STATUS.search(code)
    return None if named is None else int(named.group())
