"""The binary event stream of AWS: frames with checksums, headers and a JSON payload.

An event becomes a JSON object with one key, its type; an error frame becomes
`{"exception": <type>, "payload": <content>}`. The wire protocol interprets the events.

Invariant: bytes are used only after their checksum was verified, and at most one frame of the
permitted size is buffered.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final
from zlib import crc32

from perdure.llm.error import LLMError
from perdure.schema import codec

_PRELUDE: Final = struct.Struct(">III")
_CRC: Final = struct.Struct(">I")
_OVERHEAD: Final = _PRELUDE.size + _CRC.size
_FIXED_SIZES: Final = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Value sizes of header types with fixed size; bytes and texts have a length field."""

_BYTES: Final = 6
_TEXT: Final = 7
_KNOWN_HEADERS_MAX: Final = 64
"""Frames of one kind have the same headers; this many parsed headers are cached."""


class AwsFrames:
    """Splits chunks of bytes into events."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._rest = bytearray()
        self._wanted = _PRELUDE.size
        """Bytes needed for the next step."""
        self._known: dict[bytes, tuple[bytes, bytes] | None] = {}

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        self._rest += chunk
        at = 0
        try:
            while len(self._rest) - at >= self._wanted:
                if self._wanted == _PRELUDE.size:
                    self._wanted = self._length(at)
                    continue
                frame = bytes(self._rest[at : at + self._wanted])
                at += self._wanted
                self._wanted = _PRELUDE.size
                event = self._event(frame)
                if event is not None:
                    yield event
        finally:
            del self._rest[:at]

    def rest(self) -> Iterable[bytes]:
        """Nothing: a frame has its length, so one without its end is cut off."""
        return ()

    def _length(self, at: int) -> int:
        """The length of the frame at `at`, after checking the prelude's checksum."""
        total, headers, checksum = _PRELUDE.unpack_from(self._rest, at)
        if crc32(self._rest[at : at + 8]) != checksum:
            raise _damaged("the head of a frame does not match its checksum")
        if total > self._bytes_max:
            raise _damaged(f"a frame is larger than {self._bytes_max} bytes")
        if total < _OVERHEAD + headers:
            raise _damaged("a frame is shorter than its headers")
        return total

    def _event(self, frame: bytes) -> bytes | None:
        (checksum,) = _CRC.unpack_from(frame, len(frame) - _CRC.size)
        if crc32(frame[: -_CRC.size]) != checksum:
            raise _damaged("a frame does not match its checksum")
        _, size, _ = _PRELUDE.unpack_from(frame)
        end = _PRELUDE.size + size
        headers = frame[_PRELUDE.size : end]
        if headers not in self._known:
            if len(self._known) >= _KNOWN_HEADERS_MAX:
                self._known.clear()
            self._known[headers] = _wrapping(_texts(headers))
        wrapping = self._known[headers]
        if wrapping is None:
            return None
        before, after = wrapping
        return before + (frame[end : -_CRC.size] or b"{}") + after if after else before


def _wrapping(headers: dict[str, str]) -> tuple[bytes, bytes] | None:
    """The bytes before and after a payload, or instead of it; None to ignore the frame."""
    match headers:
        case {":message-type": "exception", ":exception-type": kind}:
            return b'{"exception":%b,"payload":' % codec.encode(kind), b"}"
        case {":message-type": "error"}:
            # Error frames have no payload.
            kind = headers.get(":error-code", "error")
            error_payload = {"message": headers.get(":error-message", "")}
            return codec.encode({"exception": kind, "payload": error_payload}), b""
        case {":message-type": "event", ":event-type": kind}:
            return b"{%b:" % codec.encode(kind), b"}"
        case _:
            return None


def _texts(headers: bytes) -> dict[str, str]:
    """The headers with text values; others are skipped."""
    found: dict[str, str] = {}
    at = 0
    try:
        while at < len(headers):
            name_end = at + 1 + headers[at]
            name = headers[at + 1 : name_end].decode()
            kind, at = headers[name_end], name_end + 1
            if kind in (_BYTES, _TEXT):
                size = int.from_bytes(headers[at : at + 2])
                value, at = headers[at + 2 : at + 2 + size], at + 2 + size
                if kind == _TEXT:
                    found[name] = value.decode()
            else:
                at += _FIXED_SIZES[kind]
    except (IndexError, KeyError, UnicodeDecodeError) as error:
        raise _damaged("the headers of a frame cannot be read") from error
    if at != len(headers):
        raise _damaged("the headers of a frame are cut off")
    return found


def _damaged(what: str) -> LLMError:
    return LLMError("invalid-provider-output", f"The provider's event stream is damaged: {what}")
