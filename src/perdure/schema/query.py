"""What a reader asks of Sessions and messages, and the rows that answer, as values between layers.

Rows carry the public JSON exactly as it is stored, beside the few columns that paging needs. An
anchor names a row of an earlier page and on which side of it the wanted page lies. Opaque cursors
are made of these in `protocol.cursor`; nothing here is encoded.
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
    id: SessionID
    direction: Direction


class SessionRow(Value, kw_only=True):
    data: bytes
    id: SessionID
    time_created: int


class SessionRows(Value, kw_only=True):
    """In the asked order, whichever side of the anchor they came from."""

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
    """In the asked order, whichever side of the anchor they came from."""

    rows: tuple[MessageRow, ...]
    has_previous: bool
    has_next: bool
