"""Files of a Location as clients see them: names in a folder, and the bytes of a file."""

from typing import Literal

from perdure.schema.codec import Record
from perdure.schema.value import Value

EntryType = Literal["file", "directory"]


class FileEntry(Record):
    path: str
    """Relative to the Location; a directory ends in a slash."""
    type: EntryType


class TextSubmatch(Record):
    """A match inside a line: its text, and where it stands in the line, in bytes of UTF-8."""

    text: str
    start: int
    end: int


class TextMatch(Record):
    """A line that a text search found."""

    path: str
    """Relative to the Location."""
    line: int
    """Counted from 1."""
    offset: int
    """Where the line begins in the file, in bytes."""
    text: str
    """The line without its end; only the beginning of a very long one."""
    submatches: tuple[TextSubmatch, ...]


class TextMatches(Record):
    matches: tuple[TextMatch, ...]
    truncated: bool
    """Whether there may be more: a limit was reached, or a file could not be searched."""


class Span(Value):
    """A byte range of a file, both ends included. Without `first`: that many bytes at the end."""

    first: int | None
    last: int | None


class FileContent(Value, kw_only=True):
    """A file, or the requested part of it."""

    data: bytes
    offset: int
    size: int
    """Size of the whole file."""
    content_type: str
