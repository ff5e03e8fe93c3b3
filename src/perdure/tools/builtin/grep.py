"""grep: find lines by a regular expression."""

import itertools
import posixpath
from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType

from perdure.core.limits import (
    SEARCH_LINE_CHARS_MAX,
    SEARCH_RESULTS_DEFAULT,
    SEARCH_RESULTS_MAX,
    SEARCH_SUBMATCHES_MAX,
)
from perdure.schema.codec import JsonObject, Record
from perdure.schema.session.tool import TextContent, ToolContent
from perdure.tools.api.tool import Tool, ToolCallContext, ToolFailure
from perdure.tools.environment import ToolEnvironment, reason
from perdure.tools.files.file_permissions import FileView, Omitted
from perdure.tools.files.path_access import Target
from perdure.tools.search import search
from perdure.tools.search.search import FoundFile, LineMatch, LineSearch, SearchPath

DESCRIPTION: Final = f"""\
Search the contents of files with a regular expression, line by line.

- `path` is a directory or a single file; `include` limits a directory to names such as `*.py`.
- Hidden files, binary files and files that ignore files name are left out.
- Answers with matching lines by file, {SEARCH_RESULTS_DEFAULT} unless `limit` is set."""


class GrepInput(Record, frozen=True):
    pattern: Annotated[str, Meta(description="A regular expression.", min_length=1)]
    path: SearchPath | UnsetType = UNSET
    include: (
        Annotated[str, Meta(description="Only files that match this glob.", min_length=1)]
        | UnsetType
    ) = UNSET
    limit: (
        Annotated[int, Meta(description="Most lines to return.", ge=1, le=SEARCH_RESULTS_MAX)]
        | UnsetType
    ) = UNSET


class Submatch(Record, frozen=True):
    text: str
    start: int
    end: int


class Match(Record, frozen=True):
    entry: FoundFile
    line: int
    offset: int
    text: str
    submatches: tuple[Submatch, ...]


class GrepStructured(Record, frozen=True):
    matches: tuple[Match, ...]
    truncated: bool
    omitted: Omitted | UnsetType = UNSET


class GrepOutput(Record, frozen=True):
    root: str
    matches: tuple[Match, ...]
    truncated: bool
    omitted: Omitted | UnsetType = UNSET


def make_grep(environment: ToolEnvironment) -> Tool[GrepInput, GrepOutput]:
    async def execute(input: GrepInput, context: ToolCallContext) -> GrepOutput:
        search.check_length(input.pattern)
        if not isinstance(input.include, UnsetType):
            search.parse_glob(input.include)
        search_path = "." if isinstance(input.path, UnsetType) else input.path
        target = await environment.path_access.claim(search_path, "directory", context)
        root = await environment.path_access.root()
        await environment.file_permissions.refuse_denied(context, target)
        await environment.require(
            context, "grep", (input.pattern,), save=("*",), metadata=_metadata(input, root, target)
        )
        try:
            return await _search(environment, input, target, context)
        except OSError as error:
            raise ToolFailure(f"Unable to search {search_path}: {reason(error)}") from error

    return Tool(
        name="grep",
        effect="pure",
        asks_first=True,
        description=DESCRIPTION,
        input=GrepInput,
        output=GrepOutput,
        execute=execute,
        to_model_output=_content,
        structured=_structured,
    )


def _content(output: GrepOutput) -> tuple[ToolContent, ...]:
    omitted = output.omitted.describe() if output.omitted else []
    if not output.matches:
        more = " (the search was not complete)" if output.truncated else ""
        return (TextContent(text="\n".join([f"No matches found{more}", *omitted])),)
    lines = [f"Found {len(output.matches)} matches"]
    for path, matches in itertools.groupby(output.matches, key=lambda match: match.entry.path):
        lines += ["", f"{posixpath.join(output.root, path)}:"]
        lines += [f"  Line {match.line}: {match.text}" for match in matches]
    if output.truncated:
        lines += ["", "(There are more results: narrow the pattern, the path or include.)"]
    lines += ["", *omitted] if omitted else []
    return (TextContent(text="\n".join(lines)),)


def _structured(output: GrepOutput) -> GrepStructured:
    return GrepStructured(
        matches=output.matches, truncated=output.truncated, omitted=output.omitted
    )


def _metadata(input: GrepInput, root: str, target: Target) -> JsonObject:
    metadata: JsonObject = {"root": root, "path": target.resource, "limit": _limit(input)}
    if not isinstance(input.include, UnsetType):
        metadata["include"] = input.include
    return metadata


async def _search(
    environment: ToolEnvironment,
    input: GrepInput,
    target: Target,
    context: ToolCallContext,
) -> GrepOutput:
    files, limit = environment.files(target), _limit(input)
    status = await files.stat(target.path)
    if not status.is_directory and not status.is_file:
        raise ToolFailure(f"{target.resource} is not a regular file")
    if status.is_file:
        await environment.file_permissions.require_used(context, target)
    view = await environment.file_permissions.view(context, target.path)
    base = target.resource if status.is_directory else posixpath.dirname(target.resource) or "."

    def is_shown(path: str) -> bool:
        # The one file that is named has been asked for.
        return status.is_file or view.is_shown(search.resource_below(base, path))

    search_for = LineSearch(
        path=target.path,
        is_directory=status.is_directory,
        pattern=input.pattern,
        include=None if isinstance(input.include, UnsetType) else input.include,
        matches_max=limit + 1,
        keep=is_shown,
    )
    listing = await search.find_lines(environment, search_for)
    if status.is_directory and view.is_partial:
        await _note_omitted(environment, input, target, view)
    directory = target.path if status.is_directory else posixpath.dirname(target.path)
    wanted = listing.matches[:limit]
    confirmed = [found for found in wanted if await search.is_confirmed(files, directory, found)]
    return GrepOutput(
        root=await environment.path_access.root(),
        matches=tuple(_match(base, found) for found in confirmed),
        truncated=not listing.complete or len(confirmed) < len(listing.matches),
        omitted=view.omitted or UNSET,
    )


async def _note_omitted(
    environment: ToolEnvironment, input: GrepInput, target: Target, view: FileView
) -> None:
    """Note which files were not searched.

    It is told of all such files, and not of those with matches: that would answer the search.
    """
    await search.find_files(
        environment,
        target.path,
        search.EVERYTHING if isinstance(input.include, UnsetType) else input.include,
        keep=lambda path: view.shows(search.resource_below(target.resource, path)),
    )


def _limit(input: GrepInput) -> int:
    return SEARCH_RESULTS_DEFAULT if isinstance(input.limit, UnsetType) else input.limit


def _match(base: str, found: LineMatch) -> Match:
    path = search.resource_below(base, search.relative_path(found))
    line = str(found.lines).rstrip("\r\n")
    text = line[:SEARCH_LINE_CHARS_MAX]
    shown_bytes = len(text.encode())
    submatches = (
        Submatch(
            text=str(submatch.match)[:SEARCH_LINE_CHARS_MAX], start=submatch.start, end=submatch.end
        )
        for submatch in found.submatches[:SEARCH_SUBMATCHES_MAX]
        if submatch.start <= shown_bytes
    )
    return Match(
        entry=FoundFile(path=path, type="file"),
        line=found.line_number,
        offset=found.absolute_offset,
        text=text if text == line else f"{text}...",
        submatches=tuple(submatches),
    )
