"""Files in V1: find text, names and symbols; list a folder; read a file; what is not committed."""

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType, field

from perdure.protocol.endpoint import Endpoint, Success
from perdure.protocol.v1.endpoint import declare
from perdure.schema.codec import Payload, Record
from perdure.schema.files.fs import EntryType
from perdure.schema.files.vcs import ChangeStatus, VcsInfo


class V1FoundText(Record):
    text: str


class V1Submatch(Record):
    match: V1FoundText
    start: int
    end: int


class V1TextMatch(Record):
    path: V1FoundText
    lines: V1FoundText
    submatches: tuple[V1Submatch, ...]
    line_number: int = field(name="line_number")
    absolute_offset: int = field(name="absolute_offset")


class V1Position(Record):
    line: int
    character: int


class V1Range(Record):
    start: V1Position
    end: V1Position


class V1SymbolPlace(Record):
    uri: str
    range: V1Range


class V1Symbol(Record):
    name: str
    kind: int
    location: V1SymbolPlace


class V1FileNode(Record):
    name: str
    path: str
    absolute: str
    type: EntryType
    ignored: bool


class V1FileContent(Record):
    """`encoding` is set for content that is not text."""

    type: Literal["text", "binary"]
    content: str
    encoding: Literal["base64"] | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET


class V1ChangedFile(Record):
    path: str
    added: int
    removed: int
    status: ChangeStatus


class V1FileStatus(Record):
    file: str
    additions: int
    deletions: int
    status: ChangeStatus


class V1FileDiff(Record):
    file: str
    patch: str
    additions: int
    deletions: int
    status: ChangeStatus


class V1Vcs(Record):
    branch: str | UnsetType = UNSET
    default_branch: str | UnsetType = field(name="default_branch", default=UNSET)

    @classmethod
    def of(cls, info: VcsInfo) -> "V1Vcs":
        return cls(info.branch, info.default_branch)


class FindV1Text(Payload):
    pattern: Annotated[str, Meta(min_length=1)]


class FindV1Files(Payload):
    query: str
    dirs: Literal["true", "false"] | None = None
    type: EntryType | None = None
    limit: Annotated[int, Meta(ge=1)] | None = None


class FindV1Symbols(Payload):
    query: str


class NameV1Path(Payload):
    path: str


class DiffV1Files(Payload):
    mode: Literal["branch", "git"]
    context: Annotated[int, Meta(ge=0)] | None = None


class V1Patch(Payload):
    patch: str


FIND_TEXT: Final = declare("GET", "/find", "find.text", tuple[V1TextMatch, ...], query=FindV1Text)
FIND_FILES: Final = declare("GET", "/find/file", "find.files", tuple[str, ...], query=FindV1Files)
FIND_SYMBOLS: Final = declare(
    "GET", "/find/symbol", "find.symbols", tuple[V1Symbol, ...], query=FindV1Symbols
)
LIST: Final = declare("GET", "/file", "file.list", tuple[V1FileNode, ...], query=NameV1Path)
READ: Final = declare("GET", "/file/content", "file.read", V1FileContent, query=NameV1Path)
STATUS: Final = declare("GET", "/file/status", "file.status", tuple[V1ChangedFile, ...])
VCS: Final = declare("GET", "/vcs", "vcs.get", V1Vcs)
VCS_STATUS: Final = declare("GET", "/vcs/status", "vcs.status", tuple[V1FileStatus, ...])
VCS_DIFF: Final = declare("GET", "/vcs/diff", "vcs.diff", tuple[V1FileDiff, ...], query=DiffV1Files)

VCS_RAW: Final = Endpoint(
    operation_id="v1.vcs.diff.raw",
    method="GET",
    path="/vcs/diff/raw",
    group="v1",
    success=Success("content"),
    errors=VCS_DIFF.errors,
)

ENDPOINTS: Final = (
    FIND_TEXT,
    FIND_FILES,
    FIND_SYMBOLS,
    LIST,
    READ,
    STATUS,
    VCS,
    VCS_STATUS,
    VCS_DIFF,
    VCS_RAW,
)
