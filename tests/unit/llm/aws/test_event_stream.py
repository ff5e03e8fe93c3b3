"""Binary frames: what is let through, what is refused, and how much is held."""

import struct
from zlib import crc32

import pytest

from perdure.llm.aws.event_stream import AwsFrames
from perdure.llm.error import LLMError
from tests.contract.llm.protocols.bedrock.recordings import event, exception, framed

BYTES_MAX = 4_096


def read(*pieces: bytes) -> list[bytes]:
    reader = AwsFrames(BYTES_MAX)
    return [frame for piece in pieces for frame in reader.feed(piece)]


def with_headers(block: bytes) -> bytes:
    head = struct.pack(">II", 16 + len(block) + 2, len(block))
    whole = head + struct.pack(">I", crc32(head)) + block + b"{}"
    return whole + struct.pack(">I", crc32(whole))


def test_a_payload_comes_under_the_name_of_its_event() -> None:
    assert read(event("messageStart", role="x")) == [
        b'{"messageStart":{"role":"x","p":"abcdefghijk"}}'
    ]
    assert read(framed({":message-type": "event", ":event-type": 'a"b'}, b"")) == [b'{"a\\"b":{}}']


def test_an_exception_is_told_and_not_skipped() -> None:
    assert read(exception("throttlingException", "slow down")) == [
        b'{"exception":"throttlingException","payload":{"message":"slow down"}}'
    ]


def test_headers_of_every_type_can_stand_before_the_ones_that_count() -> None:
    def named(name: bytes, rest: bytes) -> bytes:
        return bytes((len(name),)) + name + rest

    sizes = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
    odd = b"".join(named(b"h", bytes((kind,)) + b"\0" * size) for kind, size in sizes.items())
    odd += named(b"b", b"\x06\x00\x02\xff\xfe")
    text = named(b":message-type", b"\x07\x00\x05event") + named(b":event-type", b"\x07\x00\x01x")
    assert read(with_headers(odd + text)) == [b'{"x":{}}']


@pytest.mark.parametrize(
    "block",
    [b"\xff", b"\x01h", b"\x01h\x07\x00", b"\x01h\x07\x00\x09abc", b"\x01h\x63", b"\x01\xff\x00"],
)
def test_headers_that_cannot_be_read_are_refused(block: bytes) -> None:
    with pytest.raises(LLMError, match="headers of a frame") as failed:
        read(with_headers(block))
    assert failed.value.reason == "invalid-provider-output"


def test_a_frame_that_would_be_too_large_is_refused_by_its_head() -> None:
    head = struct.pack(">II", BYTES_MAX + 1, 0)
    with pytest.raises(LLMError, match="larger than 4096 bytes"):
        read(head + struct.pack(">I", crc32(head)))


@pytest.mark.parametrize(("total", "headers"), [(15, 0), (0, 0), (20, 5), (16, 2**32 - 1)])
def test_lengths_that_contradict_each_other_are_refused(total: int, headers: int) -> None:
    head = struct.pack(">II", total, headers)
    with pytest.raises(LLMError, match="shorter than its headers"):
        read(head + struct.pack(">I", crc32(head)))


@pytest.mark.parametrize("at", [0, 5, 9, 20, -6, -1])
def test_a_wrong_checksum_is_refused(at: int) -> None:
    frame = bytearray(event("messageStart", role="x"))
    frame[at] ^= 4
    with pytest.raises(LLMError, match="checksum"):
        read(bytes(frame))


def test_frames_before_a_damaged_one_are_still_told() -> None:
    frames = AwsFrames(BYTES_MAX).feed(event("a") + b"\0" * 16)
    assert next(frames) == b'{"a":{"p":"abcdefghijk"}}'
    with pytest.raises(LLMError, match="checksum"):
        next(frames)


def test_many_kinds_of_headers_do_not_pile_up() -> None:
    frames = [event(f"kind{number}") for number in range(1_000)]
    assert len(read(b"".join(frames))) == 1_000
