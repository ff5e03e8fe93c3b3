"""Encodes values as JSON and decodes JSON to values; the only module that does.

Wire names differ from field names in one way: snake_case becomes camelCase, and a word `id` in
any place but the first is written `ID` (`session_id` is `sessionID`), several of them `IDs`.
Optional fields are left out, never written as null. Records are frozen; decoding validates,
construction does not.
"""

from itertools import accumulate
from typing import Any, Final, TypeVar

import msgspec

from perdure.schema.value import Value

T = TypeVar("T")

# JSON of unknown shape. `Any` is used for it only here.
JsonValue = Any
JsonObject = dict[str, Any]

JSON_DEPTH_MAX: Final = 128
"""Levels of arrays and objects in JSON of unknown shape. What is decoded at one depth of the stack
is encoded and decoded again at others, and the interpreter's limit counts both."""

SHALLOW_CHARS_MAX: Final = 2 * JSON_DEPTH_MAX
"""No longer text can be too deep: each level has two brackets."""

_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_LEVELS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_IDS = {"id": "ID", "ids": "IDs"}
_ENCODER = msgspec.json.Encoder()
_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}


def wire_name(field: str) -> str:
    """`assistant_message_id` -> `assistantMessageID`; a single leading word is unchanged."""
    first, *rest = field.split("_")
    return first + "".join(_IDS.get(word) or word.capitalize() for word in rest)


class Record(Value, omit_defaults=True, rename=wire_name):
    """A value that crosses a boundary: disk, wire or model."""


class Payload(Value, omit_defaults=True, rename=wire_name):
    """A request body. Its own optional fields accept null as unset; nested records do not."""


class ConfidentialRecord(Record):
    """A record that may hold a secret: its repr and the problems of a request show no value."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


class ConfidentialPayload(Payload):
    """A request body that may hold a secret, as ConfidentialRecord."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


def encode(value: object) -> bytes:
    """Compact UTF-8 JSON."""
    return _ENCODER.encode(value)


def pretty(value: object) -> str:
    """Indented JSON for a person."""
    return msgspec.json.format(_ENCODER.encode(value), indent=2).decode()


def decode(kind: type[T], data: bytes | str) -> T:
    """Decode and validate; raises msgspec.DecodeError (malformed) or its ValidationError."""
    decoder = _DECODERS.get(kind)
    if decoder is None:
        decoder = _DECODERS[kind] = msgspec.json.Decoder(kind)
    return decoder.decode(data)


def decode_any(data: bytes | str) -> JsonValue:
    """Decode JSON of unknown shape; raises msgspec.DecodeError, also for what is too deep."""
    require_shallow(data)
    return msgspec.json.decode(data)


def require_shallow(data: bytes | str) -> None:
    """Raise msgspec.DecodeError for JSON with more than JSON_DEPTH_MAX levels. Linear."""
    if len(data) <= SHALLOW_CHARS_MAX:
        return
    text = data.encode(errors="replace") if isinstance(data, str) else bytes(data)
    if text.count(b"[") + text.count(b"{") <= JSON_DEPTH_MAX:
        return
    # Without escaped quotes, every second piece between quotes is outside strings.
    unescaped = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = b"".join(unescaped.split(b'"')[::2])
    brackets = outside.translate(None, _NOT_BRACKETS)
    if max(accumulate(map(_LEVELS.__getitem__, brackets)), default=0) > JSON_DEPTH_MAX:
        raise msgspec.DecodeError(f"JSON is nested more than {JSON_DEPTH_MAX} levels deep")


def convert(kind: type[T], value: object) -> T:
    """Validate an already decoded JSON value against `kind`."""
    return msgspec.convert(value, kind)


def to_json_value(value: object) -> JsonValue:
    """The JSON value (dicts, lists, scalars) that `encode` would write."""
    return msgspec.json.decode(_ENCODER.encode(value))
