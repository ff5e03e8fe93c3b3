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
    wrapper: tuple[str, ...] = ()
    """Words before those of the shell, such as a program that makes a sandbox."""


class JobLook(Value, kw_only=True):
    job: JobInfo
    output: str
    """Its output since the last look, or the end of it."""
    skipped_bytes: int
    """Bytes before `output` that were skipped."""
    bytes: int
    """Total bytes of output."""


class BackgroundJobs(Protocol):
    """A job outside the given Session and its children is a JobNotFoundError."""

    async def start(self, asked: JobStart) -> JobInfo:
        """Start a job. Raises JobLimitError, or OSError if it cannot start."""
        ...

    async def look(
        self, session_id: SessionID, job_id: JobID, *, wait_seconds: float
    ) -> JobLook: ...

    async def cancel(self, session_id: SessionID, job_id: JobID, *, quiet: bool) -> JobInfo:
        """End it and wait until it is over; `quiet` suppresses the notice to the Session."""
        ...
