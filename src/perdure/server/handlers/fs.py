"""The files of a Location."""

from typing import Final

from perdure.lazy_pattern import lazy_pattern
from perdure.protocol.files import fs
from perdure.protocol.files.fs import FindFiles, ListFiles, ReadFile, SearchText
from perdure.schema.files.fs import FileContent, FileEntry, Span, TextMatches
from perdure.server.call import Call, Handlers

_RANGE: Final = lazy_pattern(r"bytes=(\d{0,18})-(\d{0,18})")


async def read(call: Call[ReadFile, None]) -> FileContent:
    path = call.query.path or call.params["*"]
    return await call.runtime.files.read(
        call.location(), path, parse_range(call.request.header(b"range"))
    )


async def list_files(call: Call[ListFiles, None]) -> tuple[FileEntry, ...]:
    return await call.runtime.files.list(call.location(), call.query.path or "")


async def find(call: Call[FindFiles, None]) -> tuple[FileEntry, ...]:
    asked = call.query
    return await call.runtime.files.find(
        call.location(), asked.query, type=asked.type, limit=asked.limit
    )


async def search(call: Call[SearchText, None]) -> TextMatches:
    asked = call.query
    return await call.runtime.files.search(
        call.location(), asked.pattern, include=asked.include, limit=asked.limit
    )


def parse_range(header: str | None) -> Span | None:
    """The range of a Range header; None when it has several ranges or is malformed."""
    match = _RANGE.fullmatch(header.replace(" ", "")) if header else None
    if match is None or not (match[1] or match[2]):
        return None
    span = Span(int(match[1]) if match[1] else None, int(match[2]) if match[2] else None)
    backwards = span.first is not None and span.last is not None and span.last < span.first
    return None if backwards else span


HANDLERS: Final[Handlers] = {
    fs.READ.operation_id: read,
    fs.LIST.operation_id: list_files,
    fs.FIND.operation_id: find,
    fs.SEARCH.operation_id: search,
}
