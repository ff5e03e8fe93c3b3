"""SQLite behind ports.Database: one writing connection, group commit, one reading connection.

Jobs that wait together share one COMMIT, and only the COMMIT leaves the event loop: it runs in a
thread of its own, because it waits for the disk. Everything before it is microseconds. Each job of
a shared transaction has a savepoint, so that a failing one is rolled back alone. A future resolves
only after the commit: resolved means durable.

Jobs are coroutines over an async Transaction that never really suspends here; `_drive` runs them
to their end. The same jobs run against a server database, where they do suspend.
"""

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

import apsw

from perdure.core import limits
from perdure.ports import DatabaseError, Row, SqlValue, Transaction, UniqueViolationError

T = TypeVar("T")
Job = Callable[[Transaction], Awaitable[Any]]

# Earlier ones can corrupt a database that several connections write and checkpoint at once.
SQLITE_VERSION_LEAST: Final = (3, 51, 3)
APPLICATION_ID: Final = 0x50455244
_BUSY_MILLIS: Final = 5_000
_BUSY_TRIES: Final = 12
_PAGE_BYTES: Final = 4_096
_CACHE_KIB: Final = 8_192


class UnsafeSqliteError(DatabaseError):
    def __init__(self, version: str) -> None:
        least = ".".join(map(str, SQLITE_VERSION_LEAST))
        super().__init__(
            f"SQLite {version} has a bug that can corrupt a shared database; {least} or newer is"
            " needed. Remedy: pip install --upgrade apsw (its wheels carry a current SQLite)."
        )


def require_safe_version(version: str) -> None:
    """Refuse SQLite libraries with the WAL-reset bug."""
    if tuple(int(part) for part in version.split(".")[:3]) < SQLITE_VERSION_LEAST:
        raise UnsafeSqliteError(version)


def connect(path: str) -> apsw.Connection:
    """A connection with the settings that our promises rest on."""
    require_safe_version(apsw.sqlite_lib_version())
    try:
        connection = apsw.Connection(path)
        connection.set_busy_timeout(_BUSY_MILLIS)
        connection.pragma("page_size", _PAGE_BYTES)
        connection.pragma("journal_mode", "wal")
        # An acknowledged prompt must survive a power loss, not only a crash.
        connection.pragma("synchronous", "full")
        connection.pragma("foreign_keys", True)
        connection.pragma("cache_size", -_CACHE_KIB)
    except apsw.Error as error:
        raise _translated(error, path) from error
    return connection


class SqliteTransaction:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    async def execute(self, sql: str, parameters: Mapping[str, SqlValue] | None = None) -> int:
        self._connection.execute(sql, parameters)
        return self._connection.changes()

    async def fetch(
        self, sql: str, parameters: Mapping[str, SqlValue] | None = None
    ) -> Sequence[Row]:
        return cast("Sequence[Row]", self._connection.execute(sql, parameters).fetchall())


@dataclass(slots=True)
class _Waiting:
    job: Job
    future: asyncio.Future[Any]
    committed: Callable[[Any], None] | None
    result: Any = None


class SqliteDatabase:
    """Use as an async context manager. `inline` commits on the loop, for simulated time."""

    def __init__(self, path: str, *, inline: bool = False) -> None:
        self._path = path
        self._writer = connect(path)
        # An in-memory database is private to its connection, so it is read through the writer.
        self._reader = self._writer if path == ":memory:" else connect(path)
        self._reader.pragma("query_only", path != ":memory:")
        self._writing = SqliteTransaction(self._writer)
        self._reading = SqliteTransaction(self._reader)
        self._waiting: list[_Waiting] = []
        self._busy = False
        self._committer = None if inline or path == ":memory:" else _Committer()
        self._data_version = self._version_now()
        self._foreign = False
        self.commits = 0

    async def __aenter__(self) -> "SqliteDatabase":
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        while self._busy or self._waiting:
            await asyncio.sleep(0)
        if self._committer is not None:
            self._committer.stop()
        if self._reader is not self._writer:
            self._reader.close()
        self._writer.close()

    async def write(
        self,
        job: Callable[[Transaction], Awaitable[T]],
        *,
        committed: Callable[[T], None] | None = None,
    ) -> T:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(job, future, committed))
        if not self._busy:
            self._busy = True
            asyncio.get_running_loop().call_soon(self._begin)
        # Shielded: cancelling the caller must not turn a committed write into an unknown one.
        return await asyncio.shield(future)

    async def read(self, job: Callable[[Transaction], Awaitable[T]]) -> T:
        if self._reader is self._writer:
            return _drive(job(self._reading))
        try:
            self._reader.execute("BEGIN")
            try:
                return _drive(job(self._reading))
            finally:
                self._reader.execute("COMMIT")
        except apsw.Error as error:
            raise _translated(error, self._path) from error

    async def changed_elsewhere(self) -> bool:
        # While a commit runs, the writer belongs to the other thread; `_run` looks instead.
        if not self._busy:
            self._look_for_foreign_commits()
        changed, self._foreign = self._foreign, False
        return changed

    def _look_for_foreign_commits(self) -> None:
        now = self._version_now()
        self._foreign = self._foreign or now != self._data_version
        self._data_version = now

    def _version_now(self) -> int:
        # The writer's own commits do not move its data_version: only other processes' do.
        return cast("int", self._writer.pragma("data_version"))

    # ---- one shared transaction: begin, run the jobs, commit ------------------------------------

    def _begin(self) -> None:
        batch = self._waiting[: limits.COMMIT_JOBS_MAX]
        del self._waiting[: len(batch)]
        if not batch:
            self._busy = False
            return
        try:
            self._writer.set_busy_timeout(0)
            self._writer.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            # Another process is writing. Its turn may last a disk sync: wait off the loop.
            self._off_loop(self._begin_patiently, lambda error: self._run(batch, error))
        except apsw.Error as error:
            self._run(batch, error)
        else:
            self._run(batch, None)

    def _begin_patiently(self) -> None:
        self._writer.set_busy_timeout(_BUSY_MILLIS)
        for attempt in range(_BUSY_TRIES):
            try:
                self._writer.execute("BEGIN IMMEDIATE")
            except apsw.BusyError:
                if attempt == _BUSY_TRIES - 1:
                    raise
            else:
                return

    def _run(self, batch: list[_Waiting], failure: BaseException | None) -> None:
        if failure is not None:
            self._settle(batch, failure)
            return
        self._look_for_foreign_commits()
        kept: list[_Waiting] = []
        for waiting in batch:
            if self._run_one(waiting, alone=len(batch) == 1):
                kept.append(waiting)
        if not kept:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            self._continue()
            return
        self._off_loop(self._commit, lambda error: self._settle(kept, error))

    def _run_one(self, waiting: _Waiting, *, alone: bool) -> bool:
        """Whether the job succeeded. A failed one leaves nothing behind and is told so."""
        if not alone:
            self._writer.execute("SAVEPOINT job")
        with _Outcome() as outcome:
            waiting.result = _drive(waiting.job(self._writing))
        # SQLite may have rolled everything back by itself (disk full); `_commit` then refuses.
        if outcome.error is not None:
            if not alone and self._writer.in_transaction:
                self._writer.execute("ROLLBACK TO job")
            _fail(waiting.future, outcome.error, self._path)
        if not alone and self._writer.in_transaction:
            self._writer.execute("RELEASE job")
        return outcome.error is None

    def _commit(self) -> None:
        self._writer.set_busy_timeout(_BUSY_MILLIS)
        if not self._writer.in_transaction:
            raise DatabaseError("the transaction was rolled back by the database")
        self._writer.execute("COMMIT")

    def _settle(self, batch: list[_Waiting], failure: BaseException | None) -> None:
        if failure is None:
            self.commits += 1
            for waiting in batch:
                if waiting.committed is not None:
                    waiting.committed(waiting.result)
                if not waiting.future.done():
                    waiting.future.set_result(waiting.result)
        else:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            for waiting in batch:
                _fail(waiting.future, failure, self._path)
        self._continue()

    def _continue(self) -> None:
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._begin)
        else:
            self._busy = False

    def _off_loop(
        self, work: Callable[[], None], then: Callable[[BaseException | None], None]
    ) -> None:
        if self._committer is not None:
            self._committer.submit(work, then)
            return
        try:
            work()
        except (apsw.Error, DatabaseError) as error:
            then(error)
        else:
            then(None)


class _Outcome:
    """Takes whatever a job raises, to hand it to whoever waits for that job."""

    error: BaseException | None = None

    def __enter__(self) -> "_Outcome":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        self.error = error
        return True


class _Committer:
    """The thread that waits for the disk."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[
            tuple[
                asyncio.AbstractEventLoop,
                Callable[[], None],
                Callable[[BaseException | None], None],
            ]
            | None
        ] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="perdure-commit", daemon=True)
        self._thread.start()

    def submit(
        self, work: Callable[[], None], then: Callable[[BaseException | None], None]
    ) -> None:
        self._queue.put((asyncio.get_running_loop(), work, then))

    def stop(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            loop, work, then = item
            try:
                work()
            except (apsw.Error, DatabaseError) as error:
                loop.call_soon_threadsafe(then, error)
            else:
                loop.call_soon_threadsafe(then, None)


def _drive(job: Awaitable[T]) -> T:
    """Run a coroutine that never suspends to its end."""
    step = job.__await__()
    try:
        next(step)
    except StopIteration as done:
        return done.value
    raise AssertionError("a database job may await nothing but its own transaction")


def _fail(future: asyncio.Future[Any], error: BaseException, path: str) -> None:
    if future.done():
        return
    if isinstance(error, apsw.Error):
        translated = _translated(error, path)
        translated.__cause__ = error
        future.set_exception(translated)
    else:
        future.set_exception(error)
    # A caller that was cancelled meanwhile will not look: that is no unhandled error.
    future.exception()


def _translated(error: apsw.Error, path: str) -> DatabaseError:
    match error:
        case apsw.ConstraintError():
            return UniqueViolationError(str(error))
        case apsw.FullError():
            return DatabaseError(f"the disk that holds {path} is full: free some space and go on")
        case apsw.ReadOnlyError() | apsw.CantOpenError():
            return DatabaseError(f"cannot write {path}: {error}. Check its owner and permissions.")
        case apsw.NotADBError() | apsw.CorruptError():
            return DatabaseError(f"{path} is damaged or no SQLite database: {error}")
        case apsw.BusyError():
            return DatabaseError(f"{path} stayed locked by another process: {error}")
        case _:
            return DatabaseError(f"{path}: {error}")
