"""glob: find files by name."""

import itertools
import posixpath
from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType

from perdure.core.files.paths import printable
from perdure.core.limits import SEARCH_RESULTS_DEFAULT, SEARCH_RESULTS_MAX
from perdure.ports import Filesystem
from perdure.schema.codec import Record
from perdure.schema.session.tool import TextContent, ToolContent
from perdure.tools.api.tool import Tool, ToolCallContext, ToolFailure
from perdure.tools.environment import ToolEnvironment, reason
from perdure.tools.files.file_permissions import Omitted
from perdure.tools.files.path_access import Target
from perdure.tools.search import search
from perdure.tools.search.search import FoundFile, SearchPath

DESCRIPTION: Final = f"""\
Find files by a pattern over their paths, such as `*.py` or `src/**/*.{{ts,tsx}}`.

- A pattern without a slash matches names at any depth; with one it starts at `path`.
- Hidden files and files that ignore files name are left out.
- Answers with paths in name order, {SEARCH_RESULTS_DEFAULT} unless `limit` is set."""


class GlobInput(Record, frozen=True):
    pattern: Annotated[str, Meta(description="Which files, relative to path.", min_length=1)]
    path: SearchPath | UnsetType = UNSET
    limit: (
        Annotated[int, Meta(description="Most files to return.", ge=1, le=SEARCH_RESULTS_MAX)]
        | UnsetType
    ) = UNSET


class GlobStructured(Record, frozen=True):
    entries: tuple[FoundFile, ...]
    truncated: bool
    omitted: Omitted | UnsetType = UNSET


class GlobOutput(Record, frozen=True):
    root: str
    entries: tuple[FoundFile, ...]
    truncated: bool
    omitted: Omitted | UnsetType = UNSET


def make_glob(environment: ToolEnvironment) -> Tool[GlobInput, GlobOutput]:
    async def execute(input: GlobInput, context: ToolCallContext) -> GlobOutput:
        search.parse_glob(input.pattern)
        search_path = "." if isinstance(input.path, UnsetType) else input.path
        limit = SEARCH_RESULTS_DEFAULT if isinstance(input.limit, UnsetType) else input.limit
        target = await environment.path_access.claim(search_path, "directory", context)
        root = await environment.path_access.root()
        permissions = environment.file_permissions
        await permissions.refuse_denied(context, target)
        metadata = {"root": root, "path": target.resource, "limit": limit}
        await environment.require(context, "glob", (input.pattern,), save=("*",), metadata=metadata)
        try:
            files = environment.files(target)
            if not (await files.stat(target.path)).is_directory:
                raise ToolFailure(f"{search_path} is not a directory")
            view = await permissions.view(context, target.path)
            # One more than the limit shows whether there are more.
            listing = await search.find_files(
                environment,
                target.path,
                input.pattern,
                paths_max=limit + 1,
                keep=lambda path: view.shows(search.resource_below(target.resource, path)),
            )
        except OSError as error:
            raise ToolFailure(f"Unable to search {search_path}: {reason(error)}") from error
        paths = await _confirm_files(files, target, listing.paths[:limit])
        return GlobOutput(
            root=root,
            entries=tuple(_entry(target, path) for path in paths),
            truncated=not listing.complete or len(listing.paths) > limit,
            omitted=view.omitted or UNSET,
        )

    return Tool(
        name="glob",
        effect="pure",
        asks_first=True,
        description=DESCRIPTION,
        input=GlobInput,
        output=GlobOutput,
        execute=execute,
        to_model_output=_content,
        structured=_structured,
    )


def _content(output: GlobOutput) -> tuple[ToolContent, ...]:
    lines = [posixpath.join(output.root, entry.path) for entry in output.entries]
    if output.truncated:
        lines.append("(There are more results: narrow the pattern or the path.)")
    omitted = output.omitted.describe() if output.omitted else []
    return (TextContent(text="\n".join([*(lines or ["No files found"]), *omitted])),)


def _structured(output: GlobOutput) -> GlobStructured:
    return GlobStructured(
        entries=output.entries, truncated=output.truncated, omitted=output.omitted
    )


async def _confirm_files(files: Filesystem, target: Target, paths: Sequence[str]) -> Sequence[str]:
    """The paths that exist without links; the search program could have followed one."""
    exist = await files.are_files([posixpath.join(target.path, path) for path in paths])
    return tuple(itertools.compress(paths, exist))


def _entry(target: Target, path: str) -> FoundFile:
    """An entry with a path relative to the Location, or absolute outside."""
    full = search.resource_below(target.resource, path)
    return FoundFile(path=printable(full), type="file")
