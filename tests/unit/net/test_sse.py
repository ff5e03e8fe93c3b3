"""Reading an event stream: the same events however it is cut, and work only by its size."""

import itertools
import time

import pytest

from perdure.net import sse
from perdure.net.sse import Frame, FrameTooLargeError

STREAM = (
    "id: 1\ndata: Grüße\n\n: a comment\n\nevent: odd\ndata: two\ndata: lines\n\ndata:\n\n".encode()
)
MIB = 1024 * 1024


def read(pieces: list[bytes], *, bytes_max: int = MIB) -> list[Frame]:
    reader = sse.Reader(bytes_max=bytes_max)
    return [frame for piece in pieces for frame in reader.feed(piece)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_however_a_stream_is_cut_its_events_are_the_same(end: bytes) -> None:
    stream = STREAM.replace(b"\n", end)
    whole = read([stream])
    assert [frame.data for frame in whole] == ["Grüße".encode(), b"two\nlines", b""]
    for size in range(1, 12):
        assert read([stream[at : at + size] for at in range(0, len(stream), size)]) == whole


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_an_event_comes_at_once_with_the_end_of_its_last_line(end: bytes) -> None:
    reader = sse.Reader(bytes_max=MIB)
    for number in range(3):
        data = b"%d" % number
        assert [frame.data for frame in reader.feed(b"data: " + data + end + end)] == [data]


def test_a_line_end_in_two_pieces_is_one() -> None:
    assert [f.data for f in read([b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n"])] == [b"a\nb"]


@pytest.mark.parametrize(
    ("stream", "rest"),
    [
        (b"", b""),
        (b"data: a\n\n", b""),
        (b"data: a\n\ndata: b", b"b"),
        (b"data: a\n\ndata: b\n", b"b"),
        (b"data: b\ndata: c", b"b\nc"),
        (b"event: x\ndata: b\nid: 4", b"b"),
        (b": comment", b""),
        (b"\xef\xbb\xbfdata: b", b"b"),
    ],
)
def test_what_the_end_of_the_stream_leaves_can_be_asked_for(stream: bytes, rest: bytes) -> None:
    reader = sse.Reader(bytes_max=MIB)
    list(reader.feed(stream))
    assert reader.rest() == rest
    assert reader.rest() == b""


def test_one_long_line_in_small_pieces_costs_no_more_than_its_length() -> None:
    pieces = [b"data: ", *([b"x" * 1024] * (8 * 1024)), b"\n\n"]
    started = time.perf_counter()
    (frame,) = read(pieces, bytes_max=16 * MIB)
    assert len(frame.data) == 8 * MIB
    # Reading it anew with each piece would take a minute.
    assert time.perf_counter() - started < 5


def test_a_line_that_never_ends_is_refused_at_the_bound() -> None:
    reader = sse.Reader(bytes_max=10_000)
    for _ in range(10):
        assert list(reader.feed(b"y" * 1_000)) == []
    with pytest.raises(FrameTooLargeError):
        list(reader.feed(b"y"))


@pytest.mark.parametrize("size", [1, 2, 3, 64])
def test_a_byte_order_mark_counts_only_at_the_begin(size: int) -> None:
    mark = b"\xef\xbb\xbf"
    stream = mark + b"data: one\n\n" + mark + b"data: two\n\ndata: " + mark + b"three\n\n"
    frames = read([stream[at : at + size] for at in range(0, len(stream), size)])
    assert [frame.data for frame in frames] == [b"one", mark + b"three"]


@pytest.mark.parametrize("line", [b"data:\n", b"data\n", b"data: \r\n", b"data:x\n"])
def test_lines_of_no_or_little_data_are_bounded_too(line: bytes) -> None:
    reader = sse.Reader(bytes_max=1_000)
    with pytest.raises(FrameTooLargeError):
        list(itertools.chain.from_iterable(map(reader.feed, [line] * 1_100)))


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize(
    "stream",
    [
        b"data: 1\n\ndata: 2\n\ndata: 3\n\n",
        b"data: 1\n\ndata: 2\ndata: 3\n\n",
        b"data: 1\n\n\ndata: 2\n\n",
        b"data: 1\n\nevent: a\ndata: 2\n\ndata: 3\n\n",
        b"data: 1\n\n: comment\n\ndata: 2\n\n",
        b"data: 1\n\ndata:2\n\ndata: data: 3\n\ndata: 4\n\nda",
        b"id: 1\ndata: 1\n\ndata: 2\n\n",
        b"\xef\xbb\xbfdata: 1\n\ndata: 2\n\n",
        b"data: \n\ndata: 2\n\n",
    ],
)
def test_the_data_of_events_is_the_same_however_it_is_read(stream: bytes, end: bytes) -> None:
    stream = stream.replace(b"\n", end)
    for first, second in itertools.combinations_with_replacement(range(len(stream) + 1), 2):
        pieces = [stream[:first], stream[first:second], stream[second:]]
        whole, data = sse.Reader(bytes_max=MIB), sse.Reader(bytes_max=MIB)
        expected = [frame.data for piece in pieces for frame in whole.feed(piece)]
        assert [found for piece in pieces for found in data.feed_data(piece)] == expected
        assert data.rest() == whole.rest()


def test_the_data_of_many_events_may_be_larger_than_the_bound_of_one() -> None:
    reader = sse.Reader(bytes_max=20)
    assert list(reader.feed_data(b"data: 1\n\n" * 10)) == [b"1"] * 10
    with pytest.raises(FrameTooLargeError):
        list(reader.feed_data(b"data: 1\n\ndata: " + b"2" * 30 + b"\n\n"))
