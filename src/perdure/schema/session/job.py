"""Background jobs as clients see them: commands that run while their Session does other work."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record
from perdure.schema.ids import JobID, SessionID, ToolCallID

JobState = Literal["running", "exited", "cancelled", "timed_out", "overflowed", "lost"]
"""`lost`: it ended with an unknown result. `overflowed`: it was ended for printing too much."""


class JobTime(Record):
    """Times in milliseconds. At `deadline` the job is ended."""

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
    """The Managed Tool Output File with its output."""
    time: JobTime
    exit_code: int | UnsetType = UNSET


class JobOutput(Record):
    """A job with the end of its output."""

    job: JobInfo
    output: str
    bytes: int
    """Total size of the output."""
    truncated: bool
