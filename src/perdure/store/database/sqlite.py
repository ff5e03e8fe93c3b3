"""SQLite behind ports.Database: one writing connection, group commit, one reading connection.

Jobs that wait together share one COMMIT, on the event loop or off it (`committer`); one that is
likely to be alone does not wait for others. When a job of a shared transaction fails, all jobs run
again, each behind a savepoint, so that only the failing one is rolled back. A future resolves only
after the commit: resolved means durable. A failed COMMIT is never retried; its callers get the
error. The connection stays open: in WAL mode the next commit rewrites and syncs everything after
the last good one.

Jobs are coroutines over an async Transaction that never suspends here, so `drive` can run them to
completion. On a server database they would suspend.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, Self, TypeVar, cast

import apsw

from perdure.core import limits
from perdure.ports import DatabaseError, Row, SqlValue, Transaction
from perdure.store.database import sqlite_connection
from perdure.store.database.committer import (
    Committer,
    CommitTimer,
    Failure,
    LockWait,
    WritePace,
    catch_failure,
)
from perdure.store.database.database_file import DatabaseFile
from perdure.store.database.jobs import (
    Outcome,
    QueuedJob,
    SettledFuture,
    drive,
    fail,
    notify_listener,
)
from perdure.store.database.sqlite_connection import Connection

T = TypeVar("T")

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
            raise sqlite_connection.translate_error(error, self._path) from error
        return self._connection.changes()

    async def fetch(
        self, sql: str, parameters: Mapping[str, SqlValue] | None = None
    ) -> Sequence[Row]:
        try:
            return cast("Sequence[Row]", self._connection.execute(sql, parameters).fetchall())
        except apsw.Error as error:
            raise sqlite_connection.translate_error(error, self._path) from error


class _ReadTransaction(SqliteTransaction):
    async def execute(self, sql: str, parameters: Mapping[str, SqlValue] | None = None) -> int:
        raise DatabaseError(f"a read must not write: {sql}")


class SqliteDatabase:
    """A database file; use as an async context manager.

    `inline` always commits on the loop and never at once, for simulated time: a job that waits can
    be overtaken, which a simulation is to find out. `observe` gets the seconds of each
    commit, in the thread that ran it.
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
        self._reading_writer = _ReadTransaction(self._writer, path)
        self._waiting: list[QueuedJob] = []
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False
        self._data_version = self._version_now()
        self._file = None if path == ":memory:" else DatabaseFile(path)
        self._committer = None if inline or path == ":memory:" else Committer()
        self._commit_timer = CommitTimer(observe)
        self._pace = None if inline else WritePace()
        self._in_use = False
        """Whether a transaction of the writer is open, or the commit thread has it."""
        self._changed_elsewhere = False
        self._version_wanted = False
        """Whether the next transaction looks for commits of other processes."""

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
        loop = asyncio.get_running_loop()
        future = SettledFuture[T](loop=loop)
        self._waiting.append(QueuedJob(job, future, committed))
        is_alone = self._pace is not None and self._pace.is_alone(loop.time())
        if self._idle.is_set():
            self._idle.clear()
            if is_alone:
                self._begin()
                if future.done():
                    return future.result()
            else:
                loop.call_soon(self._begin)
        try:
            return await future
        except asyncio.CancelledError:
            if future.done():
                # Raises what the job raised; a caller must not take it for a mere cancellation.
                future.result()
            raise

    async def read(self, job: Callable[[Transaction], Awaitable[T]]) -> T:
        if self._reader is self._writer:
            return drive(job(self._reading))
        if not self._in_use:
            # The writer has the pages it wrote in its cache; the reader would fetch them again.
            return self._read(self._writer, self._reading_writer, job)
        return self._read(self._reader, self._reading, job)

    def _read(
        self, connection: Connection, tx: Transaction, job: Callable[[Transaction], Awaitable[T]]
    ) -> T:
        try:
            # A failed write leaves the writer with a busy timeout of 0.
            connection.set_busy_timeout(sqlite_connection.BUSY_MILLIS)
            connection.execute("BEGIN")
            try:
                return drive(job(tx))
            finally:
                # SQLite has already ended the transaction when the disk failed.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except apsw.Error as error:
            raise sqlite_connection.translate_error(error, self._path) from error

    async def check_file(self) -> None:
        if self._file is not None:
            self._file.check()

    async def empty_log(self) -> bool:
        if self._file is None:
            return True
        # Like a batch of its own: jobs wait until it is done.
        while not self._idle.is_set():
            await self._idle.wait()
        self._idle.clear()
        self._in_use = True
        done = SettledFuture[Failure | None](loop=asyncio.get_running_loop())
        self._run_off_loop(partial(sqlite_connection.empty_log, self._writer), done.set_result)
        try:
            return await done is None
        finally:
            self._in_use = False
            self._continue()

    async def changed_elsewhere(self) -> bool:
        # While the writer is in use, the next transaction looks, and the next call tells.
        if not self._in_use:
            self._check_other_commits()
        else:
            self._version_wanted = True
        changed, self._changed_elsewhere = self._changed_elsewhere, False
        return changed

    def _check_other_commits(self) -> None:
        now = self._version_now()
        self._version_wanted = False
        self._changed_elsewhere = self._changed_elsewhere or now != self._data_version
        self._data_version = now

    def _version_now(self) -> int:
        # The writer's own commits do not change its data_version; only other processes' do.
        try:
            # Not `connection.pragma`, which would compose and parse the statement for every write.
            ((version,),) = cast("list[tuple[int]]", self._writer.execute(_VERSION).fetchall())
        except apsw.Error as error:
            raise sqlite_connection.translate_error(error, self._path) from error
        return version

    # ---- one shared transaction: begin, run the jobs, commit ------------------------------------

    def _begin(self) -> None:
        self._in_use = True
        batch = self._waiting[: limits.COMMIT_JOBS_MAX]
        del self._waiting[: len(batch)]
        self._lock(partial(self._run, batch))

    def _lock(self, then: Callable[[Failure | None], None], wait: LockWait | None = None) -> None:
        """Begin a transaction that holds the write lock, then call `then`, at once if it is free.

        This process may be stopped at any moment, and its lock stops all others then. So it is not
        held while the loop is busy with something else: a thread only waits until it is free.
        """
        failure = catch_failure(self._try_lock)
        if not isinstance(failure, apsw.BusyError):
            then(failure)
            return
        wait = wait or LockWait(limits.LOCK_WAIT_SECONDS_MAX)
        if wait.is_over:
            self._fail_waiting(failure)
            then(failure)
            return
        # Another process is writing, which may last a disk sync.
        self._run_off_loop(
            partial(self._wait_for_lock, wait), lambda error: self._after_wait(then, wait, error)
        )

    def _try_lock(self) -> None:
        if self._file is not None:
            self._file.require_found()
        self._writer.set_busy_timeout(0)
        self._writer.execute("BEGIN IMMEDIATE")

    def _wait_for_lock(self, wait: LockWait) -> None:
        self._writer.set_busy_timeout(wait.remaining_millis)
        self._writer.execute("BEGIN IMMEDIATE")
        if not wait.is_long:
            self._writer.execute("ROLLBACK")

    def _after_wait(
        self, then: Callable[[Failure | None], None], wait: LockWait, error: Failure | None
    ) -> None:
        if self._writer.in_transaction:
            # Others were quicker each time. Now it is kept.
            then(error)
        elif error is None or isinstance(error, apsw.BusyError):
            self._lock(then, wait)
        else:
            then(error)

    def _fail_waiting(self, failure: Failure) -> None:
        """Fail the jobs behind the one that could not begin: none waits longer than that one."""
        waiting, self._waiting = self._waiting, []
        for queued in waiting:
            fail(queued.future, failure, self._path)

    def _run(self, batch: list[QueuedJob], failure: Failure | None) -> None:
        if failure is None and self._version_wanted:
            failure = catch_failure(self._check_other_commits)
        if failure is not None:
            self._settle(batch, failure)
            return
        for queued in batch:
            self._run_one(queued)
            if queued.error is not None:
                self._rollback()
                self._start_over(batch)
                return
        self._try_commit(batch)

    def _start_over(self, batch: list[QueuedJob]) -> None:
        """After a failure, run each job again behind a savepoint.

        The failed job's caller gets its error after the commit: the cause may be another job of
        the same batch, whose result must be readable by then.
        """
        if len(batch) == 1:
            self._resolve(batch)
            return
        for queued in batch:
            queued.result = queued.error = None
        self._lock(partial(self._run_with_savepoints, batch))

    def _run_with_savepoints(self, batch: list[QueuedJob], failure: Failure | None) -> None:
        if failure is not None:
            self._settle(batch, failure)
            return
        for queued in batch:
            failure = catch_failure(partial(self._run_in_savepoint, queued))
            if failure is not None:
                # The savepoint failed, so this job's changes cannot be undone alone.
                self._settle(batch, failure)
                return
        if all(queued.error is not None for queued in batch):
            self._rollback()
            self._resolve(batch)
        else:
            self._try_commit(batch)

    def _try_commit(self, batch: list[QueuedJob]) -> None:
        self._run_off_loop(
            self._commit,
            lambda error: self._settle(batch, error),
            unless=self._commit_timer.is_quick,
        )

    def _run_one(self, queued: QueuedJob) -> None:
        with Outcome() as outcome:
            queued.result = drive(queued.job(self._writing))
        queued.error = outcome.error

    def _run_in_savepoint(self, queued: QueuedJob) -> None:
        if not self._writer.in_transaction:
            # SQLite rolled back the shared transaction (disk full). No job may run without one.
            queued.error = DatabaseError(_ROLLED_BACK)
            return
        self._writer.execute("SAVEPOINT job")
        self._run_one(queued)
        if self._writer.in_transaction:
            if queued.error is not None:
                self._writer.execute("ROLLBACK TO job")
            self._writer.execute("RELEASE job")

    def _rollback(self) -> None:
        # SQLite may have rolled back already (disk full). Callers get the original error.
        if self._writer.in_transaction:
            catch_failure(lambda: self._writer.execute("ROLLBACK"))

    def _commit(self) -> None:
        self._writer.set_busy_timeout(sqlite_connection.BUSY_MILLIS)
        if not self._writer.in_transaction:
            raise DatabaseError(_ROLLED_BACK)
        with self._commit_timer:
            self._writer.execute("COMMIT")
        # After the commit: what is acknowledged was in the right files when it was stored.
        if self._file is not None:
            self._file.check_commit()

    def _settle(self, batch: list[QueuedJob], failure: Failure | None) -> None:
        if failure is not None:
            self._rollback()
            for queued in batch:
                # A job's own error says more: it may be why the transaction was gone.
                queued.error = queued.error or failure
        self._resolve(batch)

    def _resolve(self, batch: list[QueuedJob]) -> None:
        self._in_use = False
        for queued in batch:
            if queued.error is not None:
                fail(queued.future, queued.error, self._path)
                continue
            notify_listener(queued)
            if not queued.future.done():
                queued.future.set_result(queued.result)
        self._continue()

    def _continue(self) -> None:
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._begin)
        else:
            self._idle.set()

    def _run_off_loop(
        self,
        work: Callable[[], None],
        then: Callable[[Failure | None], None],
        *,
        unless: bool = False,
    ) -> None:
        if self._committer is not None and not unless:
            self._committer.submit(work, then)
        else:
            then(catch_failure(work))
