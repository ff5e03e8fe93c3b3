"""The frames of RFC 6455: reads those of a client, writes those of the server. Pure.

This checks what the protocol defines: shape, masking, fragments, sizes, UTF-8. A violation is a
ProtocolError with the close code that the RFC names. Extensions are not supported. The caller
decides what a message means and when to answer.

Invariant: however the bytes are split, the same messages come out, and at most `bytes_max` of a
message is held.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from perdure.schema.value import Value

NORMAL: Final = 1000
GOING_AWAY: Final = 1001
PROTOCOL_BROKEN: Final = 1002
NO_STATUS: Final = 1005
NOT_TEXT: Final = 1007
TOO_BIG: Final = 1009
TRY_AGAIN: Final = 1013

_FINAL: Final = 0x80
_RESERVED: Final = 0x70
_OPCODE: Final = 0x0F
_MASKED: Final = 0x80
_LENGTH: Final = 0x7F
_CONTROL_BYTES_MAX: Final = 125
_HEAD_BYTES: Final = 2
_MASK_BYTES: Final = 4
_SENDABLE_CODES: Final = frozenset({*range(1000, 1004), *range(1007, 1015), *range(3000, 5000)})


class Opcode(IntEnum):
    CONTINUATION = 0x0
    TEXT = 0x1
    BINARY = 0x2
    CLOSE = 0x8
    PING = 0x9
    PONG = 0xA


_OPCODES: Final = frozenset(Opcode)


class ProtocolError(Exception):
    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Message(Value):
    """A whole message or a control frame."""

    opcode: Opcode
    data: bytes


def frame(opcode: Opcode, data: bytes) -> bytes:
    """One unmasked, final frame, as a server sends it."""
    size = len(data)
    first = _FINAL | opcode
    if size <= _CONTROL_BYTES_MAX:
        return struct.pack("!BB", first, size) + data
    if size < 1 << 16:
        return struct.pack("!BBH", first, 126, size) + data
    return struct.pack("!BBQ", first, 127, size) + data


def close_frame(code: int, reason: str) -> bytes:
    told = reason.encode()[: _CONTROL_BYTES_MAX - 2].decode("utf-8", "ignore").encode()
    return frame(Opcode.CLOSE, struct.pack("!H", code) + told)


def close_code(data: bytes) -> int:
    """The code of a client's close frame. Raises ProtocolError when the frame is invalid."""
    if not data:
        return NO_STATUS
    code = int.from_bytes(data[:2], "big")
    if len(data) == 1 or code not in _SENDABLE_CODES:
        raise ProtocolError(PROTOCOL_BROKEN, "Invalid close code")
    _require_text(data[2:])
    return code


class FrameReader:
    def __init__(self, *, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._buffer = bytearray()
        self._kind: Opcode | None = None
        """The kind of the message whose fragments are arriving."""
        self._parts = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that `data` completes."""
        self._buffer += data
        while (found := self._frame()) is not None:
            final, opcode, payload = found
            message = self._message(opcode, payload, final=final)
            if message is not None:
                yield message

    def _frame(self) -> tuple[bool, Opcode, bytes] | None:
        """The next frame, unmasked; None while it is incomplete."""
        buffer = self._buffer
        if len(buffer) < _HEAD_BYTES:
            return None
        final, opcode = self._first(buffer[0])
        if not buffer[1] & _MASKED:
            raise ProtocolError(PROTOCOL_BROKEN, "A client must mask its frames")
        head, size = self._length(buffer[1] & _LENGTH)
        if size is None:
            return None
        self._require_size(opcode, size, final=final)
        begin = head + _MASK_BYTES
        if len(buffer) < begin + size:
            return None
        payload = _unmasked(bytes(buffer[begin : begin + size]), bytes(buffer[head:begin]))
        del buffer[: begin + size]
        return final, opcode, payload

    def _first(self, byte: int) -> tuple[bool, Opcode]:
        if byte & _RESERVED:
            raise ProtocolError(PROTOCOL_BROKEN, "Reserved bits are set")
        if byte & _OPCODE not in _OPCODES:
            raise ProtocolError(PROTOCOL_BROKEN, "Unknown opcode")
        return bool(byte & _FINAL), Opcode(byte & _OPCODE)

    def _length(self, short: int) -> tuple[int, int | None]:
        """The offset of the mask, and the size of the payload; None while it has not arrived."""
        wide = {126: 2, 127: 8}.get(short, 0)
        head = _HEAD_BYTES + wide
        if not wide:
            return head, short
        if len(self._buffer) < head:
            return head, None
        return head, int.from_bytes(self._buffer[_HEAD_BYTES:head], "big")

    def _require_size(self, opcode: Opcode, size: int, *, final: bool) -> None:
        if opcode >= Opcode.CLOSE:
            if size > _CONTROL_BYTES_MAX or not final:
                raise ProtocolError(
                    PROTOCOL_BROKEN, "A control frame must be short and not fragmented"
                )
        elif len(self._parts) + size > self._bytes_max:
            raise ProtocolError(TOO_BIG, f"A message is larger than {self._bytes_max} bytes")

    def _message(self, opcode: Opcode, payload: bytes, *, final: bool) -> Message | None:
        if opcode >= Opcode.CLOSE:
            return Message(opcode, payload)
        if (opcode is Opcode.CONTINUATION) != (self._kind is not None):
            raise ProtocolError(PROTOCOL_BROKEN, "Unexpected fragment")
        kind = self._kind or opcode
        self._parts += payload
        if not final:
            self._kind = kind
            return None
        data = bytes(self._parts)
        self._parts.clear()
        self._kind = None
        if kind is Opcode.TEXT:
            _require_text(data)
        return Message(kind, data)


def _unmasked(payload: bytes, mask: bytes) -> bytes:
    size = len(payload)
    if not size:
        return payload
    # As one large number: a loop over the bytes takes a hundred times as long.
    key = int.from_bytes((mask * (size // _MASK_BYTES + 1))[:size], "big")
    return (int.from_bytes(payload, "big") ^ key).to_bytes(size, "big")


def _require_text(data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(NOT_TEXT, "The text is not UTF-8") from error
