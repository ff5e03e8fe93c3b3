"""SQLite behind ports.Database: one writing connection, group commit, one reading connection.

Jobs that wait together share one COMMIT, on the event loop or off it (`committer`). When a job of
a shared transaction fails, all of them run again, each behind a savepoint, so that the failing one
is rolled back alone. A future resolves only after the commit: resolved means durable. A COMMIT that
fails is never tried again: its callers are told. The connection stays, since in WAL mode the next
commit writes anew, and syncs, all that follows the last good one.

Jobs are coroutines over an async Transaction that never really suspends here; `_drive` runs them
to their end. The same jobs run against a server database, where they do suspend.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Self, TypeVar, cast

import apsw

from perdure.core import limits
from perdure.ports import DatabaseError, Row, SqlValue, Transaction
from perdure.schema.value import State
from perdure.store.database import sqlite_connection
from perdure.store.database.committer import Committer, CommitTimer, Failure, failure_of
from perdure.store.database.sqlite_connection import Connection

T = TypeVar("T")
Job = Callable[[Transaction], Awaitable[Any]]

_BUSY_TRIES: Final = 12
_VERSION: Final = "PRAGMA data_version"
_ROLLED_BACK: Final = "the transaction was rolled back by the database"


class SqliteTransaction:
    def __init__(self, connection: Connection, path: str) -> None:
        self._connection = connection
        self._path = path

    async def execute(self, sql: str, parameters: Mapping[str, SqlValue] | None = None) -> int:
        try:
            self._connection.execute(sql, parameters)
        except apsw.Error as error:
            raise sqlite_connection.translated(error, self._path) from error
        return self._connection.changes()

    async def fetch(
        self, sql: str, parameters: Mapping[str, SqlValue] | None = None
    ) -> Sequence[Row]:
        try:
            return cast("Sequence[Row]", self._connection.execute(sql, parameters).fetchall())
        except apsw.Error as error:
            raise sqlite_connection.translated(error, self._path) from error


class _ReadTransaction(SqliteTransaction):
    async def execute(self, sql: str, parameters: Mapping[str, SqlValue] | None = None) -> int:
        raise DatabaseError(f"a read must not write: {sql}")


class _Waiting(State):
    job: Job
    future: asyncio.Future[Any]
    committed: Callable[[Any], None] | None
    result: Any = None
    error: BaseException | None = None


class SqliteDatabase:
    """Use as an async context manager. `inline` commits on the loop, for simulated time.

    `observe` is told how many seconds each commit took, in whichever thread it ran.
    """

    def __init__(
        self,
        path: str,
        *,
        inline: bool = False,
        observe: Callable[[float], None] | None = None,
    ) -> None:
        self._path = path
        self._writer = sqlite_connection.connect(path)
        # An in-memory database is private to its connection, so it is read through the writer.
        self._reader = self._writer if path == ":memory:" else sqlite_connection.connect(path)
        self._reader.pragma("query_only", path != ":memory:")
        self._writing = SqliteTransaction(self._writer, path)
        self._reading = _ReadTransaction(self._reader, path)
        self._reading_between = _ReadTransaction(self._writer, path)
        self._waiting: list[_Waiting] = []
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False
        self._data_version = self._version_now()
        self._committer = None if inline or path == ":memory:" else Committer()
        self._pace = CommitTimer(observe)
        self._foreign = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._closed = True
        await self._idle.wait()
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
        if self._closed:
            raise DatabaseError(f"{self._path} is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(job, future, committed))
        if self._idle.is_set():
            self._idle.clear()
            asyncio.get_running_loop().call_soon(self._begin)
        # A caller that is cancelled cancels this future and no more: the job is accepted, it runs
        # and commits, and whoever listens hears of it.
        return await future

    async def read(self, job: Callable[[Transaction], Awaitable[T]]) -> T:
        if self._reader is self._writer:
            return _drive(job(self._reading))
        if self._idle.is_set():
            # It has the pages that it wrote; the other one fetches them anew after every commit.
            return self._read(self._writer, self._reading_between, job)
        return self._read(self._reader, self._reading, job)

    def _read(
        self, connection: Connection, tx: Transaction, job: Callable[[Transaction], Awaitable[T]]
    ) -> T:
        try:
            # A write that failed leaves the writer impatient.
            connection.set_busy_timeout(sqlite_connection.BUSY_MILLIS)
            connection.execute("BEGIN")
            try:
                return _drive(job(tx))
            finally:
                # SQLite has ended it already when the disk failed. Nothing it did may stay.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except apsw.Error as error:
            raise sqlite_connection.translated(error, self._path) from error

    async def changed_elsewhere(self) -> bool:
        # While a commit runs, the writer belongs to the other thread; `_run` looks instead.
        if self._idle.is_set():
            self._look_for_foreign_commits()
        changed, self._foreign = self._foreign, False
        return changed

    def _look_for_foreign_commits(self) -> None:
        now = self._version_now()
        self._foreign = self._foreign or now != self._data_version
        self._data_version = now

    def _version_now(self) -> int:
        # The writer's own commits do not move its data_version: only other processes' do.
        try:
            # A statement of its own: `pragma` would compose and parse it for every write.
            ((version,),) = cast("list[tuple[int]]", self._writer.execute(_VERSION).fetchall())
        except apsw.Error as error:
            raise sqlite_connection.translated(error, self._path) from error
        return version

    # ---- one shared transaction: begin, run the jobs, commit ------------------------------------

    def _begin(self) -> None:
        batch = self._waiting[: limits.COMMIT_JOBS_MAX]
        del self._waiting[: len(batch)]
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
        self._writer.set_busy_timeout(sqlite_connection.BUSY_MILLIS)
        for attempt in range(_BUSY_TRIES):
            try:
                self._writer.execute("BEGIN IMMEDIATE")
            except apsw.BusyError:
                if attempt == _BUSY_TRIES - 1:
                    raise
            else:
                return

    def _run(self, batch: list[_Waiting], failure: Failure | None) -> None:
        failure = failure or failure_of(self._look_for_foreign_commits)
        if failure is not None:
            self._settle(batch, failure)
            return
        for waiting in batch:
            self._run_one(waiting)
            if waiting.error is not None:
                self._rollback()
                self._start_over(batch)
                return
        self._try_commit(batch)

    def _start_over(self, batch: list[_Waiting]) -> None:
        """One of them failed: each again, behind a savepoint, so that it leaves nothing behind.

        Its caller is told after the commit: what it failed on may be another job of the same
        commit, and must then be there to be read.
        """
        if len(batch) == 1:
            self._answer(batch)
            return
        for waiting in batch:
            waiting.result = waiting.error = None
        self._off_loop(self._begin_patiently, lambda error: self._run_fenced(batch, error))

    def _run_fenced(self, batch: list[_Waiting], failure: Failure | None) -> None:
        failure = failure or failure_of(self._look_for_foreign_commits)
        if failure is not None:
            self._settle(batch, failure)
            return
        for waiting in batch:
            failure = failure_of(partial(self._run_one_fenced, waiting))
            if failure is not None:
                # A fence that does not hold: what its job did could not be told from the rest.
                self._settle(batch, failure)
                return
        if all(waiting.error is not None for waiting in batch):
            self._rollback()
            self._answer(batch)
        else:
            self._try_commit(batch)

    def _try_commit(self, batch: list[_Waiting]) -> None:
        self._off_loop(
            self._commit, lambda error: self._settle(batch, error), here=self._pace.is_quick
        )

    def _run_one(self, waiting: _Waiting) -> None:
        with _Outcome() as outcome:
            waiting.result = _drive(waiting.job(self._writing))
        waiting.error = outcome.error

    def _run_one_fenced(self, waiting: _Waiting) -> None:
        if not self._writer.in_transaction:
            # SQLite gave up the shared transaction (disk full). Nothing may run outside of one.
            waiting.error = DatabaseError(_ROLLED_BACK)
            return
        self._writer.execute("SAVEPOINT job")
        self._run_one(waiting)
        if self._writer.in_transaction:
            if waiting.error is not None:
                self._writer.execute("ROLLBACK TO job")
            self._writer.execute("RELEASE job")

    def _rollback(self) -> None:
        # SQLite may have done it already (disk full). Callers are told of what led here.
        if self._writer.in_transaction:
            failure_of(lambda: self._writer.execute("ROLLBACK"))

    def _commit(self) -> None:
        self._writer.set_busy_timeout(sqlite_connection.BUSY_MILLIS)
        if not self._writer.in_transaction:
            raise DatabaseError(_ROLLED_BACK)
        with self._pace:
            self._writer.execute("COMMIT")

    def _settle(self, batch: list[_Waiting], failure: Failure | None) -> None:
        if failure is not None:
            self._rollback()
            for waiting in batch:
                # A job's own failure says more: it may be why there was nothing left to commit.
                waiting.error = waiting.error or failure
        self._answer(batch)

    def _answer(self, batch: list[_Waiting]) -> None:
        for waiting in batch:
            if waiting.error is not None:
                _fail(waiting.future, waiting.error, self._path)
                continue
            _announce(waiting)
            if not waiting.future.done():
                waiting.future.set_result(waiting.result)
        self._continue()

    def _continue(self) -> None:
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._begin)
        else:
            self._idle.set()

    def _off_loop(
        self,
        work: Callable[[], None],
        then: Callable[[Failure | None], None],
        *,
        here: bool = False,
    ) -> None:
        if self._committer is not None and not here:
            self._committer.submit(work, then)
        else:
            then(failure_of(work))


class _Outcome:
    """Takes whatever a job raises, to hand it to whoever waits for that job."""

    error: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        self.error = error
        return True


def _announce(waiting: _Waiting) -> None:
    if waiting.committed is None:
        return
    with _Outcome() as outcome:
        waiting.committed(waiting.result)
    if outcome.error is not None:
        # A listener's defect is reported. It undoes no commit and holds up nobody else's.
        context = {"message": "a commit listener failed", "exception": outcome.error}
        asyncio.get_running_loop().call_exception_handler(context)


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
        translated = sqlite_connection.translated(error, path)
        translated.__cause__ = error
        future.set_exception(translated)
    else:
        future.set_exception(error)
    # A caller that was cancelled meanwhile will not look: that is no unhandled error.
    future.exception()
