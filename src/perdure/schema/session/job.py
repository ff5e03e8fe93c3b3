"""Background jobs as clients see them: commands that run on while their Session does other work."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record
from perdure.schema.ids import JobID, SessionID, ToolCallID

JobState = Literal["running", "exited", "cancelled", "timed_out", "overflowed", "lost"]
"""`lost`: it is gone, and nobody knows how it ended. `overflowed`: it was ended for all it said."""


class JobTime(Record):
    """In milliseconds. At `deadline` it is ended."""

    started: int
    deadline: int
    ended: int | UnsetType = UNSET


class JobInfo(Record):
    id: JobID
    session_id: SessionID
    call_id: ToolCallID
    command: str
    directory: str
    state: JobState
    path: str
    """The Managed Tool Output File that holds what it prints."""
    time: JobTime
    exit_code: int | UnsetType = UNSET


class JobOutput(Record):
    """A job with the end of what it has printed."""

    job: JobInfo
    output: str
    bytes: int
    """How much there is in all."""
    truncated: bool
