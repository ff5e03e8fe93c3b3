"""Searching a tree: which files there are, and which lines match.

ripgrep does the work when there is one, else our own search program; nothing is ever fetched.
Both respect ignore files and leave out hidden names. The root is canonical before the search
begins, and links are not followed, so a search stays inside it.

Invariant: a search is bounded in time and output, and says when it is incomplete.
"""

import asyncio
import base64
import posixpath
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

import perdure
from perdure.core import path_pattern
from perdure.core.limits import (
    SEARCH_OUTPUT_BYTES_MAX,
    SEARCH_PATTERN_CHARS_MAX,
    SEARCH_SECONDS_MAX,
)
from perdure.core.path_pattern import Glob, InvalidPatternError
from perdure.ports import ProcessResult
from perdure.schema.value import Value
from perdure.tools.environment import ToolEnvironment
from perdure.tools.tool import ToolFailure

_COMMON: Final = ("--no-config", "--no-require-git")
# A type of ripgrep is about names only and, unlike its globs, leaves ignore files in force.
_NAME_GLOB: Final = re.compile(r"[A-Za-z0-9_.*?{},-]+")
_FAILED: Final = 2


class Text(msgspec.Struct, frozen=True):
    """Text in an answer; bytes that are not UTF-8 come in base64."""

    text: str | None = None
    bytes: str | None = None

    def __str__(self) -> str:
        if self.text is not None:
            return self.text
        return base64.b64decode(self.bytes or "").decode("utf-8", "replace")


class Submatch(msgspec.Struct, frozen=True):
    match: Text
    start: int
    end: int


class LineMatch(msgspec.Struct, frozen=True):
    path: Text
    lines: Text
    line_number: int
    absolute_offset: int
    submatches: list[Submatch]


class _Answer(msgspec.Struct, frozen=True):
    data: LineMatch


class FileListing(Value):
    paths: Sequence[str]
    complete: bool


class MatchListing(Value):
    matches: Sequence[LineMatch]
    complete: bool


def parse_glob(pattern: str) -> Glob:
    """A pattern relative to the search root. Raises ToolFailure."""
    check_length(pattern)
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise ToolFailure(f"{pattern} is not relative to the search root; set path instead")
    try:
        return path_pattern.parse_glob(pattern)
    except InvalidPatternError as error:
        raise ToolFailure(f"Invalid pattern: {error}") from error


def check_length(pattern: str) -> None:
    if len(pattern) > SEARCH_PATTERN_CHARS_MAX:
        raise ToolFailure(f"The pattern is longer than {SEARCH_PATTERN_CHARS_MAX} characters")
    if "\0" in pattern:
        raise ToolFailure("A pattern cannot contain a NUL character")


async def files(environment: ToolEnvironment, root: str, wanted: Glob) -> FileListing:
    """The files below `root` that `wanted` covers, relative to it and in order."""
    result = await _run(environment, root, ("--files", "--null", "--", "."))

    def parsed() -> list[str]:
        *names, _ = result.output.split(b"\0")
        paths = (name.decode("utf-8", "replace").removeprefix("./") for name in names)
        return sorted(path for path in paths if wanted.matches(path))

    # Hundreds of thousands of names take a while: not on the event loop.
    return FileListing(await asyncio.to_thread(parsed), _is_complete(result))


async def lines(
    environment: ToolEnvironment,
    path: str,
    pattern: str,
    *,
    is_directory: bool,
    include: str | None,
    per_file_max: int,
) -> MatchListing:
    """The matching lines of a file or of the files below a directory, in path order."""
    covers = _always if include is None else parse_glob(include).matches
    root, name = (path, ".") if is_directory else posixpath.split(path)
    arguments = (
        *("--json", "--sort", "path", "--max-count", str(per_file_max)),
        *_type_filter(include),
        *(f"--regexp={pattern}", "--", name if is_directory else f"./{name}"),
    )
    result = await _run(environment, root, arguments)
    if result.exit_code == _FAILED and not result.output:
        await _explain(environment, root, pattern)
    matches = await asyncio.to_thread(_parsed, result.output, covers)
    return MatchListing(matches, _is_complete(result))


def _parsed(output: bytes, covers: Callable[[str], bool]) -> list[LineMatch]:
    decoder = msgspec.json.Decoder(_Answer)
    # The last piece is empty, or a record cut at the bound of the output.
    *records, _ = output.split(b"\n")
    answers = (decoder.decode(it) for it in records if it.startswith(b'{"type":"match"'))
    return [answer.data for answer in answers if covers(relative_path(answer.data))]


def relative_path(match: LineMatch) -> str:
    return str(match.path).removeprefix("./")


async def _explain(environment: ToolEnvironment, root: str, pattern: str) -> None:
    """Say what is wrong with `pattern`, if it was that."""
    arguments = (f"--regexp={pattern}", "--", "/dev/null")
    result = await _run(environment, root, arguments, separate_errors=False)
    if result.exit_code == _FAILED:
        message = result.output.decode(errors="replace").strip()
        raise ToolFailure(f"Invalid search pattern: {message}")


async def _run(
    environment: ToolEnvironment,
    root: str,
    arguments: Sequence[str],
    *,
    separate_errors: bool = True,
) -> ProcessResult:
    program, variables = _program(environment.ripgrep)
    return await environment.processes.run(
        (*program, *_COMMON, *arguments),
        directory=root,
        environment=variables,
        timeout_seconds=SEARCH_SECONDS_MAX,
        output_bytes_max=SEARCH_OUTPUT_BYTES_MAX,
        separate_errors=separate_errors,
    )


def _program(ripgrep: str | None) -> tuple[tuple[str, ...], dict[str, str] | None]:
    if ripgrep is not None:
        return (ripgrep,), None
    # -P keeps modules of the searched directory out of the interpreter.
    package = str(Path(perdure.__file__).parent.parent)
    program = (sys.executable, "-P", "-m", "perdure.tools.search_program")
    return program, {"PYTHONPATH": package, "PYTHONDONTWRITEBYTECODE": "1"}


def _type_filter(include: str | None) -> tuple[str, ...]:
    if include is None or not _NAME_GLOB.fullmatch(include):
        return ()
    return ("--type-add", f"wanted:{include}", "--type", "wanted")


def _is_complete(result: ProcessResult) -> bool:
    return not (result.truncated or result.timed_out)


def _always(path: str) -> bool:
    return True
