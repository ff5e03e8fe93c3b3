"""Lines of a stream, however it is cut."""

import pytest

from perdure.acp.wire.line_splitter import LineSplitter, LongLine

TEXT = b'{"a":1}\n\n  \r\n{"b":2}\r\nlast'
LINES = [b'{"a":1}', b'{"b":2}', b"last"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_are_the_same_however_they_are_cut(size: int) -> None:
    splitter = LineSplitter(100)
    found = [
        line for at in range(0, len(TEXT), size) for line in splitter.feed(TEXT[at : at + size])
    ]
    assert [*found, *splitter.finish()] == LINES


def test_a_long_line_is_dropped_and_told_once() -> None:
    splitter = LineSplitter(10)
    found = [line for _ in range(1_000) for line in splitter.feed(b"x" * 100)]
    assert found == []
    assert [*splitter.feed(b"\nnext\n"), *splitter.finish()] == [LongLine(), b"next"]


def test_a_line_of_the_greatest_length_is_kept() -> None:
    splitter = LineSplitter(4)
    assert list(splitter.feed(b"four\nfives\n")) == [b"four", LongLine()]
