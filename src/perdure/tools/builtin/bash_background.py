"""Background jobs: starts one for bash, and the tools bash_output and bash_cancel.

The permission is that of bash, required before the command starts. The other two tools need no
permission of their own: they only reach jobs of their own Session and of those below it. If bash is
denied altogether, they are not offered either.
"""

from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType

from perdure.core.limits import (
    JOB_OUTPUT_SHOWN_BYTES_MAX,
    JOB_SECONDS_DEFAULT,
    JOB_WAIT_SECONDS_MAX,
)
from perdure.core.session import job as rules
from perdure.core.session.job import JobLimitError
from perdure.ports.jobs import BackgroundJobs, JobStart
from perdure.schema.codec import Record
from perdure.schema.errors import JobNotFoundError
from perdure.schema.ids import JobID
from perdure.schema.session.job import JobInfo, JobState
from perdure.schema.session.tool import TextContent, ToolContent
from perdure.tools.api.tool import Tool, ToolCallContext, ToolFailure
from perdure.tools.builtin.bash_sandbox import Launch
from perdure.tools.environment import ToolEnvironment, reason

LOOK_DESCRIPTION: Final = f"""\
See what a background job has printed since you last looked, and how it is.

- With `wait` it waits up to that many seconds for the job to end. Prefer it to looking again and \
again; you are told of the end in any case.
- At most the last {JOB_OUTPUT_SHOWN_BYTES_MAX} bytes are shown. All of it is in the job's output \
file, which you can read."""
CANCEL_DESCRIPTION: Final = """\
End a background job, with everything that it started. What it printed stays in its output file."""

_UNAVAILABLE: Final = "Commands cannot be run in the background here; run it without `background`"


class LookInput(Record, frozen=True):
    job: Annotated[str, Meta(description="The job's id, as bash gave it.", min_length=1)]
    wait: (
        Annotated[
            int, Meta(description="Seconds to wait for its end.", ge=0, le=JOB_WAIT_SECONDS_MAX)
        ]
        | UnsetType
    ) = UNSET


class LookOutput(Record, frozen=True):
    job: JobInfo
    output: str
    skipped_bytes: int
    bytes: int


class LookStructured(Record, frozen=True):
    job: str
    state: JobState
    bytes: int
    truncated: bool
    exit: int | UnsetType = UNSET


class CancelInput(Record, frozen=True):
    job: Annotated[str, Meta(description="The job's id, as bash gave it.", min_length=1)]


class CancelOutput(Record, frozen=True):
    job: JobInfo


async def start(
    environment: ToolEnvironment,
    context: ToolCallContext,
    *,
    command: str,
    directory: str,
    millis: int | None,
    launch: Launch,
) -> JobInfo:
    """Start an approved command in the background."""
    if environment.jobs is None:
        raise ToolFailure(_UNAVAILABLE)
    request = JobStart(
        session_id=context.session_id,
        call_id=context.call_id,
        shell=environment.shell,
        command=command,
        directory=directory,
        variables=launch.variables,
        wrapper=launch.wrapper,
        seconds_max=JOB_SECONDS_DEFAULT if millis is None else millis / 1_000,
    )
    try:
        return await environment.jobs.start(request)
    except JobLimitError as error:
        raise ToolFailure(str(error)) from error
    except OSError as error:
        raise ToolFailure(f"Unable to execute command: {reason(error)}") from error


def started_content(job: JobInfo) -> tuple[ToolContent, ...]:
    return (
        TextContent(
            text=f"Started background job {job.id}. Its output goes to {job.path}\n"
            "You will be told when it ends. bash_output shows what it printed, bash_cancel ends it."
        ),
    )


def make_bash_output(jobs: BackgroundJobs) -> Tool[LookInput, LookOutput]:
    async def execute(input: LookInput, context: ToolCallContext) -> LookOutput:
        wait = 0 if isinstance(input.wait, UnsetType) else input.wait
        try:
            found = await jobs.look(context.session_id, JobID(input.job), wait_seconds=wait)
        except JobNotFoundError as error:
            raise ToolFailure(error.message) from error
        except OSError as error:
            raise ToolFailure(
                f"Unable to read the output of {input.job}: {reason(error)}"
            ) from error
        return LookOutput(
            job=found.job, output=found.output, skipped_bytes=found.skipped_bytes, bytes=found.bytes
        )

    return Tool(
        name="bash_output",
        effect="pure",
        description=LOOK_DESCRIPTION,
        input=LookInput,
        output=LookOutput,
        execute=execute,
        to_model_output=_look_content,
        structured=_look_structured,
        action="bash",
    )


def make_bash_cancel(jobs: BackgroundJobs) -> Tool[CancelInput, CancelOutput]:
    async def execute(input: CancelInput, context: ToolCallContext) -> CancelOutput:
        try:
            job = await jobs.cancel(context.session_id, JobID(input.job), quiet=True)
        except JobNotFoundError as error:
            raise ToolFailure(error.message) from error
        return CancelOutput(job=job)

    return Tool(
        name="bash_cancel",
        effect="idempotent",
        description=CANCEL_DESCRIPTION,
        input=CancelInput,
        output=CancelOutput,
        execute=execute,
        to_model_output=lambda output: (TextContent(text=_state(output.job)),),
        action="bash",
    )


def _look_content(output: LookOutput) -> tuple[ToolContent, ...]:
    text = output.output or "(no new output)"
    if output.skipped_bytes:
        skipped = f"[{output.skipped_bytes} bytes before this are in {output.job.path}]"
        text = f"{skipped}\n{text}"
    return (TextContent(text=text), TextContent(text=_state(output.job)))


def _look_structured(output: LookOutput) -> LookStructured:
    return LookStructured(
        job=output.job.id,
        state=output.job.state,
        bytes=output.bytes,
        truncated=output.skipped_bytes > 0,
        exit=output.job.exit_code,
    )


def _state(job: JobInfo) -> str:
    return f"Background job {job.id} {rules.describe_state(job)}"
