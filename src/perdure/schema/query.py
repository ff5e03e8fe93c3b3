"""What a reader asks of Sessions and messages, and the rows that answer, as values between layers.

Rows carry the public JSON exactly as it is stored, beside the few columns that paging needs. An
anchor names a row of an earlier page and on which side of it the wanted page lies. Opaque cursors
are made of these in `protocol.cursor`; nothing here is encoded.
"""

from dataclasses import dataclass
from typing import Literal

from perdure.schema.ids import MessageID, SessionID

Order = Literal["asc", "desc"]
Direction = Literal["previous", "next"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionQuery:
    """Which Sessions, in which order of creation. `None` does not filter."""

    directory: str | None = None
    project: str | None = None
    workspace: str | None = None
    search: str | None = None
    subpath: str | None = None
    order: Order = "desc"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAnchor:
    time: int
    id: SessionID
    direction: Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    data: bytes
    id: SessionID
    time_created: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRows:
    """In the asked order, whichever side of the anchor they came from."""

    rows: tuple[SessionRow, ...]
    has_previous: bool
    has_next: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAnchor:
    seq: int
    direction: Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRow:
    data: bytes
    id: MessageID
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRows:
    """In the asked order, whichever side of the anchor they came from."""

    rows: tuple[MessageRow, ...]
    has_previous: bool
    has_next: bool
