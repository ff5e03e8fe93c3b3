"""The server name of TLS is read from real messages, in pieces, and never guessed."""

import ssl

import pytest

from perdure.core.sandbox import tls_name
from perdure.core.sandbox.tls_name import ServerName


def hello(name: str | None) -> bytes:
    """What OpenSSL sends first."""
    context = ssl.create_default_context()
    context.check_hostname = False
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


def in_records(message: bytes, size: int) -> bytes:
    body = message[5:]
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(message[:3] + len(piece).to_bytes(2, "big") + piece for piece in pieces)


@pytest.mark.parametrize("name", ["docs.python.org", "a.very-long-name.example", None])
def test_the_name_is_found(name: str | None) -> None:
    assert tls_name.read_server_name(hello(name)) == ServerName(name)


def test_every_beginning_of_a_message_is_incomplete() -> None:
    message = hello("docs.python.org")
    found = {tls_name.read_server_name(message[:count]) for count in range(len(message))}
    assert found == {"incomplete"}


@pytest.mark.parametrize("size", [1, 3, 4, 5, 100])
def test_a_message_in_many_records_is_joined(size: int) -> None:
    message = in_records(hello("docs.python.org"), size)
    assert tls_name.read_server_name(message) == ServerName("docs.python.org")
    assert tls_name.read_server_name(message[:-1]) == "incomplete"


def test_a_second_name_is_not_overlooked() -> None:
    message = bytearray(hello("docs.python.org"))
    at = message.index(b"docs.python.org") - 9
    extension = bytes(message[at : at + 9 + len(b"docs.python.org")])
    message[at:at] = extension
    _grow(message, len(extension))
    assert tls_name.read_server_name(bytes(message)) == "malformed"


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n",
        b"\x16\x02\x00\x00\x10",
        b"\x16\x03\x01\x00\x00",
        b"\x16\x03\x01\xff\xff\x01",
        b"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00",
        b"\x16\x03\x01\x00\x04\x01\x7f\xff\xff",
        b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03",
        b"\x16\x03\x01\x00\x06\x01\x00\x00\x01\x03\x03",
    ],
)
def test_what_is_not_such_a_message_is_malformed(data: bytes) -> None:
    assert tls_name.read_server_name(data) == "malformed"


def test_no_change_of_one_byte_yields_another_name_by_accident() -> None:
    message = hello("docs.python.org")
    at = message.index(b"docs.python.org")
    for place in range(len(message)):
        for flip in (0x01, 0x80, 0xFF):
            changed = bytearray(message)
            changed[place] ^= flip
            found = tls_name.read_server_name(bytes(changed))
            if isinstance(found, ServerName) and found.name not in {"docs.python.org", None}:
                assert at <= place < at + len(b"docs.python.org")


def _grow(message: bytearray, count: int) -> None:
    """Make the lengths around the extensions longer."""
    session = 5 + 4 + 34
    ciphers = session + 1 + message[session]
    compressions = ciphers + 2 + int.from_bytes(message[ciphers : ciphers + 2], "big")
    extensions = compressions + 1 + message[compressions]
    for at, size in ((3, 2), (6, 3), (extensions, 2)):
        length = int.from_bytes(message[at : at + size], "big") + count
        message[at : at + size] = length.to_bytes(size, "big")
