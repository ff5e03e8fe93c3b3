"""Runs After-edit programs on a changed file: formatters, checkers, and language servers.

Each program runs in its own process group, for a bounded time and with bounded output, while the
file is still locked. The formatted content is what the tool reports and what counts as read.
Language servers keep running and are asked through a Diagnoser.

Invariant: an edit that was made does not fail afterwards. A program that fails, hangs, or removes
or replaces the file becomes a note, and the written content is restored if it is lost.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from msgspec import field
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.settings.edit_programs import EditProgram, EditPrograms
from perdure.ports import Filesystem, ProcessResult, ProcessRunner
from perdure.ports.file_journal import Journal
from perdure.ports.sandbox import ContainedProgram, Containment
from perdure.schema.value import Confidential, Value
from perdure.tools.files.path_access import Target


def _ignore_edit(path: str) -> None:
    """The default of `PostEdit.edited`."""


class Diagnoser(Protocol):
    """Runs language servers and gets their diagnostics."""

    async def diagnose(
        self,
        program: EditProgram,
        target: Target,
        files: Filesystem,
        environment: Mapping[str, str],
    ) -> tuple[str, ...]:
        """The errors that the server `program` reports, a line each. Bounded; never fails."""
        ...


class PostEditResult(Value, kw_only=True):
    """The content of a file after all programs ran, and their notes."""

    data: bytes
    notes: tuple[str, ...] = ()
    """For the model, a paragraph each."""

    @property
    def notes_text(self) -> str:
        return "".join(f"\n\n{note}" for note in self.notes)


class PostEdit(Confidential, kw_only=True):
    """The After-edit programs of a Location; they are started in `directory`."""

    programs: EditPrograms = field(default_factory=EditPrograms)
    directory: str = "/"
    processes: ProcessRunner | None = None
    variables: Mapping[str, str] | None = None
    containment: Containment | None = None
    """The sandbox that the programs run in; without it they run outside."""
    diagnoser: Diagnoser | None = None
    """Without it no language server is used."""
    edited: Callable[[str], None] = _ignore_edit
    """Called with each changed path; must not wait or fail."""

    async def run(
        self, files: Filesystem, target: Target, data: bytes, journal: Journal
    ) -> PostEditResult:
        """Format and check `target`, which holds `data` now."""
        formatted = await self.format(files, target, data, journal)
        self.edited(target.path)
        problems = await self.check((target,), files=lambda _target: files)
        return PostEditResult(data=formatted.data, notes=(*formatted.notes, *problems))

    async def format(
        self, files: Filesystem, target: Target, data: bytes, journal: Journal
    ) -> PostEditResult:
        programs = [program for program in self.programs.formatters if program.is_for(target.path)]
        if not programs:
            return PostEditResult(data=data)
        notes: list[str] = []
        # A formatter may change other files too, so the journal watches all of them.
        async with journal.watching():
            for program in programs:
                failure = await self._run_formatter(program, target)
                data, lost = await _read_formatted(files, target, data)
                notes += [note for note in (failure, lost) if note is not None]
        return PostEditResult(data=data, notes=tuple(notes))

    async def check(
        self, targets: Sequence[Target], *, files: Callable[[Target], Filesystem]
    ) -> tuple[str, ...]:
        """A note with the problems that checkers and servers report; empty without problems."""
        checked = targets[: limits.DIAGNOSED_FILES_MAX]
        lines = [
            line
            for target in checked
            for program in self.programs.checkers
            if program.is_for(target.path)
            for line in await self._run_checker(program, target)
        ]
        lines += await self._diagnose(checked, files)
        if not lines:
            return ()
        listed, total = lines[: limits.DIAGNOSTICS_LINES_MAX], len(lines)
        rest = [f"({total - len(listed)} more lines)"] if total > len(listed) else []
        return ("\n".join(["Diagnostics after this edit:", *listed, *rest]),)

    async def _diagnose(
        self, targets: Sequence[Target], files: Callable[[Target], Filesystem]
    ) -> list[str]:
        """The errors of all language servers, asked concurrently."""
        requests = [
            (program, target)
            for target in targets
            for program in self.programs.servers
            if program.is_for(target.path)
        ]
        if self.diagnoser is None or not requests:
            return []
        async with asyncio.TaskGroup() as group:
            answers = [
                group.create_task(self._ask_server(self.diagnoser, program, target, files(target)))
                for program, target in requests
            ]
        return [line for answer in answers for line in answer.result()]

    async def _ask_server(
        self, diagnoser: Diagnoser, program: EditProgram, target: Target, files: Filesystem
    ) -> tuple[str, ...]:
        started = await self._contain(program.command, program)
        contained = replace(
            program, command=started.arguments, contained=started.arguments != program.command
        )
        return await diagnoser.diagnose(contained, target, files, started.environment)

    async def _contain(
        self, arguments: tuple[str, ...], program: EditProgram, writable: str | None = None
    ) -> ContainedProgram:
        environment = {**(self.variables or {}), **program.environment}
        if self.containment is None:
            return ContainedProgram(arguments, environment)
        return await self.containment.contain(
            arguments, directory=self.directory, environment=environment, writable=writable
        )

    async def _run_formatter(self, program: EditProgram, target: Target) -> str | None:
        """Run a formatter; returns a note if it failed."""
        result = await self._run(program, target, seconds=limits.FORMATTER_SECONDS_MAX)
        if isinstance(result, str):
            return f"The formatter {program.name} did not run: {result}."
        if result.timed_out:
            return f"The formatter {program.name} took too long and was stopped."
        if result.exit_code == 0:
            return None
        words = _text(result).strip()[: limits.FORMATTER_WORDS_CHARS_MAX]
        return f"The formatter {program.name} failed with code {result.exit_code}: {words}"

    async def _run_checker(self, program: EditProgram, target: Target) -> list[str]:
        """Run a checker; returns the lines it reported."""
        result = await self._run(program, target, seconds=limits.CHECKER_SECONDS_MAX)
        if isinstance(result, str):
            return [f"{program.name} did not run: {result}"]
        if result.timed_out:
            return [f"{program.name} took too long and was stopped"]
        # As with compilers and linters, exit code 0 means no problems.
        if result.exit_code == 0:
            return []
        lines = (line.rstrip() for line in _text(result).splitlines())
        return [line[: limits.DIAGNOSTICS_LINE_CHARS_MAX] for line in lines if line]

    async def _run(
        self, program: EditProgram, target: Target, *, seconds: float
    ) -> ProcessResult | str:
        """The result of the program, or why it could not start."""
        if self.processes is None:
            return "nothing can be started here"
        try:
            started = await self._contain(program.arguments(target.path), program, target.path)
            return await self.processes.run(
                started.arguments,
                directory=self.directory,
                environment=started.environment,
                timeout_seconds=seconds,
                output_bytes_max=limits.EDIT_PROGRAM_OUTPUT_BYTES_MAX,
            )
        except (OSError, ValueError) as error:
            return str(error)


async def _read_formatted(
    files: Filesystem, target: Target, written: bytes
) -> tuple[bytes, str | None]:
    """The content after a formatter ran; if it is unusable, restore `written` and add a note."""
    try:
        data = await files.read(target.path, bytes_max=limits.EDIT_FILE_BYTES_MAX + 1)
    except OSError:
        data = b""
    if (data or not written) and len(data) <= limits.EDIT_FILE_BYTES_MAX:
        return data, None
    try:
        # Remove whatever replaced the file, in particular a link.
        with suppress(OSError):
            await files.remove(target.path)
        await files.create_exclusive(target.path, written, mode=0o666)
    except OSError as error:
        return written, f"A formatter spoilt {target.resource}, which is lost: {error.strerror}."
    return written, f"A formatter spoilt {target.resource}; what was written is there again."


def _text(result: ProcessResult) -> str:
    return result.output.decode("utf-8", "replace")
