"""Everything this program can do to the world, as protocols. One page.

Adapters live in `host/` and `store/database/`; `runtime/runtime.py` joins them. Code above this
line of the layers takes what it needs from here and never reaches past it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from perdure.llm.transport import HttpTransport
from perdure.schema.codec import JsonObject
from perdure.schema.ids import EventID, MessageID, PermissionID, SessionID
from perdure.schema.permission import PermissionSource
from perdure.schema.question import Answers, Question, QuestionSource
from perdure.schema.value import Value

__all__ = [
    "Clock",
    "Database",
    "DatabaseError",
    "FileStat",
    "Filesystem",
    "HttpTransport",
    "IdSource",
    "Neighbours",
    "PermissionAsk",
    "PermissionBlockedError",
    "PermissionCorrectedError",
    "PermissionDeclinedError",
    "PermissionDesk",
    "ProcessResult",
    "ProcessRunner",
    "QuestionAsk",
    "QuestionBlockedError",
    "QuestionDesk",
    "QuestionRejectedError",
    "Row",
    "SqlValue",
    "Transaction",
    "UniqueViolationError",
    "WebFetchError",
    "WebPage",
    "WebPages",
    "WebRequest",
]

T = TypeVar("T")

SqlValue = str | int | float | bytes | None
Row = tuple[SqlValue, ...]


class Clock(Protocol):
    def now_millis(self) -> int:
        """Wall-clock milliseconds since the epoch: for records, never for order or waiting."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class IdSource(Protocol):
    def session(self) -> SessionID: ...
    def message(self) -> MessageID: ...
    def event(self) -> EventID: ...
    def permission(self) -> PermissionID: ...
    def named(self, prefix: str) -> str:
        """A fresh id of any other kind, such as a managed file."""
        ...


class DatabaseError(Exception):
    """The store failed: disk full, I/O error, not a database. Nothing was committed."""


class UniqueViolationError(DatabaseError):
    """A row that must be the only one already is."""


class Transaction(Protocol):
    """SQL with `:named` parameters. Valid only inside the job it was given to."""

    async def execute(self, sql: str, parameters: Mapping[str, SqlValue] | None = None) -> int:
        """Run one statement; how many rows it changed."""
        ...

    async def fetch(
        self, sql: str, parameters: Mapping[str, SqlValue] | None = None
    ) -> Sequence[Row]: ...


class Database(Protocol):
    async def write(
        self,
        job: Callable[[Transaction], Awaitable[T]],
        *,
        committed: Callable[[T], None] | None = None,
    ) -> T:
        """Run `job` in a transaction of its own; durable when this returns.

        Jobs run one after the other; waiting ones may share a commit. A job that raises is rolled
        back alone. A job may be run again from its start, when what it did before was rolled back:
        it must touch nothing but its transaction. Cancelling the caller does not undo a job that
        has been accepted. `committed` is called with the result right after the commit, in commit
        order, whether or not the caller is still there; it must neither raise nor wait.
        """
        ...

    async def read(self, job: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `job` on one consistent view, without waiting for writers."""
        ...

    async def changed_elsewhere(self) -> bool:
        """Whether another process has committed since this was last asked."""
        ...


class Neighbours(Protocol):
    """Which processes that share this store are alive. Exact: a killed one is gone at once."""

    @property
    def me(self) -> str: ...
    def alive(self, process: str) -> bool: ...
    def others(self) -> frozenset[str]:
        """The other processes that are alive now."""
        ...


class FileStat(Value, kw_only=True):
    is_directory: bool
    is_file: bool
    size: int
    mode: int
    modified_ns: int


class Filesystem(Protocol):
    """Paths are absolute. Failures are the standard OSError subclasses."""

    async def stat(self, path: str) -> FileStat: ...
    async def real_path(self, path: str) -> str:
        """Every symbolic link resolved; the last parts may not exist."""
        ...

    async def read(self, path: str, *, offset: int = 0, bytes_max: int | None = None) -> bytes: ...
    async def list(self, path: str) -> Sequence[tuple[str, FileStat]]:
        """Direct children by name, in name order; a link is described by its target."""
        ...

    async def write_atomic(self, path: str, data: bytes) -> None:
        """Replace or create `path` in one step; an existing file's mode is kept."""
        ...

    async def create_exclusive(self, path: str, data: bytes, *, mode: int = 0o600) -> None: ...
    async def make_directories(self, path: str) -> None: ...
    async def remove(self, path: str) -> None: ...


class ProcessResult(Value, kw_only=True):
    exit_code: int | None
    """None when it was ended because its time was up."""
    output: bytes
    """stdout and stderr as they came, cut at the asked bound."""
    truncated: bool
    timed_out: bool


class ProcessRunner(Protocol):
    async def run(
        self,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float,
        output_bytes_max: int,
        separate_errors: bool = False,
    ) -> ProcessResult:
        """Run in a process group of its own, with no input; the group is gone when this returns.

        With `separate_errors` stderr is discarded. Cancelling ends the group: terminate, then kill.
        Raises FileNotFoundError or PermissionError when it cannot start.
        """
        ...


class PermissionAsk(Value, kw_only=True):
    """What a tool wants to do, for whom."""

    session_id: SessionID
    agent: str
    action: str
    resources: tuple[str, ...]
    save: tuple[str, ...] = ()
    metadata: JsonObject | None = None
    source: PermissionSource | None = None


class PermissionBlockedError(Exception):
    """A rule says no. The model is told which action and resource."""


class PermissionCorrectedError(Exception):
    """A person said no and told the model what to do instead; the message is that feedback."""


class PermissionDeclinedError(Exception):
    """A person said no. The run stops."""


class PermissionDesk(Protocol):
    async def require(self, ask: PermissionAsk) -> None:
        """Return when allowed; else one of the Permission errors. May wait for a person."""
        ...


class QuestionAsk(Value, kw_only=True):
    """What a tool wants to know, for whom."""

    session_id: SessionID
    questions: tuple[Question, ...]
    tool: QuestionSource | None = None


class QuestionBlockedError(Exception):
    """Nobody can be asked. The model is told why."""


class QuestionRejectedError(Exception):
    """A person would not answer. The run stops."""


class QuestionDesk(Protocol):
    async def ask(self, ask: QuestionAsk) -> Answers:
        """Wait for a person's answers, one list for each question; else a Question error."""
        ...


class WebRequest(Value, kw_only=True):
    url: str
    accept: str = "*/*"
    allowed_hosts: tuple[str, ...] = ()
    """Hosts of the user's own network that may be reached; see core.web_address."""
    seconds_max: float
    """For everything: finding, connecting, every redirect, the last byte."""


class WebPage(Value, kw_only=True):
    url: str
    """Where it was in the end; the asked URL itself, unless that redirected."""
    content_type: str
    """The header as it came, or nothing."""
    body: bytes


class WebFetchError(Exception):
    """There is no page, for a reason that the model may read."""


class WebPages(Protocol):
    async def fetch(self, request: WebRequest) -> WebPage:
        """GET a page of the public internet, without credentials; raises WebFetchError.

        No address that is not global is ever connected to, whatever the URL, a name or a redirect
        leads to, unless its host is allowed.
        """
        ...
