"""Searches a directory tree for files and for matching lines.

ripgrep is used if installed, else the fallback program; nothing is downloaded. Both respect ignore
files and leave out hidden names. The root is canonical and links are not followed; callers check
each result with `is_confirmed` before showing it.

Invariant: a search is bounded in time and output, and says when it is incomplete.
"""

import asyncio
import base64
import heapq
import itertools
import os
import posixpath
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from perdure.core.files import glob
from perdure.core.files.glob import Glob, InvalidPatternError
from perdure.core.limits import (
    SEARCH_ANSWER_BYTES_MAX,
    SEARCH_COLLECTED_MAX,
    SEARCH_OUTPUT_BYTES_MAX,
    SEARCH_OWN_SECONDS_MAX,
    SEARCH_PATTERN_CHARS_MAX,
    SEARCH_SECONDS_MAX,
)
from perdure.lazy_pattern import lazy_pattern
from perdure.ports import Filesystem, ProcessResult
from perdure.schema.codec import Record
from perdure.schema.value import Value
from perdure.tools.api.tool import ToolFailure
from perdure.tools.environment import ToolEnvironment, encode_text
from perdure.version import PACKAGE_FOLDER

_COMMON: Final = ("--no-config", "--no-require-git")
# ripgrep's types filter by name and, unlike its globs, do not override ignore files.
_NAME_GLOB: Final = lazy_pattern(r"(?!\*\*$)(?:[A-Za-z0-9_.*?-]|\{[A-Za-z0-9_.*?,-]+\})+")
_SUFFIX_PATTERN: Final = lazy_pattern(r"(?:\*\*/)?\*[A-Za-z0-9_.-]+")
_SPECIAL: Final = lazy_pattern(r"[*?\[\]{},!\\]")
_PATH_OF_MATCH: Final = lazy_pattern(
    rb'\{"type":"match","data":\{"path":(\{"(?:text|bytes)":"(?:[^"\\]|\\.)*"\})'
)
_BOM: Final = b"\xef\xbb\xbf"
_FAILED: Final = 2

Bytes = bytes
"""Alias for classes in which a field is called `bytes`."""

EVERYTHING: Final = "**"
Keep = Callable[[str], bool]
"""Whether a path that was found, relative to the search root, is kept."""

SearchPath = Annotated[
    str, Meta(description="Where to search; the project unless set.", min_length=1)
]
"""The `path` input of search tools."""


class FoundFile(Record, frozen=True):
    path: str
    type: Literal["file"]


class Text(msgspec.Struct, frozen=True):
    """Text in a result record; bytes that are not UTF-8 are in base64."""

    text: str | None = None
    bytes: str | None = None

    def __str__(self) -> str:
        return self.raw().decode("utf-8", "replace")

    def raw(self) -> "Bytes":
        return base64.b64decode(self.bytes or "") if self.text is None else self.text.encode()


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


class LineSearch(Value, kw_only=True):
    """A search for lines: where, for what, and the maximum number of matches."""

    path: str
    is_directory: bool
    pattern: str
    include: str | None
    matches_max: int
    keep: Keep | None = None
    """Whether the lines of a file may be shown, by its path below the directory."""


class FileListing(Value):
    paths: Sequence[str]
    complete: bool


class MatchListing(Value):
    matches: Sequence[LineMatch]
    complete: bool


def parse_glob(pattern: str) -> Glob:
    """Parse a pattern relative to the search root. Raises ToolFailure."""
    check_length(pattern)
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise ToolFailure(f"{pattern} is not relative to the search root; set path instead")
    try:
        return glob.parse_glob(pattern)
    except InvalidPatternError as error:
        raise ToolFailure(f"Invalid pattern: {error}") from error


def check_length(pattern: str) -> None:
    if len(pattern) > SEARCH_PATTERN_CHARS_MAX:
        raise ToolFailure(f"The pattern is longer than {SEARCH_PATTERN_CHARS_MAX} characters")
    if "\0" in pattern:
        raise ToolFailure("A pattern cannot contain a NUL character")
    encode_text(pattern)


def resource_below(folder: str, path: str) -> str:
    """The resource of a path that was found below the folder of this resource."""
    return path if folder == "." else posixpath.join(folder, path)


async def find_files(
    environment: ToolEnvironment,
    root: str,
    pattern: str,
    *,
    paths_max: int | None = None,
    keep: Keep | None = None,
) -> FileListing:
    """The first files below `root` that match a pattern, relative to it and sorted."""
    wanted = parse_glob(pattern)
    result = await _run(environment, root, ("--files", "--null", *_name_filter(pattern), "--", "."))
    prefilter = _NamePrefilter(pattern)

    def parse_output() -> list[str]:
        names = prefilter.filter(result.output)
        if keep is None and _SUFFIX_PATTERN.fullmatch(pattern):
            first = sorted(names) if paths_max is None else heapq.nsmallest(paths_max, names)
            return [os.fsdecode(name[2:]) for name in first]
        paths = (os.fsdecode(name[2:]) for name in sorted(names))
        matching = paths if pattern == EVERYTHING else filter(wanted.matches, paths)
        return list(itertools.islice(filter(keep, matching), paths_max))

    # On a thread: hundreds of thousands of names take long.
    return FileListing(await asyncio.to_thread(parse_output), _is_complete(result))


async def find_lines(environment: ToolEnvironment, wanted: LineSearch) -> MatchListing:
    """The first matching lines of a file or of the files below a directory, in path order.

    An unsorted search, which can use all processors, collects all matches. If there are too many,
    a sorted search stops at the maximum.
    """
    unsorted = _Collector(wanted, matches_max=SEARCH_COLLECTED_MAX)
    complete = await _collect(environment, wanted, unsorted)
    if not unsorted.full:
        found = sorted(unsorted.matches, key=lambda it: (it.path.raw(), it.line_number))
        return MatchListing(found, complete)
    in_order = _Collector(wanted, matches_max=wanted.matches_max)
    await _collect(environment, wanted, in_order, "--sort", "path")
    return MatchListing(in_order.matches, complete=False)


class _FullError(Exception):
    """The collector has enough matches."""


class _Collector:
    """An OutputSink that keeps the matches of a search. Raises _FullError to end it."""

    def __init__(self, search: LineSearch, *, matches_max: int) -> None:
        self._wanted = None if search.include is None else parse_glob(search.include)
        cached = lru_cache(maxsize=SEARCH_COLLECTED_MAX)
        self._keep = None if search.keep is None else cached(search.keep)
        self._decoder = msgspec.json.Decoder(_Answer)
        self._matches_max = matches_max
        self._bytes = 0
        self._rest = bytearray()
        self._skipping = False
        self.matches: list[LineMatch] = []
        self.full = False
        self.left_out = False
        """Whether a match was left out because it was too long."""

    async def write(self, data: bytes) -> None:
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._extend(piece)
            self._take()
        self._extend(rest)

    def _extend(self, piece: bytes) -> None:
        if len(self._rest) + len(piece) > SEARCH_ANSWER_BYTES_MAX:
            self._skipping = True
            self._rest += piece[: SEARCH_ANSWER_BYTES_MAX - len(self._rest)]
        if not self._skipping:
            self._rest += piece

    def _take(self) -> None:
        record, skipped = bytes(self._rest), self._skipping
        self._rest.clear()
        self._skipping = False
        if not record.startswith(b'{"type":"match"'):
            return
        if skipped:
            self.left_out = self.left_out or self._is_long_match_included(record)
            return
        match = self._decoder.decode(record).data
        if not self._is_included(relative_path(match)):
            return
        self.matches.append(match)
        self._bytes += len(record)
        if len(self.matches) >= self._matches_max or self._bytes > SEARCH_OUTPUT_BYTES_MAX:
            self.full = True
            raise _FullError

    def _is_long_match_included(self, start: bytes) -> bool:
        """Whether a match that is too long would be shown, by the path at its start."""
        found = _PATH_OF_MATCH.match(start)
        path = "" if found is None else str(msgspec.json.decode(found[1], type=Text))
        return found is None or self._is_included(path.removeprefix("./"))

    def _is_included(self, path: str) -> bool:
        included = self._wanted is None or (_is_visible(path) and self._wanted.matches(path))
        return included and (self._keep is None or self._keep(path))


async def _collect(
    environment: ToolEnvironment, wanted: LineSearch, into: _Collector, *options: str
) -> bool:
    """Search into a collector; returns whether it has all matches."""
    root, name = (wanted.path, ".") if wanted.is_directory else posixpath.split(wanted.path)
    arguments = (
        *("--json", "--no-messages", "--max-count", str(wanted.matches_max)),
        *options,
        *(() if wanted.include is None else _name_filter(wanted.include)),
        *(f"--regexp={wanted.pattern}", "--", name if wanted.is_directory else f"./{name}"),
    )
    program, variables = _program(environment)
    try:
        result = await environment.processes.run_into(
            into,
            (*program, *_COMMON, *arguments),
            directory=root,
            environment=variables,
            timeout_seconds=_seconds_max(environment),
        )
    except _FullError:
        return False
    if result.exit_code == _FAILED and not into.matches:
        await _explain(environment, root, wanted.pattern)
    return _is_complete(result) and not into.left_out


def relative_path(match: LineMatch) -> str:
    return str(match.path).removeprefix("./")


async def is_confirmed(files: Filesystem, directory: str, match: LineMatch) -> bool:
    """Whether a confined read finds the line at the reported position.

    A search program opens files by path, and a directory that becomes a link meanwhile could lead
    it outside. So its results are shown only if a read without links finds the same.
    """
    path = posixpath.join(directory, os.fsdecode(match.path.raw().removeprefix(b"./")))
    line = match.lines.raw()
    try:
        data = await files.read(path, offset=match.absolute_offset, bytes_max=len(line) + len(_BOM))
    except OSError:
        return False
    # Offsets do not count a byte order mark.
    return data.startswith(line) or data[len(_BOM) :] == line


async def _explain(environment: ToolEnvironment, root: str, pattern: str) -> None:
    """Raise ToolFailure if `pattern` is invalid."""
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
    program, variables = _program(environment)
    return await environment.processes.run(
        (*program, *_COMMON, *arguments),
        directory=root,
        environment=variables,
        timeout_seconds=_seconds_max(environment),
        output_bytes_max=SEARCH_OUTPUT_BYTES_MAX,
        separate_errors=separate_errors,
    )


def _program(
    environment: ToolEnvironment,
) -> tuple[tuple[str, ...], Mapping[str, str] | None]:
    if environment.ripgrep is not None:
        return (environment.ripgrep,), environment.variables
    # -P: do not import modules from the searched directory.
    package = os.path.dirname(PACKAGE_FOLDER)
    program = (sys.executable, "-P", "-m", "perdure.tools.search.fallback_program")
    return program, {"PYTHONPATH": package, "PYTHONDONTWRITEBYTECODE": "1"}


def _seconds_max(environment: ToolEnvironment) -> float:
    return SEARCH_OWN_SECONDS_MAX if environment.ripgrep is None else SEARCH_SECONDS_MAX


def _name_filter(pattern: str) -> tuple[str, ...]:
    """Options that exclude files whose name alone cannot match `pattern`."""
    directories, _, name = pattern.rpartition("/")
    if "{" in directories or not _NAME_GLOB.fullmatch(name):
        return ()
    return ("--type-add", f"wanted:{name}", "--type", "wanted")


def _is_complete(result: ProcessResult) -> bool:
    killed = result.exit_code is not None and result.exit_code < 0
    return not (result.truncated or result.timed_out or killed)


class _NamePrefilter:
    """A cheap filter before the exact match: most names are excluded by it."""

    def __init__(self, pattern: str) -> None:
        start, self._end = (encode_text(literal) for literal in _literal_ends(pattern))
        self._start = b"./" + start
        self._inner = [encode_text(f"/{name}/") for name in _literal_directories(pattern)]

    def filter(self, listed: bytes) -> list[bytes]:
        """The possible matches in a list of NUL-terminated names, which begin with `./`."""
        *names, _ = listed.split(b"\0")
        names = [name for name in names if name.endswith(self._end)]
        if self._start != b"./":
            names = [name for name in names if name.startswith(self._start)]
        # The name filter options also list hidden files; usually there are none.
        if b"/." in listed:
            names = [name for name in names if b"/." not in name]
        for passed in self._inner:
            names = [name for name in names if passed in name]
        return names


def _literal_ends(pattern: str) -> tuple[str, str]:
    """The literal beginning and end of all paths that `pattern` matches."""
    *_, end = re.split(r"[/*?\[\]{},!\\]", pattern)
    directories = pattern.split("/")[:-1]
    literal = itertools.takewhile(lambda name: not _SPECIAL.search(name), directories)
    start = "".join(f"{name}/" for name in literal if name not in ("", "."))
    # A character class at the end has no literal.
    return start, "" if pattern.endswith("]") else end


def _literal_directories(pattern: str) -> list[str]:
    """Directories in all paths that `pattern` matches."""
    if "{" in pattern:
        return []
    *directories, _ = pattern.split("/")
    return [name for name in directories if name not in ("", ".") and not _SPECIAL.search(name)]


def _is_visible(path: str) -> bool:
    # The name filter options also list hidden files.
    return not path.startswith(".") and "/." not in path
