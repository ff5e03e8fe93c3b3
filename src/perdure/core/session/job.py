"""A background job: what a look at the world means for it, and what its Session is told.

A job is a command that outlives the call which started it, and our process too. Its row says what
we know of it; a Sighting says what the machine does. Starting, watching and ending is
runtime.background.jobs.

Invariant: a job is settled once. Whoever decided to end it decides how it is called, whatever
the exit code is.
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
"""Why a job is ended by us."""

_CUT: Final = " [...]"


class JobLimitError(Exception):
    """Too many jobs run already. The message is for the model."""


class DetachedProcess(Value, kw_only=True):
    """A process that does not depend on ours, and how it is told from a later one of its number."""

    pid: int
    identity: str
    output: str
    """The file that it prints to."""


class Sighting(Value, kw_only=True):
    """What can be seen of a process from outside."""

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
    """The process of ours that watches it."""
    time_started: int
    deadline: int
    state: JobState = "running"
    exit_code: int | None = None
    time_ended: int | None = None
    ending: Ending | None = None
    """Why it is being ended, once that was decided."""
    quiet: bool = False
    """Whether its Session need not be told of the end: it asked for it."""
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
    """Why a job that runs must be ended now, if it must."""
    if job.ending is not None:
        return job.ending
    if sighting.output_bytes > limits.JOB_OUTPUT_BYTES_MAX:
        return "overflowed"
    return "timed_out" if now >= job.deadline else None


def settle(job: Job, sighting: Sighting, *, now: int) -> Job:
    """The job as it is once its process is gone."""
    code = sighting.exit_code
    state: JobState = job.ending or ("lost" if code is None else "exited")
    return replace(job, state=state, exit_code=code, time_ended=now)


def check_limits(*, of_session: int, of_all: int) -> None:
    """Whether one more may run; else JobLimitError."""
    if of_session >= limits.JOBS_PER_SESSION_MAX:
        raise JobLimitError(
            f"{of_session} background jobs of this session are running, which is the limit."
            " Wait for one with bash_output, or end one with bash_cancel."
        )
    if of_all >= limits.JOBS_MAX:
        raise JobLimitError(
            f"{of_all} background jobs are running on this machine, which is the limit."
            " Run the command without `background`, or try again later."
        )


def notice_id(job_id: JobID) -> MessageID:
    """Of the notice of its end: always the same, so that it is told once."""
    return ids.message_from_external(f"job\x00{job_id}")


def notice(job: Job, last_words: str) -> str:
    """What the Session is told of a job that has been settled."""
    shown = last_words.strip("\n")
    said = f"Its output ended with:\n{shown}" if shown else "It printed nothing."
    return (
        f"Background job {job.id} {describe_state(job.info)}\n"
        f"Command: {_short(job.command)}\n"
        f"{said}\n"
        f"All of its output is in {job.process.output}"
    )


def describe_state(job: JobInfo) -> str:
    """The state in words, as the rest of a sentence about the job."""
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
