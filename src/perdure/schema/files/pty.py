"""Terminals as clients see them, and the ticket for connecting to one."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from perdure.schema.codec import Record
from perdure.schema.ids import PtyID
from perdure.schema.value import Value

PtyStatus = Literal["running", "exited"]
Cells = Annotated[int, Meta(gt=0, le=65_535)]
"""A number of rows or columns, within the kernel's limit."""


class PtyInfo(Record):
    id: PtyID
    title: str
    command: str
    args: tuple[str, ...]
    cwd: str
    status: PtyStatus
    pid: int
    exit_code: int | UnsetType = UNSET


class PtySize(Record):
    rows: Cells
    cols: Cells


class PtyTicket(Record):
    """A ticket for one connection to one terminal."""

    ticket: str
    expires_in: int = msgspec.field(name="expires_in")
    """In seconds."""

    def __repr__(self) -> str:
        return "PtyTicket(...)"


class PtyExitedError(Exception):
    """The terminal's program has exited, so no client can attach."""


class PtyStart(Value, kw_only=True):
    """What a new terminal runs. Every field has a default."""

    command: str | None = None
    args: tuple[str, ...] | None = None
    cwd: str | None = None
    title: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    """The caller's variables, overridden by those of the host."""
