"""bash: run a shell command with a timeout and bounded output, or start it in the background.

A command that fails or times out is a result, not a failure of the tool.
tools.builtin.bash_approval makes the permission request, tools.builtin.bash_sandbox says how it is
started, tools.shell.command_output collects the output, tools.builtin.bash_background starts
background jobs. The working directory is checked; the files that the command uses are up to the
sandbox, and absolute paths outside cause warnings, which are a hint and no protection.
"""

import asyncio
import posixpath
from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from perdure.core.files.paths import is_within
from perdure.core.limits import (
    BASH_COMMAND_BYTES_MAX,
    BASH_TIMEOUT_MILLIS_DEFAULT,
    BASH_TIMEOUT_MILLIS_MAX,
    BASH_WARNINGS_MAX,
    JOB_SECONDS_MAX,
)
from perdure.core.request import tool_output
from perdure.core.request.tool_output import OutputLimits
from perdure.core.shell.command import CommandDirectory
from perdure.lazy_pattern import lazy_pattern
from perdure.ports import ProcessResult
from perdure.schema.codec import Record
from perdure.schema.session.job import JobInfo
from perdure.schema.session.tool import TextContent, ToolContent
from perdure.schema.value import Value
from perdure.tools.api.tool import Tool, ToolCallContext, ToolFailure
from perdure.tools.builtin import bash_background, bash_sandbox
from perdure.tools.builtin.bash_approval import permission_ask
from perdure.tools.builtin.bash_sandbox import Launch
from perdure.tools.environment import ToolEnvironment, reason
from perdure.tools.shell import protected_changes
from perdure.tools.shell.command_output import CommandOutput

DESCRIPTION: Final = f"""\
Run a shell command and return its combined output and exit code.

- It starts in the project directory; set `workdir` instead of changing directory.
- It has no input and no terminal. Everything it started is ended with it, what was put into the \
background with & too.
- Set `background` for a server, or for what takes longer than you want to wait. It returns at \
once, and you are told of the end.
- Variables that hold secrets are not in its environment.
- It may run in a sandbox: it writes to the project and to $TMPDIR, and has no network. Name the \
`hosts` that it needs; set `outside` only when it failed for another such reason. A person is asked.
- It is ended after `timeout` milliseconds ({BASH_TIMEOUT_MILLIS_DEFAULT} unless set). Long output \
is cut, and the answer names the file that holds all of it.
- Prefer read, glob, grep, edit and write for files."""

_SEPARATORS: Final = lazy_pattern(r"[\s'\"`;|&()<>=]+")
_WORDS_READ_MAX: Final = 4_000
"""Words of a command that are looked at for paths outside. The warnings are a hint."""
_LEFT_RUNNING: Final = "Processes that it left running in the background were ended."


class BashInput(Record, frozen=True):
    command: Annotated[str, Meta(description="The command, as given to the shell.", min_length=1)]
    workdir: (
        Annotated[str, Meta(description="Where to run it; the project unless set.", min_length=1)]
        | UnsetType
    ) = UNSET
    timeout: (
        Annotated[int, Meta(description="Milliseconds.", ge=1, le=JOB_SECONDS_MAX * 1_000)]
        | UnsetType
    ) = UNSET
    background: (
        Annotated[bool, Meta(description="Return at once and let it run on.")] | UnsetType
    ) = UNSET
    outside: (
        Annotated[bool, Meta(description="Run it outside the sandbox. A person is asked.")]
        | UnsetType
    ) = UNSET
    hosts: (
        Annotated[
            tuple[str, ...],
            Meta(description="Hosts that it needs, as `name` or `name:port`. A person is asked."),
        ]
        | UnsetType
    ) = UNSET
    description: Annotated[str, Meta(description="What it does, in a few words.")] | UnsetType = (
        UNSET
    )


class BashStructured(Record, frozen=True):
    truncated: bool
    exit: int | UnsetType = UNSET
    timeout: bool | UnsetType = UNSET
    job: str | UnsetType = UNSET
    """The id of the background job."""


class BashOutput(Record, frozen=True):
    output: str
    truncated: bool
    exit: int | UnsetType = UNSET
    timeout: bool | UnsetType = UNSET
    warnings: tuple[str, ...] = ()
    path: str | UnsetType = UNSET
    """The Managed Tool Output File of an output that was too long."""
    job: JobInfo | UnsetType = UNSET


def make_bash(environment: ToolEnvironment) -> Tool[BashInput, BashOutput]:
    async def execute(input: BashInput, context: ToolCallContext) -> BashOutput:
        _check_command(input.command)
        _check_timeout(input)
        workdir = "." if isinstance(input.workdir, UnsetType) else input.workdir
        directory = (await environment.path_access.claim(workdir, "directory", context)).path
        location = CommandDirectory(root=await environment.path_access.root(), directory=directory)
        await environment.permissions.require(
            permission_ask(
                input.command,
                shell=environment.shell,
                location=location,
                context=context,
                contained=await bash_sandbox.needs_no_question(environment),
            )
        )
        launch = await bash_sandbox.prepare(
            environment,
            command=input.command,
            directory=directory,
            outside=input.outside is True,
            hosts=input.hosts or (),
            context=context,
        )
        if input.background is True:
            return await _start(environment, input, context, _Run(directory, launch))
        guarded = await protected_changes.observe(environment.filesystem, input.command, directory)
        spool = None if environment.outputs is None else environment.outputs.spool()
        output = CommandOutput(spool, context.progress)
        try:
            if not (await environment.filesystem.stat(directory)).is_directory:
                raise ToolFailure(f"{workdir} is not a directory")
            async with context.journal.watching():
                result = await _run(environment, input, output, _Run(directory, launch))
        except OSError as error:
            raise ToolFailure(f"Unable to execute command: {reason(error)}") from error
        except asyncio.CancelledError:
            # The call will be settled as interrupted, with the output until now.
            output.report_now()
            raise
        finally:
            output.close()
        removed = await bash_sandbox.remove_appeared(environment, launch)
        refused = (*_refusals(result, output, launch), *await guarded.list_changed())
        warnings = (*_outside_paths(input.command, directory), *refused, *removed)
        return await _make_output(result, output, warnings, environment.output_limits)

    return Tool(
        name="bash",
        asks_first=True,
        description=DESCRIPTION,
        input=BashInput,
        output=BashOutput,
        execute=execute,
        to_model_output=_content,
        structured=_structured,
        output_paths=lambda output: () if output.path is UNSET else (output.path,),
    )


def _content(output: BashOutput) -> tuple[ToolContent, ...]:
    if not isinstance(output.job, UnsetType):
        return bash_background.started_content(output.job)
    if output.timeout is True:
        ending = "Command ran out of time and was ended. Set a longer timeout if it needs one."
    else:
        ending = f"Command exited with code {output.exit}."
    return (
        TextContent(text=output.output or "(no output)"),
        TextContent(text="\n".join((*output.warnings, ending))),
    )


def _structured(output: BashOutput) -> BashStructured:
    return BashStructured(
        exit=output.exit,
        truncated=output.truncated,
        timeout=output.timeout,
        job=UNSET if isinstance(output.job, UnsetType) else output.job.id,
    )


def _check_command(command: str) -> None:
    if "\0" in command:
        raise ToolFailure("A command cannot contain a NUL character")
    if len(command.encode()) > BASH_COMMAND_BYTES_MAX:
        most = BASH_COMMAND_BYTES_MAX
        raise ToolFailure(f"The command is longer than {most} bytes: write it to a file")


def _check_timeout(input: BashInput) -> None:
    millis = 0 if isinstance(input.timeout, UnsetType) else input.timeout
    if input.background is not True and millis > BASH_TIMEOUT_MILLIS_MAX:
        raise ToolFailure(
            f"timeout is at most {BASH_TIMEOUT_MILLIS_MAX} milliseconds. Run what takes longer with"
            " `background`."
        )


class _Run(Value):
    directory: str
    launch: Launch


async def _start(
    environment: ToolEnvironment, input: BashInput, context: ToolCallContext, run: _Run
) -> BashOutput:
    try:
        if not (await environment.filesystem.stat(run.directory)).is_directory:
            raise ToolFailure(f"{input.workdir} is not a directory")
    except OSError as error:
        raise ToolFailure(f"Unable to execute command: {reason(error)}") from error
    job = await bash_background.start(
        environment,
        context,
        command=input.command,
        directory=run.directory,
        millis=None if isinstance(input.timeout, UnsetType) else input.timeout,
        launch=run.launch,
    )
    return BashOutput(output="", truncated=False, path=job.path, job=job)


async def _run(
    environment: ToolEnvironment, input: BashInput, output: CommandOutput, run: _Run
) -> ProcessResult:
    millis = BASH_TIMEOUT_MILLIS_DEFAULT if isinstance(input.timeout, UnsetType) else input.timeout
    return await environment.processes.run_into(
        output,
        (*run.launch.wrapper, environment.shell, "-c", input.command),
        directory=run.directory,
        environment=run.launch.variables,
        timeout_seconds=millis / 1_000,
    )


def _refusals(result: ProcessResult, printed: CommandOutput, launch: Launch) -> tuple[str, ...]:
    failed = result.exit_code not in {0, None} and not printed.is_binary
    told = launch.explain(printed.text()) if failed and not printed.is_long else None
    return (*launch.refusals(), *(() if told is None else (told,)))


async def _make_output(
    result: ProcessResult, printed: CommandOutput, warnings: tuple[str, ...], limits: OutputLimits
) -> BashOutput:
    ended = BashOutput(
        output="",
        truncated=False,
        exit=UNSET if result.exit_code is None else _shell_code(result.exit_code),
        timeout=True if result.timed_out else UNSET,
        warnings=(*warnings, _LEFT_RUNNING) if result.left_running else warnings,
    )
    if printed.is_binary:
        text, cut = await printed.describe_binary(), True
    elif printed.is_long:
        text, cut = printed.shorten(_remaining_limits(ended, limits)), True
    else:
        text = printed.text()
        # The registry may cut it: the structured result must not claim that it is complete.
        cut = not _fits(replace(ended, output=text), limits)
    path = UNSET if printed.path is None else printed.path
    return replace(ended, output=text, truncated=cut, path=path)


def _remaining_limits(ended: BashOutput, limits: OutputLimits) -> OutputLimits:
    """The limits for the output, after the text of the ending."""
    ending = tool_output.measured_text({}, _content(ended))
    return OutputLimits(
        lines_max=limits.lines_max - ending.count("\n") - 1,
        bytes_max=limits.bytes_max - len(ending.encode()),
    )


def _fits(output: BashOutput, limits: OutputLimits) -> bool:
    return tool_output.fits(tool_output.measured_text({}, _content(output)), limits)


def _shell_code(code: int) -> int:
    """The exit code that a shell reports: 128 plus the number of a signal."""
    return code if code >= 0 else 128 - code


def _outside_paths(command: str, directory: str) -> tuple[str, ...]:
    """One warning for each directory outside `directory` that the command names."""
    parents: dict[str, None] = {}
    for word in _SEPARATORS.split(command, _WORDS_READ_MAX)[:_WORDS_READ_MAX]:
        path = posixpath.normpath(word) if word.startswith("/") else ""
        if path and not path.startswith("/dev/") and not is_within(path, directory):
            parents[posixpath.dirname(path)] = None
    named = list(parents)[:BASH_WARNINGS_MAX]
    return tuple(f"Warning: the command names a path outside {directory}: {p}" for p in named)
