"""Files of a Location as clients see them: names in a folder, and the bytes of a file."""

from typing import Literal

from perdure.schema.codec import Record
from perdure.schema.value import Value

EntryType = Literal["file", "directory"]


class FileEntry(Record):
    path: str
    """Relative to the Location; a directory ends in a slash."""
    type: EntryType


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
