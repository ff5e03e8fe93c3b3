"""Port for background jobs: start, inspect and end one. Implemented by runtime.background.jobs."""

from collections.abc import Mapping
from typing import Protocol

from perdure.schema.ids import JobID, SessionID, ToolCallID
from perdure.schema.session.job import JobInfo
from perdure.schema.value import Value


class JobStart(Value, kw_only=True):
    session_id: SessionID
    call_id: ToolCallID
    shell: str
    command: str
    directory: str
    variables: Mapping[str, str] | None
    seconds_max: float


class JobLook(Value, kw_only=True):
    job: JobInfo
    output: str
    """What it has printed since the last look, or the end of that."""
    skipped_bytes: int
    """How much of it is not in `output`, before it."""
    bytes: int
    """How much it has printed in all."""


class BackgroundJobs(Protocol):
    """A job of another Session than the given one and those below it is a JobNotFoundError."""

    async def start(self, asked: JobStart) -> JobInfo:
        """Raises JobLimitError, and OSError when it cannot start."""
        ...

    async def look(
        self, session_id: SessionID, job_id: JobID, *, wait_seconds: float
    ) -> JobLook: ...

    async def cancel(self, session_id: SessionID, job_id: JobID, *, quiet: bool) -> JobInfo:
        """End it, and return when it is over; `quiet` when the Session need not be told."""
        ...
