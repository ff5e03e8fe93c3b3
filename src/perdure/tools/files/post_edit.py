"""What happens to a file once a tool has changed it: it is formatted, checked, and told of.

Each program runs in a process group of its own, for a bounded time and with bounded output, while
the file is still locked. What it leaves there is what the tool reports and what counts as seen.
Language servers, which stay, are asked through a Diagnoser.

Invariant: an edit that was made does not fail any more. A program that fails, hangs, removes the
file or turns it into something else becomes a note, and what was written is put back if it is gone.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from msgspec import field

from perdure.core import limits
from perdure.core.settings.edit_programs import EditProgram, EditPrograms
from perdure.ports import Filesystem, ProcessResult, ProcessRunner
from perdure.ports.file_journal import Journal
from perdure.schema.value import Confidential, Value
from perdure.tools.files.path_access import Target


def _untold(path: str) -> None:
    """Nobody listens."""


class Diagnoser(Protocol):
    """Who keeps language servers and asks them."""

    async def diagnose(
        self,
        program: EditProgram,
        target: Target,
        files: Filesystem,
        environment: Mapping[str, str],
    ) -> tuple[str, ...]:
        """What the server `program` has against a file, a line each. Bounded; never fails."""
        ...


class Looked(Value, kw_only=True):
    """A file after everybody has looked after it."""

    data: bytes
    notes: tuple[str, ...] = ()
    """For the model, a paragraph each."""

    @property
    def told(self) -> str:
        return "".join(f"\n\n{note}" for note in self.notes)


class PostEdit(Confidential, kw_only=True):
    """`directory` is where programs are started."""

    programs: EditPrograms = field(default_factory=EditPrograms)
    directory: str = "/"
    processes: ProcessRunner | None = None
    variables: Mapping[str, str] | None = None
    diagnoser: Diagnoser | None = None
    """Without it no language server is started."""
    edited: Callable[[str], None] = _untold
    """Told of each path that was changed; neither waits nor fails."""

    async def look(
        self, files: Filesystem, target: Target, data: bytes, journal: Journal
    ) -> Looked:
        """Have everybody look after `target`, which holds `data` now."""
        formatted = await self.format(files, target, data, journal)
        self.edited(target.path)
        problems = await self.check((target,), files=lambda it: files)
        return Looked(data=formatted.data, notes=(*formatted.notes, *problems))

    async def format(
        self, files: Filesystem, target: Target, data: bytes, journal: Journal
    ) -> Looked:
        programs = [it for it in self.programs.formatters if it.is_for(target.path)]
        if not programs:
            return Looked(data=data)
        notes: list[str] = []
        # A formatter is a command: what it does besides can be taken back as well.
        async with journal.watching():
            for program in programs:
                failure = await self._failure(program, target)
                data, lost = await _left(files, target, data)
                notes += [note for note in (failure, lost) if note is not None]
        return Looked(data=data, notes=tuple(notes))

    async def check(
        self, targets: Sequence[Target], *, files: Callable[[Target], Filesystem]
    ) -> tuple[str, ...]:
        """What checkers and servers say against these files; nothing, if they find nothing."""
        checked = targets[: limits.DIAGNOSED_FILES_MAX]
        lines = [
            line
            for target in checked
            for program in self.programs.checkers
            if program.is_for(target.path)
            for line in await self._complaints(program, target)
        ]
        lines += await self._diagnosed(checked, files)
        if not lines:
            return ()
        shown, more = lines[: limits.DIAGNOSTICS_LINES_MAX], len(lines)
        rest = [f"({more - len(shown)} more lines)"] if more > len(shown) else []
        return ("\n".join(["Diagnostics after this edit:", *shown, *rest]),)

    async def _diagnosed(
        self, targets: Sequence[Target], files: Callable[[Target], Filesystem]
    ) -> list[str]:
        """What language servers say. All are asked at once, so that an edit waits for one time."""
        asked = [
            (program, target)
            for target in targets
            for program in self.programs.servers
            if program.is_for(target.path)
        ]
        if self.diagnoser is None or not asked:
            return []
        async with asyncio.TaskGroup() as group:
            answers = [
                group.create_task(
                    self.diagnoser.diagnose(
                        program, target, files(target), self._environment(program)
                    )
                )
                for program, target in asked
            ]
        return [line for answer in answers for line in answer.result()]

    def _environment(self, program: EditProgram) -> dict[str, str]:
        return {**(self.variables or {}), **program.environment}

    async def _failure(self, program: EditProgram, target: Target) -> str | None:
        result = await self._run(program, target, seconds=limits.FORMATTER_SECONDS_MAX)
        if isinstance(result, str):
            return f"The formatter {program.name} did not run: {result}."
        if result.timed_out:
            return f"The formatter {program.name} took too long and was stopped."
        if result.exit_code == 0:
            return None
        words = _text(result).strip()[: limits.FORMATTER_WORDS_CHARS_MAX]
        return f"The formatter {program.name} failed with code {result.exit_code}: {words}"

    async def _complaints(self, program: EditProgram, target: Target) -> list[str]:
        result = await self._run(program, target, seconds=limits.CHECKER_SECONDS_MAX)
        if isinstance(result, str):
            return [f"{program.name} did not run: {result}"]
        if result.timed_out:
            return [f"{program.name} took too long and was stopped"]
        # As compilers and linters have it, whoever ends well has nothing to complain about.
        if result.exit_code == 0:
            return []
        lines = (line.rstrip() for line in _text(result).splitlines())
        return [line[: limits.DIAGNOSTICS_LINE_CHARS_MAX] for line in lines if line]

    async def _run(
        self, program: EditProgram, target: Target, *, seconds: float
    ) -> ProcessResult | str:
        """How it ended, or why it never began."""
        if self.processes is None:
            return "nothing can be started here"
        try:
            return await self.processes.run(
                program.arguments(target.path),
                directory=self.directory,
                environment=self._environment(program),
                timeout_seconds=seconds,
                output_bytes_max=limits.EDIT_PROGRAM_OUTPUT_BYTES_MAX,
            )
        except (OSError, ValueError) as error:
            return str(error)


async def _left(files: Filesystem, target: Target, written: bytes) -> tuple[bytes, str | None]:
    """What a formatter left; what was written, put back, if that is not a file to go on with."""
    try:
        data = await files.read(target.path, bytes_max=limits.EDIT_FILE_BYTES_MAX + 1)
    except OSError:
        data = b""
    if (data or not written) and len(data) <= limits.EDIT_FILE_BYTES_MAX:
        return data, None
    try:
        # Whatever it is by now, a link above all, it goes; it was a file when it was written.
        with suppress(OSError):
            await files.remove(target.path)
        await files.create_exclusive(target.path, written, mode=0o666)
    except OSError as error:
        return written, f"A formatter spoilt {target.resource}, which is lost: {error.strerror}."
    return written, f"A formatter spoilt {target.resource}; what was written is there again."


def _text(result: ProcessResult) -> str:
    return result.output.decode("utf-8", "replace")
