"""Splits a stream of bytes into lines of a bounded length, in linear time."""

from collections.abc import Generator
from typing import Final

from perdure.schema.value import Value


class LongLine(Value):
    """A line that was longer than allowed; its text is dropped."""


_LONG: Final = LongLine()


class LineSplitter:
    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Generator[bytes | LongLine]:
        """The lines that are complete now, without their ends and without empty ones."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._keep(end)
            yield from self._complete()
        self._keep(rest)

    def finish(self) -> Generator[bytes | LongLine]:
        """A last line that has no end."""
        yield from self._complete()

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._bytes_max:
            self._pieces.clear()
        elif piece:
            self._pieces.append(piece)

    def _complete(self) -> Generator[bytes | LongLine]:
        line, is_long = b"".join(self._pieces).strip(), self._size > self._bytes_max
        self._pieces.clear()
        self._size = 0
        if is_long:
            yield _LONG
        elif line:
            yield line
