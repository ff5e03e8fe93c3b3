"""File operations: read a file of a Location, list a directory, find by name or by content."""

from typing import Annotated, Final

from msgspec import Meta

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.codec import Payload
from perdure.schema.errors import NotFoundError
from perdure.schema.files.fs import EntryType, FileEntry, TextMatches


class ReadFile(Payload, frozen=True):
    """`path` is for callers that cannot put it into the URL; it overrides the URL's path."""

    path: str | None = None


class ListFiles(Payload, frozen=True):
    path: str | None = None


class FindFiles(Payload, frozen=True):
    query: str
    type: EntryType | None = None
    limit: Annotated[int, Meta(gt=0)] | None = None


class SearchText(Payload, frozen=True):
    """`pattern` is a regular expression; `include` is a glob that the names of files must match."""

    pattern: Annotated[str, Meta(min_length=1)]
    include: Annotated[str, Meta(min_length=1)] | None = None
    limit: Annotated[int, Meta(gt=0)] | None = None


_GROUP: Final = "filesystem"
_ON_PATH: Final = (*REFUSALS, NotFoundError)

READ: Final = Endpoint(
    operation_id="v2.fs.read",
    method="GET",
    path="/api/fs/read/*",
    group=_GROUP,
    scope="location",
    query=ReadFile,
    success=Success("content"),
    errors=_ON_PATH,
)
LIST: Final = Endpoint(
    operation_id="v2.fs.list",
    method="GET",
    path="/api/fs/list",
    group=_GROUP,
    scope="location",
    query=ListFiles,
    success=Success("location_data", tuple[FileEntry, ...]),
    errors=_ON_PATH,
)
FIND: Final = Endpoint(
    operation_id="v2.fs.find",
    method="GET",
    path="/api/fs/find",
    group=_GROUP,
    scope="location",
    query=FindFiles,
    success=Success("location_data", tuple[FileEntry, ...]),
)

SEARCH: Final = Endpoint(
    operation_id="v2.fs.search",
    method="GET",
    path="/api/fs/search",
    group=_GROUP,
    scope="location",
    query=SearchText,
    success=Success("location_data", TextMatches),
)

ENDPOINTS: Final = (READ, LIST, FIND, SEARCH)
