"""JSON with comments and trailing commas, and errors with positions.

Comments and trailing commas are overwritten with spaces, byte for byte, so that positions stay the
same. Strings are never changed. A comma is trailing only after a value: `[,]` stays an error. The
positions of keys are found in a second pass, made only if they are needed.

Invariant: each pass is linear in any input.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Final, TypeGuard

import msgspec

from perdure.lazy_pattern import lazy_pattern
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Value

Address = tuple[str | int, ...]
"""The path to a value: keys of objects and indexes of lists."""

NESTING_MAX: Final = 100
"""More than any configuration needs, and few enough for recursive readers."""

_TOO_DEEP: Final = f"nested deeper than {NESTING_MAX} levels"
_BOM: Final = b"\xef\xbb\xbf"
_BYTE_OFFSET: Final = lazy_pattern(r" \(byte (\d+)\)")
_TOKEN: Final = lazy_pattern(
    rb"""
      (?P<string> "(?:[^"\\]++|\\.)*+"?+ )
    | (?P<comment> //[^\r\n]*+ | /\*(?:[^*]++|\*(?!/))*+\*/ )
    | (?P<open_comment> /\*(?:[^*]++|\*(?!/))*+ )
    | (?P<comma> , )
    | (?P<other> [^\s",/]++ | / )
    """,
    re.VERBOSE | re.DOTALL,
)
_NO_VALUE_BEFORE: Final = frozenset(b"[{:,")
_BLANKED: Final = bytes(byte if byte in b"\r\n" else ord(" ") for byte in range(256))
_MARK: Final = lazy_pattern(rb'"(?:[^"\\]++|\\.)*+"|[][{},:]|[^][{},:"\s]++', re.DOTALL)


class JsoncError(ValueError):
    """Invalid JSONC. Line and column count from 1, in characters."""

    def __init__(self, message: str, *, line: int, column: int) -> None:
        super().__init__(f"{message} (line {line}, column {column})")
        self.message = message
        self.line = line
        self.column = column


class Position(Value):
    """A position in a text. Both count from 1, in characters."""

    line: int
    column: int


class Positions:
    """Positions of the keys and list items of a valid document."""

    def __init__(self, data: bytes) -> None:
        self._data = data.removeprefix(_BOM)
        self._lines = [match.end() for match in re.finditer(rb"\n", self._data)]
        # Of a repeated key the last counts, as in the decoded value.
        self._offsets: Mapping[Address, int] = dict(_offsets(blank(self._data)))

    def position_of(self, address: Address) -> Position | None:
        offset = self._offsets.get(address)
        if offset is None:
            return None
        line = bisect_right(self._lines, offset)
        start = self._lines[line - 1] if line else 0
        return Position(line + 1, len(self._data[start:offset].decode(errors="replace")) + 1)


def decode(data: bytes) -> JsonValue:
    """Parse `data`. Raises JsoncError."""
    data = data.removeprefix(_BOM)
    try:
        # Most files are plain JSON and need no further pass.
        value = codec.decode_any(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        value = _decode_strict(blank(data))
    except RecursionError as error:
        raise _error(data, 0, _TOO_DEEP) from error
    if data.count(b"[") + data.count(b"{") > NESTING_MAX and _depth(value) > NESTING_MAX:
        raise _error(data, 0, _TOO_DEEP)
    return value


def is_object(value: JsonValue) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


def is_list(value: JsonValue) -> TypeGuard[list[JsonValue]]:
    return isinstance(value, list)


def blank(data: bytes) -> bytes:
    """`data` with comments and trailing commas replaced by spaces, in the same length."""
    result = bytearray(data)
    last = ord("[")
    comma: int | None = None
    for token in _TOKEN.finditer(data):
        kind, start, end = token.lastgroup, token.start(), token.end()
        if kind == "open_comment":
            raise _error(data, start, "comment is never closed")
        if kind == "comment":
            result[start:end] = token.group().translate(_BLANKED)
            continue
        if kind == "comma":
            comma = None if last in _NO_VALUE_BEFORE else start
        elif comma is not None:
            if data[start] in b"]}":
                result[comma] = ord(" ")
            comma = None
        last = data[end - 1] if kind != "string" else ord('"')
    return bytes(result)


def _decode_strict(data: bytes) -> JsonValue:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise _error(data, error.start, "not UTF-8 text") from error
    try:
        return codec.decode_any(data)
    except msgspec.DecodeError as error:
        text = str(error)
        offset = _BYTE_OFFSET.search(text)
        message = _BYTE_OFFSET.sub("", text)
        raise _error(data, int(offset[1]) if offset else len(data), message) from error
    except RecursionError as error:
        raise _error(data, 0, _TOO_DEEP) from error


def _offsets(data: bytes) -> Iterator[tuple[Address, int]]:
    """The address of every key and list item of well-formed JSON, and its offset."""
    parents: list[tuple[Address, int]] = []
    """The open objects and lists: address, and the next index of a list or -1 for an object."""
    here: Address = ()
    name = False
    for token in _MARK.finditer(data):
        mark = token.group()
        if mark in b"]}":
            here, _ = parents.pop()
            name = False
        elif mark == b",":
            name = parents[-1][1] < 0
        elif mark == b":":
            name = False
        elif name:
            here = (*parents[-1][0], codec.decode_any(mark))
            yield here, token.start()
        else:
            if parents and parents[-1][1] >= 0:
                above, index = parents[-1]
                parents[-1] = above, index + 1
                here = (*above, index)
                yield here, token.start()
            if mark in b"[{":
                name = mark == b"{"
                parents.append((here, -1 if name else 0))


def _depth(value: JsonValue) -> int:
    """The nesting depth of lists and objects, without recursion."""
    depth, level = 0, [value]
    while level := [child for item in level for child in _children(item)]:
        depth += 1
    return depth


def _children(value: JsonValue) -> list[JsonValue]:
    if is_object(value):
        return list(value.values())
    return value if is_list(value) else []


def _error(data: bytes, offset: int, message: str) -> JsoncError:
    before = data[:offset]
    line_start = before.rfind(b"\n") + 1
    column = len(before[line_start:].decode(errors="replace")) + 1
    return JsoncError(message, line=before.count(b"\n") + 1, column=column)
