"""WebSocket frames: the same messages however the bytes are cut, and nonsense is named."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.server.http import websocket_frame
from perdure.server.http.websocket_frame import FrameReader, Message, Opcode, ProtocolError
from tests.support.websocket import BINARY, CLOSE, PING, TEXT, masked

LIMIT = 200_000


def read(data: bytes, *, step: int | None = None) -> list[Message]:
    reader = FrameReader(bytes_max=LIMIT)
    pieces = [data] if step is None else [data[at : at + step] for at in range(0, len(data), step)]
    return [message for piece in pieces for message in reader.feed(piece)]


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, LIMIT])
def test_a_message_of_any_length_is_read(size: int) -> None:
    data = bytes(at % 251 for at in range(size))
    assert read(masked(BINARY, data)) == [Message(Opcode.BINARY, data)]


@given(
    messages=st.lists(st.tuples(st.sampled_from([TEXT, PING]), st.text(max_size=30)), max_size=8),
    step=st.integers(min_value=1, max_value=9),
    mask=st.binary(min_size=4, max_size=4),
)
def test_where_the_bytes_are_cut_makes_no_difference(
    messages: list[tuple[int, str]], step: int, mask: bytes
) -> None:
    data = b"".join(masked(kind, text.encode(), mask=mask) for kind, text in messages)
    wanted = [Message(Opcode(kind), text.encode()) for kind, text in messages]
    assert read(data, step=step) == read(data) == wanted


def test_fragments_become_one_message_and_a_ping_may_stand_between_them() -> None:
    euro = "\u20ac".encode()
    data = (
        masked(TEXT, b"a" + euro[:1], final=False)
        + masked(PING, b"?")
        + masked(0, euro[1:], final=False)
        + masked(0, b"")
        + masked(TEXT, b"next")
    )
    assert read(data) == [
        Message(Opcode.PING, b"?"),
        Message(Opcode.TEXT, b"a" + euro),
        Message(Opcode.TEXT, b"next"),
    ]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x81\x01a", 1002),  # not masked
        (b"\xc1\x80....", 1002),  # a reserved bit
        (b"\x83\x80....", 1002),  # an unknown kind
        (b"\x8b\x80....", 1002),
        (masked(0, b"x"), 1002),  # nothing to continue
        (masked(TEXT, b"a", final=False) + masked(TEXT, b"b"), 1002),
        (masked(PING, b"x", final=False), 1002),
        (masked(PING, b"x" * 126), 1002),
        (masked(TEXT, b"\xff"), 1007),
        (masked(TEXT, b"\xe2", final=False) + masked(0, b"\x28"), 1007),
        (masked(BINARY, b"x" * (LIMIT + 1))[:14], 1009),  # known from its head
        (masked(BINARY, b"x" * LIMIT, final=False) + masked(0, b"x"), 1009),
        (b"\x82\xff" + b"\xff" * 8, 1009),
    ],
)
def test_whoever_breaks_the_protocol_is_told_how(data: bytes, code: int) -> None:
    for step in (None, 1):
        with pytest.raises(ProtocolError) as raised:
            read(data, step=step)
        assert raised.value.code == code


@given(st.binary(max_size=200))
def test_noise_never_does_more_than_break_the_protocol(noise: bytes) -> None:
    with suppress(ProtocolError):
        read(noise)


@pytest.mark.parametrize(
    ("data", "code"),
    [(b"", 1005), (b"\x03\xe8", 1000), (b"\x03\xe9bye", 1001), (b"\x11\x34", 4404)],
)
def test_a_close_says_why(data: bytes, code: int) -> None:
    assert websocket_frame.close_code(data) == code


@pytest.mark.parametrize("data", [b"\x03", b"\x03\xed", b"\x00\x00", b"\xff\xff", b"\x03\xe8\xff"])
def test_a_close_with_nonsense_breaks_the_protocol(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        websocket_frame.close_code(data)


def test_our_own_frames_say_their_length_in_the_shortest_form() -> None:
    assert websocket_frame.frame(Opcode.TEXT, b"hi") == b"\x81\x02hi"
    assert websocket_frame.frame(Opcode.BINARY, b"x" * 126)[:4] == b"\x82\x7e\x00\x7e"
    assert websocket_frame.frame(Opcode.TEXT, b"x" * 65_536)[:10] == b"\x81\x7f" + (
        65_536
    ).to_bytes(8, "big")
    closing = websocket_frame.close_frame(1000, "\u20ac" * 100)
    assert (closing[0] & 0x0F, len(closing)) == (CLOSE, 2 + 2 + 123)
