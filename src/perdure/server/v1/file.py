"""V1 files and version control: searches, content, and what is not committed."""

import base64
import posixpath
from typing import Final

from msgspec import UNSET

from perdure.core.language_server import diagnostic
from perdure.core.language_server.symbol import Position
from perdure.protocol.v1 import file
from perdure.protocol.v1.file import (
    DiffV1Files,
    FindV1Files,
    FindV1Symbols,
    FindV1Text,
    NameV1Path,
    V1ChangedFile,
    V1FileContent,
    V1FileDiff,
    V1FileNode,
    V1FileStatus,
    V1FoundText,
    V1Position,
    V1Range,
    V1Submatch,
    V1Symbol,
    V1SymbolPlace,
    V1TextMatch,
    V1Vcs,
)
from perdure.schema.files.fs import EntryType, FileContent, FileEntry
from perdure.schema.session.session import FileDiff
from perdure.server.call import Call, Handlers
from perdure.server.v1 import location

_TEXT_LIMIT: Final = 10
"""Lines that a text search returns; V1 has no parameter for it."""


def show_diff(found: FileDiff) -> V1FileDiff:
    return V1FileDiff(found.path, found.patch, found.additions, found.deletions, found.status)


async def find_text(call: Call[FindV1Text, None]) -> tuple[V1TextMatch, ...]:
    found = await call.runtime.files.search(
        location.resolve(call), call.query.pattern, include=None, limit=_TEXT_LIMIT
    )
    return tuple(
        V1TextMatch(
            path=V1FoundText(match.path),
            lines=V1FoundText(match.text),
            submatches=tuple(
                V1Submatch(V1FoundText(each.text), each.start, each.end)
                for each in match.submatches
            ),
            line_number=match.line,
            absolute_offset=match.offset,
        )
        for match in found.matches
    )


async def find_files(call: Call[FindV1Files, None]) -> tuple[str, ...]:
    asked = call.query
    kind: EntryType | None = asked.type or ("file" if asked.dirs == "false" else None)
    found = await call.runtime.files.find(
        location.resolve(call), asked.query, type=kind, limit=asked.limit
    )
    return tuple(entry.path for entry in found)


async def find_symbols(call: Call[FindV1Symbols, None]) -> tuple[V1Symbol, ...]:
    """The symbols that running language servers name; one runs from the first edit on."""
    found = await call.runtime.files.find_symbols(location.resolve(call), call.query.query)
    return tuple(
        V1Symbol(
            symbol.name,
            symbol.kind,
            V1SymbolPlace(
                diagnostic.uri_of(symbol.path),
                V1Range(_position(symbol.range.start), _position(symbol.range.end)),
            ),
        )
        for symbol in found
    )


def _position(found: Position) -> V1Position:
    return V1Position(found.line, found.character)


async def list_files(call: Call[NameV1Path, None]) -> tuple[V1FileNode, ...]:
    where = location.resolve(call)
    path = _relative(call.query.path, where.directory)
    entries = await call.runtime.files.list(where, path)
    ignored = await call.runtime.files.list_ignored(where, entries)
    return tuple(_node(entry, where.directory, ignored=entry.path in ignored) for entry in entries)


async def read(call: Call[NameV1Path, None]) -> V1FileContent:
    where = location.resolve(call)
    path = _relative(call.query.path, where.directory)
    found = await call.runtime.files.read(where, path, None)
    return _content(found)


async def status(call: Call[None, None]) -> tuple[V1ChangedFile, ...]:
    found = await call.runtime.vcs.status(location.resolve(call))
    return tuple(V1ChangedFile(it.path, it.additions, it.deletions, it.status) for it in found)


async def vcs(call: Call[None, None]) -> V1Vcs:
    return V1Vcs.of(await call.runtime.vcs.info(location.resolve(call)))


async def vcs_status(call: Call[None, None]) -> tuple[V1FileStatus, ...]:
    found = await call.runtime.vcs.status(location.resolve(call))
    return tuple(V1FileStatus(it.path, it.additions, it.deletions, it.status) for it in found)


async def vcs_diff(call: Call[DiffV1Files, None]) -> tuple[V1FileDiff, ...]:
    base = "head" if call.query.mode == "git" else "branch"
    found = await call.runtime.vcs.diff(location.resolve(call), base)
    return tuple(map(show_diff, found))


async def vcs_raw(call: Call[None, None]) -> FileContent:
    found = await call.runtime.vcs.diff(location.resolve(call), "head")
    data = "".join(each.patch for each in found).encode()
    kind = "text/x-diff; charset=utf-8"
    return FileContent(data=data, offset=0, size=len(data), content_type=kind)


def _relative(path: str, directory: str) -> str:
    """The path below the directory; V1 clients also send it as an absolute one."""
    root = directory.rstrip("/") + "/"
    if path.rstrip("/") == directory.rstrip("/"):
        return ""
    return path.removeprefix(root)


def _node(entry: FileEntry, directory: str, *, ignored: bool) -> V1FileNode:
    path = entry.path.rstrip("/")
    return V1FileNode(
        name=posixpath.basename(path),
        path=path,
        absolute=posixpath.join(directory, path),
        type=entry.type,
        ignored=ignored,
    )


def _content(found: FileContent) -> V1FileContent:
    try:
        if b"\0" not in found.data:
            return V1FileContent("text", found.data.decode())
    except UnicodeDecodeError:
        # Shown as bytes.
        pass
    encoded = base64.b64encode(found.data).decode()
    return V1FileContent("binary", encoded, "base64", found.content_type or UNSET)


HANDLERS: Final[Handlers] = {
    file.FIND_TEXT.operation_id: find_text,
    file.FIND_FILES.operation_id: find_files,
    file.FIND_SYMBOLS.operation_id: find_symbols,
    file.LIST.operation_id: list_files,
    file.READ.operation_id: read,
    file.STATUS.operation_id: status,
    file.VCS.operation_id: vcs,
    file.VCS_STATUS.operation_id: vcs_status,
    file.VCS_DIFF.operation_id: vcs_diff,
    file.VCS_RAW.operation_id: vcs_raw,
}
