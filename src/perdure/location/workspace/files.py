"""The files of a Location, for clients: read one, list a folder, find by name or by content.

The HTTP server authenticates the client. No permission is asked for, because the user asks and not
a model; what the caller's `shows` refuses is not shown. A path is relative to the Location and must
stay inside it, as written and after every link is resolved. Finding uses the searches of the glob
and grep tools, without hidden and ignored files.

Invariant: only files below the Location are read, even if a path is replaced by a link meanwhile,
and every answer is bounded.
"""

import asyncio
import errno
import posixpath
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from perdure.core import limits
from perdure.core.files import ignore, mime
from perdure.core.files.paths import printable
from perdure.core.text import fuzzy
from perdure.host import descriptors
from perdure.ports import Filesystem
from perdure.schema.errors import DomainError, ForbiddenError, InvalidRequestError, NotFoundError
from perdure.schema.files.fs import (
    EntryType,
    FileContent,
    FileEntry,
    Span,
    TextMatch,
    TextMatches,
    TextSubmatch,
)
from perdure.tools.api.tool import ToolFailure
from perdure.tools.environment import ToolEnvironment, reason
from perdure.tools.search import search
from perdure.tools.search.search import LineMatch, LineSearch

Shows = Callable[[str], bool]
"""Whether the content of a file may be shown, by its canonical path."""


def _shows_all(path: str) -> bool:
    return True


class LocationFiles:
    """`environment` makes the ToolEnvironment of this Location; called on first use."""

    def __init__(self, environment: Callable[[], ToolEnvironment]) -> None:
        self._make = environment

    async def read(
        self, path: str, span: Span | None = None, *, shows: Shows = _shows_all
    ) -> FileContent:
        """Read a file or a part of it.

        Raises NotFoundError, InvalidRequestError, and ForbiddenError for what may not be shown.
        """
        real, files = await self._resolve(path)
        if not shows(real):
            raise ForbiddenError(f"A permission rule denies reading {path}")
        try:
            status = await files.stat(real)
            if not status.is_file:
                raise _refused(f"{path} is not a file")
            offset, length = _extent(path, span, status.size)
            data = await files.read(real, offset=offset, bytes_max=length)
        except OSError as error:
            raise _failure(path, error) from error
        return FileContent(
            data=data,
            offset=offset,
            # The file may have grown between stat and read.
            size=max(status.size, offset + len(data)) if span else len(data),
            content_type=mime.served_type(real),
        )

    async def list(self, path: str = "") -> tuple[FileEntry, ...]:
        """The entries of a folder: directories first, then files, each by name."""
        real, files = await self._resolve(path or ".")
        try:
            if not (await files.stat(real)).is_directory:
                raise _refused(f"{path} is not a directory")
            children = await files.list(real)
        except OSError as error:
            raise _failure(path, error) from error
        if len(children) > limits.FS_ENTRIES_MAX:
            raise _refused(f"{path or '.'} has more than {limits.FS_ENTRIES_MAX} entries")
        root = await self.environment.path_access.root()
        folder = posixpath.relpath(real, root)
        found = [
            _entry(posixpath.normpath(posixpath.join(folder, name)), status.is_directory)
            for name, status in children
            if status.is_directory or status.is_file
        ]
        return tuple(sorted(found, key=lambda entry: entry.type != "directory"))

    async def list_ignored(self, entries: Sequence[FileEntry]) -> frozenset[str]:
        """The paths among entries of one folder that ignore files of the Location name."""
        if not entries:
            return frozenset()
        root = await self.environment.path_access.root()
        files = self.environment.filesystem.confined_to(root)
        folder = posixpath.dirname(entries[0].path.rstrip("/"))
        verdicts: dict[str, bool] = {}
        for parent in _parents(folder):
            path = posixpath.join(root, parent, ".gitignore")
            try:
                data = await files.read(path, bytes_max=limits.GIT_FILE_BYTES_MAX)
            except OSError:
                # Most folders have none.
                continue
            rules = ignore.parse_ignore(data.decode(errors="replace"))
            for entry in entries:
                name = posixpath.relpath(entry.path.rstrip("/"), parent or ".")
                verdict = ignore.ignored(rules, name, is_directory=entry.type == "directory")
                if verdict is not None:
                    verdicts[entry.path] = verdict
        return frozenset(path for path, verdict in verdicts.items() if verdict)

    async def find(
        self, query: str, *, type: EntryType | None = None, limit: int | None = None
    ) -> tuple[FileEntry, ...]:
        """Paths that match `query` fuzzily, the best first."""
        environment = self.environment
        root = await environment.path_access.root()
        try:
            search.check_length(query)
            listing = await search.find_files(environment, root, search.EVERYTHING)
        except ToolFailure as error:
            raise _refused(str(error)) from error
        except OSError as error:
            raise _failure(".", error) from error
        wanted = min(limit or limits.FS_FOUND_DEFAULT, limits.FS_FOUND_MAX)
        # Hundreds of thousands of paths take a while: not on the event loop.
        found = await asyncio.to_thread(
            lambda: fuzzy.best_matches(query, _candidates(listing.paths, type), limit=wanted)
        )
        return tuple(_entry(path.rstrip("/"), path.endswith("/")) for path in found)

    async def search(
        self,
        pattern: str,
        *,
        include: str | None = None,
        limit: int | None = None,
        shows: Shows = _shows_all,
    ) -> TextMatches:
        """Lines that match a regular expression, in the order of their paths."""
        environment = self.environment
        root = await environment.path_access.root()
        wanted = min(limit or limits.FS_MATCHES_DEFAULT, limits.FS_MATCHES_MAX)
        try:
            search.check_length(pattern)
            if include is not None:
                search.parse_glob(include)
            listing = await search.find_lines(
                environment,
                LineSearch(
                    path=root,
                    is_directory=True,
                    pattern=pattern,
                    include=include,
                    matches_max=wanted + 1,
                    keep=lambda path: shows(posixpath.join(root, path)),
                ),
            )
        except ToolFailure as error:
            raise InvalidRequestError(str(error), field="pattern") from error
        except OSError as error:
            raise _failure(".", error) from error
        files = environment.filesystem.confined_to(root)
        found = [
            match
            for match in listing.matches[:wanted]
            if await search.is_confirmed(files, root, match)
        ]
        return TextMatches(
            matches=tuple(map(_text_match, found)),
            truncated=not listing.complete or len(found) < len(listing.matches),
        )

    @cached_property
    def environment(self) -> ToolEnvironment:
        """The ToolEnvironment of this Location."""
        return self._make()

    async def _resolve(self, path: str) -> tuple[str, Filesystem]:
        """The canonical path, and a filesystem that is confined to the Location."""
        _require_sane(path)
        path_access, filesystem = self.environment.path_access, self.environment.filesystem
        root = await path_access.root()
        lexical = posixpath.normpath(posixpath.join(root, path))
        # As written first: a path outside is not accessed, not even to resolve a link.
        if posixpath.isabs(path) or not await path_access.contains(lexical):
            raise _refused(f"{path} is outside the Location")
        try:
            real = await filesystem.real_path(lexical)
        except OSError as error:
            raise _failure(path, error) from error
        if not await path_access.contains(real):
            raise _refused(f"{path} leads outside the Location through a symbolic link")
        return real, filesystem.confined_to(root)


def _extent(path: str, span: Span | None, size: int) -> tuple[int, int]:
    """The offset and length to read."""
    if span is None:
        if size > limits.FS_READ_BYTES_MAX:
            most = limits.FS_READ_BYTES_MAX
            raise _refused(f"{path} is larger than {most} bytes; ask for a range of it")
        return 0, size
    if span.first is None:
        offset = max(0, size - (span.last or 0))
        end = size
    else:
        offset = span.first
        end = size if span.last is None else min(size, span.last + 1)
    if offset >= end:
        raise _refused(f"{path} has {size} bytes, and none in that range")
    return offset, min(end - offset, limits.FS_READ_BYTES_MAX)


def _parents(folder: str) -> Iterator[str]:
    """The folders from the root, which is empty, down to `folder`."""
    parts = folder.split("/") if folder else []
    return ("/".join(parts[:depth]) for depth in range(len(parts) + 1))


def _text_match(found: LineMatch) -> TextMatch:
    line = str(found.lines).rstrip("\r\n")
    text = line[: limits.SEARCH_LINE_CHARS_MAX]
    shown = len(text.encode())
    return TextMatch(
        path=printable(search.relative_path(found)),
        line=found.line_number,
        offset=found.absolute_offset,
        text=text,
        submatches=tuple(
            TextSubmatch(str(each.match)[: limits.SEARCH_LINE_CHARS_MAX], each.start, each.end)
            for each in found.submatches[: limits.SEARCH_SUBMATCHES_MAX]
            if each.start <= shown
        ),
    )


def _candidates(files: Sequence[str], type: EntryType | None) -> "list[str]":
    directories: set[str] = set()
    if type != "file":
        for path in files:
            while (path := posixpath.dirname(path)) and f"{path}/" not in directories:
                directories.add(f"{path}/")
    return [*directories, *(() if type == "directory" else files)]


def _entry(path: str, is_directory: bool) -> FileEntry:
    text = printable(path)
    return FileEntry(f"{text}/", "directory") if is_directory else FileEntry(text, "file")


def _require_sane(path: str) -> None:
    if "\0" in path:
        raise _refused("A path cannot contain a NUL character")
    if len(path) > limits.PATH_CHARS_MAX:
        raise _refused(f"A path cannot be longer than {limits.PATH_CHARS_MAX} characters")
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise _refused("A path must be valid Unicode") from error


def _failure(path: str, error: OSError) -> DomainError | OSError:
    if descriptors.are_exhausted(error):
        # Not the path's fault: the server answers it as it does everywhere.
        return error
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        return NotFoundError(f"No such file or directory: {path}")
    return _refused(f"Unable to open {path}: {reason(error)}")


def _refused(message: str) -> InvalidRequestError:
    return InvalidRequestError(message, field="path")
