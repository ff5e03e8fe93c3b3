"""Terminals as clients see them, and the ticket with which one is connected to."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from perdure.schema.codec import Record
from perdure.schema.ids import PtyID
from perdure.schema.value import Value

PtyStatus = Literal["running", "exited"]
Cells = Annotated[int, Meta(gt=0, le=65_535)]
"""A number of rows or columns. The kernel counts no further."""


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
    """Lets whoever has it connect to one terminal, once."""

    ticket: str
    expires_in: int = msgspec.field(name="expires_in")
    """Seconds."""

    def __repr__(self) -> str:
        return "PtyTicket(...)"


class PtyExitedError(Exception):
    """The terminal is known, and there is nothing to attach to any more."""


class PtyStart(Value, kw_only=True):
    """What a terminal is to run. Everything that is not said has a default."""

    command: str | None = None
    args: tuple[str, ...] | None = None
    cwd: str | None = None
    title: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    """The caller's variables, with those of the host already laid over them."""
