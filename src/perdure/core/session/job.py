"""Background jobs: when one must end, how it is settled, and the notice of its end.

A job is a command that outlives the call which started it, and this process too. Its row holds
what is recorded of it; a Sighting holds what the operating system reports. Starting, watching and
ending jobs is runtime.background.jobs.

Invariant: a job is settled once. If this program decided to end it, that reason becomes its state,
whatever the exit code is.
"""

from typing import Final, Literal

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core import limits
from perdure.schema import ids
from perdure.schema.ids import JobID, MessageID, SessionID, ToolCallID
from perdure.schema.session.job import JobInfo, JobState, JobTime
from perdure.schema.value import Value

Ending = Literal["cancelled", "timed_out", "overflowed"]
"""Why this program ends a job."""

_CUT: Final = " [...]"


class JobLimitError(Exception):
    """Too many jobs are running. The model sees the message."""


class DetachedProcess(Value, kw_only=True):
    """A process independent of ours; `identity` tells it from a later one with the same pid."""

    pid: int
    identity: str
    output: str
    """Path of its output file."""


class Sighting(Value, kw_only=True):
    """The observed state of a process."""

    alive: bool
    exit_code: int | None
    output_bytes: int


class Job(Value, kw_only=True):
    id: JobID
    session_id: SessionID
    call_id: ToolCallID
    command: str
    directory: str
    process: DetachedProcess
    owner: str
    """The Perdure process that watches it."""
    time_started: int
    deadline: int
    state: JobState = "running"
    exit_code: int | None = None
    time_ended: int | None = None
    ending: Ending | None = None
    """Why it is being ended, once decided."""
    quiet: bool = False
    """Whether its end gives no notice, because the Session itself ended it."""
    seen: int = 0
    """How many bytes of its output the model has been shown."""

    @property
    def info(self) -> JobInfo:
        return JobInfo(
            id=self.id,
            session_id=self.session_id,
            call_id=self.call_id,
            command=self.command,
            directory=self.directory,
            state=self.state,
            path=self.process.output,
            time=JobTime(
                started=self.time_started,
                deadline=self.deadline,
                ended=UNSET if self.time_ended is None else self.time_ended,
            ),
            exit_code=UNSET if self.exit_code is None else self.exit_code,
        )


def ending_due(job: Job, sighting: Sighting, *, now: int) -> Ending | None:
    """Why a running job must be ended now; None if it need not."""
    if job.ending is not None:
        return job.ending
    if sighting.output_bytes > limits.JOB_OUTPUT_BYTES_MAX:
        return "overflowed"
    return "timed_out" if now >= job.deadline else None


def settle(job: Job, sighting: Sighting, *, now: int) -> Job:
    """The job after its process is gone."""
    code = sighting.exit_code
    state: JobState = job.ending or ("lost" if code is None else "exited")
    return replace(job, state=state, exit_code=code, time_ended=now)


def check_limits(*, in_session: int, in_total: int) -> None:
    """Raise JobLimitError if no further job may run."""
    if in_session >= limits.JOBS_PER_SESSION_MAX:
        raise JobLimitError(
            f"{in_session} background jobs of this session are running, which is the limit."
            " Wait for one with bash_output, or end one with bash_cancel."
        )
    if in_total >= limits.JOBS_MAX:
        raise JobLimitError(
            f"{in_total} background jobs are running on this machine, which is the limit."
            " Run the command without `background`, or try again later."
        )


def notice_id(job_id: JobID) -> MessageID:
    """The id of its end notice, derived from the job, so that the notice is added once."""
    return ids.message_from_external(f"job\x00{job_id}")


def notice(job: Job, last_words: str) -> str:
    """The notice to the Session about a settled job."""
    last_output = last_words.strip("\n")
    output_line = f"Its output ended with:\n{last_output}" if last_output else "It printed nothing."
    return (
        f"Background job {job.id} {describe_state(job.info)}\n"
        f"Command: {_short(job.command)}\n"
        f"{output_line}\n"
        f"All of its output is in {job.process.output}"
    )


def describe_state(job: JobInfo) -> str:
    """The state as the predicate of a sentence about the job."""
    match job.state:
        case "running":
            return "is running."
        case "exited":
            return f"has exited with code {job.exit_code}."
        case "cancelled":
            return "was cancelled."
        case "timed_out":
            return "ran out of time and was ended."
        case "overflowed":
            return (
                f"printed more than {limits.JOB_OUTPUT_BYTES_MAX} bytes and was ended. The rest"
                " was not kept."
            )
        case "lost":
            return (
                "is gone, and how it ended is not known: the machine was restarted, or the"
                " command was killed. It may have done its work or a part of it."
            )


def _short(command: str) -> str:
    if len(command) <= limits.JOB_COMMAND_SHOWN_CHARS_MAX:
        return command
    return command[: limits.JOB_COMMAND_SHOWN_CHARS_MAX] + _CUT
