"""The server name in the first message of a TLS connection (SNI, RFC 6066).

The name is sent in clear text. The proxy compares it with the host that a command asked for: many
servers share an address and choose by this name.

Invariant: a message that is not understood as a whole is malformed; nothing is guessed.
"""

from typing import Final, Literal

from perdure.schema.value import Value

HELLO_BYTES_MAX: Final = 16_384

_HANDSHAKE: Final = 22
_CLIENT_HELLO: Final = 1
_MAJOR_VERSION: Final = 3
_RECORD_BYTES_MAX: Final = 16_384 + 256
_SERVER_NAME: Final = 0
_HOST_NAME: Final = 0


class ServerName(Value):
    """The name in a complete message; None if it has none."""

    name: str | None


NameResult = ServerName | Literal["incomplete", "malformed"]


def is_tls(data: bytes) -> bool:
    """Whether a connection that begins with these bytes, at least one, may be TLS."""
    return data[0] == _HANDSHAKE


def read_server_name(data: bytes) -> NameResult:
    """Read the first message of a connection, of which `data` has arrived."""
    joined = _join_records(data)
    if isinstance(joined, str):
        return joined
    try:
        return ServerName(_find_name(_Fields(joined)))
    except ValueError:
        return "malformed"


def _join_records(data: bytes) -> bytes | Literal["incomplete", "malformed"]:
    """The body of the message, which may be split into several records."""
    message = b""
    at = 0
    while True:
        header = data[at : at + 5]
        if header[:1] not in (b"", bytes([_HANDSHAKE])) or header[1:2] not in (b"", b"\x03"):
            return "malformed"
        if len(header) < 5:
            return "incomplete" if at + 5 <= HELLO_BYTES_MAX else "malformed"
        length = int.from_bytes(header[3:5], "big")
        if not 0 < length <= _RECORD_BYTES_MAX:
            return "malformed"
        message += data[at + 5 : at + 5 + length]
        at += 5 + length
        if message[:1] != bytes([_CLIENT_HELLO])[: len(message)]:
            return "malformed"
        if len(message) >= 4:
            needed = 4 + int.from_bytes(message[1:4], "big")
            if needed > HELLO_BYTES_MAX:
                return "malformed"
            if len(message) >= needed:
                return message[4:needed] if len(message) == needed else "malformed"
        if at > len(data):
            return "incomplete"


class _Fields:
    """The fields of a message, read in order. Raises ValueError past the end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) < count:
            raise ValueError("the message ends early")
        self._at += count
        return found

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "big")

    def sized(self, count: int) -> "_Fields":
        """A field with its length, of `count` bytes, in front."""
        return _Fields(self.take(self.number(count)))

    @property
    def left(self) -> bool:
        return self._at < len(self._data)


def _find_name(hello: _Fields) -> str | None:
    if hello.number(1) != _MAJOR_VERSION:
        raise ValueError("not a version of TLS")
    hello.take(1 + 32)
    for size in (1, 2, 1):
        # The session, the ciphers, the compressions.
        hello.sized(size)
    if not hello.left:
        return None
    extensions = hello.sized(2)
    if hello.left:
        raise ValueError("bytes after the extensions")
    names: list[str] = []
    while extensions.left:
        kind, content = extensions.number(2), extensions.sized(2)
        if kind == _SERVER_NAME:
            names.append(_read_name(content))
    if len(names) > 1:
        raise ValueError("several names")
    return names[0] if names else None


def _read_name(content: _Fields) -> str:
    listed = content.sized(2)
    kind, name = listed.number(1), listed.take(listed.number(2))
    if kind != _HOST_NAME or listed.left or content.left:
        raise ValueError("not one host name")
    return name.decode("ascii")
