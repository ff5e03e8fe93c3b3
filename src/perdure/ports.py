"""Everything this program can do to the world, as protocols. One page.

Adapters live in `host/` and `store/database/`; `runtime/runtime.py` joins them. Code above this
line of the layers takes what it needs from here and never reaches past it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from perdure.core.job import DetachedProcess, Sighting
from perdure.core.permission import Parts
from perdure.llm.transport import HttpTransport
from perdure.schema.codec import JsonObject
from perdure.schema.credential import StoredCredential
from perdure.schema.ids import EventID, MessageID, PermissionID, SessionID
from perdure.schema.permission import PermissionSource
from perdure.schema.pty import PtySize
from perdure.schema.question import Answers, Question, QuestionSource
from perdure.schema.value import Value

__all__ = [
    "Chance",
    "Clock",
    "CredentialStore",
    "CredentialStoreError",
    "Database",
    "DatabaseError",
    "DetachedCommand",
    "DetachedProcesses",
    "FileStat",
    "Filesystem",
    "HeldProcess",
    "HttpTransport",
    "IdSource",
    "Neighbours",
    "OutputSink",
    "PermissionAsk",
    "PermissionBlockedError",
    "PermissionCorrectedError",
    "PermissionDeclinedError",
    "PermissionDesk",
    "PipedProcess",
    "PipedProcesses",
    "ProcessResult",
    "ProcessRunner",
    "QuestionAsk",
    "QuestionBlockedError",
    "QuestionDesk",
    "QuestionRejectedError",
    "Row",
    "SpoolingRunner",
    "SqlValue",
    "Terminal",
    "TerminalHost",
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


class Chance(Protocol):
    """Where waits are spread. Nothing that is kept depends on it."""

    def random(self) -> float:
        """A number of [0, 1)."""
        ...


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
    async def append(self, path: str, data: bytes) -> None:
        """Add to the end of a file that is there."""
        ...

    async def make_directories(self, path: str) -> None: ...
    async def remove(self, path: str) -> None: ...
    def beneath(self, root: str) -> "Filesystem":
        """The part of the disk below the canonical directory `root`, without links.

        A path that has a link in it, whoever put it there and whenever, fails with ELOOP, and one
        that is not below `root` with EXDEV; nothing is touched then. `real_path` works as before.
        """
        ...


class ProcessResult(Value, kw_only=True):
    exit_code: int | None
    """None when it was ended because its time was up."""
    output: bytes
    """stdout and stderr as they came, cut at the asked bound."""
    truncated: bool
    timed_out: bool
    left_running: bool = False
    """Whether something that it started was still there at its end, and had to be ended too."""


class OutputSink(Protocol):
    async def write(self, data: bytes) -> None:
        """Take what was printed next. The child is slowed down to what this can take."""
        ...


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


class SpoolingRunner(ProcessRunner, Protocol):
    async def run_into(
        self,
        sink: OutputSink,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float,
    ) -> ProcessResult:
        """As `run`, with stdout and stderr going to `sink` as they come and not into the result.

        When this raises because it was cancelled, the sink has had all that was printed.
        """
        ...


class PipedProcess(Protocol):
    """A program that stays, and is talked with through its input and output."""

    @property
    def over(self) -> bool: ...
    def send(self, data: bytes) -> bool:
        """Never waits; whether it was taken. It is not, once it is over or too much is unread."""
        ...

    def kill(self) -> None:
        """End it and all that it started, now."""
        ...

    async def gone(self) -> None:
        """Wait until it has ended and nothing of it is left to the system."""
        ...


class PipedProcesses(Protocol):
    async def start(
        self,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str],
        heard: Callable[[bytes], None],
        ended: Callable[[], None],
    ) -> PipedProcess:
        """In a process group of its own; what it says on stderr is dropped.

        `heard` takes what it prints, `ended` is called once when it says no more; neither waits.
        Raises OSError when it cannot start.
        """
        ...


class DetachedCommand(Value, kw_only=True):
    shell: str
    command: str
    directory: str
    environment: Mapping[str, str] | None
    """None is that of this process."""
    output: str
    """Where it prints to; the file must not be there."""


class HeldProcess(Protocol):
    """A process that waits for our word, and is gone without having done anything if we die."""

    @property
    def process(self) -> DetachedProcess: ...
    def release(self) -> None:
        """Let it begin."""
        ...

    async def abandon(self) -> None:
        """End it before it has begun, with its output file."""
        ...


class DetachedProcesses(Protocol):
    """Commands that outlive this process. How one ended can still be seen long after it did."""

    async def start(self, command: DetachedCommand) -> HeldProcess:
        """In a process group of its own, with no input. Raises OSError when it cannot start."""
        ...

    def look(self, process: DetachedProcess) -> Sighting:
        """Another process with the number of one that is gone is not taken for it."""
        ...

    def terminate(self, process: DetachedProcess) -> None:
        """Ask it and all that it started to end; nothing when it is gone."""
        ...

    async def kill(self, process: DetachedProcess) -> None:
        """End it and all that it started, also what left its group and still prints to its file."""
        ...

    async def clean(self, process: DetachedProcess, *, output_bytes_max: int) -> None:
        """Cut its output file, and remove whatever else it left beside it."""
        ...


class Terminal(Protocol):
    """A program with a controlling terminal, and our end of it."""

    @property
    def pid(self) -> int: ...
    async def run(self) -> int:
        """Wait for its end; its exit code. Awaited once; cancelling it ends the program."""
        ...

    async def write(self, data: bytes) -> None:
        """Type; waits while too much of it is unread."""
        ...

    def resize(self, size: PtySize) -> None: ...
    async def end(self) -> None:
        """Hang up, then kill; returns when it is over."""
        ...

    def kill(self) -> None:
        """End everything that runs in the terminal, now."""
        ...


class TerminalHost(Protocol):
    async def open(
        self,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str],
        size: PtySize,
        heard: Callable[[str], None],
    ) -> Terminal:
        """Start a program, whose path is absolute; `heard` takes what it prints, and never waits.

        Raises OSError when it cannot start.
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
    protected: bool = False
    """Only a person may allow it, each time; see core.permission."""
    parts: Parts | None = None
    above: tuple[str, ...] = ()
    """The agents of those who called this Session; what they may not do, it may not."""
    refine: "Callable[[], PermissionAsk] | None" = None
    """The same in more detail, made only when rules tell one resource from another."""


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


class CredentialStoreError(Exception):
    """Credentials cannot be read or kept; the message names the file and the remedy."""


class CredentialStore(Protocol):
    """The credentials of this installation, one for each integration. Methods may block shortly."""

    def look(self) -> Mapping[str, StoredCredential]:
        """What is stored now, by integration; the very same object while nothing changes.

        Also sees what another process stored. Raises CredentialStoreError.
        """
        ...

    def put(self, credential: StoredCredential, *, instead_of: StoredCredential | None) -> bool:
        """Store it as its integration's only one, durably.

        With `instead_of`, only if exactly that is stored; whether it was. Raises as `look`.
        """
        ...

    def remove(self, credential_id: str) -> bool:
        """Forget it; whether there was one. Raises as `look`."""
        ...

    def renewing(self, integration_id: str) -> AbstractContextManager[bool]:
        """Try to be the one process that renews a login; whether this is the one."""
        ...
