"""Encodes and decodes text/event-stream.

Reading follows the event-stream rules: any of CRLF, CR, LF ends a line, at once, several `data:`
lines join with a newline, comments and a first byte order mark are dropped, and an event ends at a
blank line. An incomplete event at the end of the stream is not dispatched; `rest` gives its data.
"""

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Final

from perdure.schema.value import Value

HEARTBEAT: Final = b": heartbeat\n\n"
REPLAYED: Final = b": replayed\n\n"
"""The end of the replayed events, for readers that did not ask for an event: a comment."""
_DATA: Final = b"data: "
_BETWEEN: Final = b"\n\n" + _DATA
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class FrameTooLargeError(Exception):
    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"server-sent event larger than {bytes_max} bytes")


class Frame(Value):
    data: bytes
    event: bytes = b""
    id: bytes = b""


def write(data: bytes, *, id: int | None = None, event: bytes = b"") -> bytes:
    """One event whose data has no line break, as is true for the JSON of this program."""
    if event:
        return b"event: %s\ndata: %s\n\n" % (event, data)
    if id is None:
        return b"data: " + data + b"\n\n"
    return b"id: %d\ndata: %s\n\n" % (id, data)


class Reader:
    """Splits chunks of bytes into events."""

    def __init__(self, *, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._rest = bytearray()
        """The start of a line."""
        self._after_return = False
        """Whether the last byte was a CR, so that an LF belongs to the same line end."""
        self._data: list[bytes] = []
        self._size = 0
        self._event = b""
        self._id = b""
        self._begun = False

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        if not chunk:
            return
        if self._after_return:
            chunk = chunk.removeprefix(b"\n")
        self._after_return = chunk.endswith(b"\r")
        self._rest += chunk
        if b"\n" not in chunk and b"\r" not in chunk:
            # Not scanned again before its end, so that a long line costs linear time.
            self._check(len(self._rest))
            return
        text = bytes(self._rest)
        if b"\r" in chunk:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *complete, rest = text.split(b"\n")
        self._rest = bytearray(rest)
        self._check(len(self._rest))
        if complete and not self._begun:
            self._begun = True
            complete[0] = complete[0].removeprefix(_BYTE_ORDER_MARK)
        for line in complete:
            if line.startswith(_DATA):
                # The usual line, taken apart with less work.
                self._add(line[len(_DATA) :])
            elif line:
                self._field(line)
            elif self._data:
                yield self._dispatch()
            else:
                self._event = b""

    def feed_data(self, chunk: bytes) -> Iterable[bytes]:
        """As `feed`, for a reader that needs only the data of the events."""
        plain = self._feed_plain(chunk)
        return map(_DATA_OF, self.feed(chunk)) if plain is None else plain

    def _feed_plain(self, chunk: bytes) -> list[bytes] | None:
        """The data of events of one `data` line each, as models send them; None for any others.

        All of them are split at once, for a tenth of the time.
        """
        if self._data or self._event or self._after_return:
            return None
        text = bytes(self._rest) + chunk if self._rest else chunk
        complete, end, rest = text.rpartition(b"\n\n")
        if not complete.startswith(_DATA) or not end or len(text) > self._bytes_max:
            return None
        found = complete[len(_DATA) :].split(_BETWEEN)
        is_plain = complete.count(b"\n") == 2 * (len(found) - 1) and b"\r" not in text
        if not is_plain or b"\n" in rest:
            return None
        self._begun, self._rest = True, bytearray(rest)
        return found

    def rest(self) -> bytes:
        """The data of the event that the stream has not ended; empty if there is none."""
        line, self._rest = bytes(self._rest), bytearray()
        if not self._begun:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        self._field(line)
        return self._dispatch().data

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._add(value)
        elif name == b"event":
            self._event = value
        elif name == b"id":
            self._id = value

    def _add(self, value: bytes) -> None:
        # The line end counts, so that lines without data are bounded too.
        self._size += len(value) + 1
        if self._size > self._bytes_max:
            raise FrameTooLargeError(self._bytes_max)
        self._data.append(value)

    def _dispatch(self) -> Frame:
        frame = Frame(b"\n".join(self._data), self._event, self._id)
        self._data, self._size, self._event = [], 0, b""
        return frame

    def _check(self, size: int) -> None:
        if size > self._bytes_max:
            raise FrameTooLargeError(self._bytes_max)


_DATA_OF: Final[Callable[[Frame], bytes]] = attrgetter("data")
