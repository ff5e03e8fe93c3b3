"""Queries for Sessions and messages, and the rows that answer them, as values between layers.

Rows contain the public JSON exactly as stored, and the few columns that paging needs. An anchor is
a row of an earlier page, and on which side of it the requested page is. `protocol.cursor` encodes
them as opaque cursors.
"""

from typing import Literal

from perdure.schema.ids import MessageID, SessionID
from perdure.schema.value import Value

Order = Literal["asc", "desc"]
Direction = Literal["previous", "next"]


class SessionQuery(Value, kw_only=True):
    """Which Sessions, in which order of creation. `None` does not filter."""

    directory: str | None = None
    project: str | None = None
    workspace: str | None = None
    search: str | None = None
    subpath: str | None = None
    archived: bool | None = None
    order: Order = "desc"


class SessionAnchor(Value, kw_only=True):
    time: int
    place: int
    """Among the Sessions that were created in the same millisecond."""
    id: SessionID
    direction: Direction


class SessionRow(Value, kw_only=True):
    data: bytes
    id: SessionID
    time_created: int
    place: int


class SessionRows(Value, kw_only=True):
    """Rows in the requested order, on either side of the anchor."""

    rows: tuple[SessionRow, ...]
    has_previous: bool
    has_next: bool


class MessageAnchor(Value, kw_only=True):
    seq: int
    direction: Direction


class MessageRow(Value, kw_only=True):
    data: bytes
    id: MessageID
    seq: int


class MessageRows(Value, kw_only=True):
    """Rows in the requested order, on either side of the anchor."""

    rows: tuple[MessageRow, ...]
    has_previous: bool
    has_next: bool
