"""The database behind the log: shared commits, isolated jobs, and nothing lost when it fails."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.ports import DatabaseError, Row, Transaction, UniqueViolationError
from perdure.store import migrate
from perdure.store.database import sqlite_connection
from perdure.store.database.sqlite import SqliteDatabase
from tests.fixtures import child, end, line

WRITER = "tests.contract.store.writer"


@pytest.fixture(params=["file", "memory", "inline file"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    kind = str(request.param)
    path = ":memory:" if kind == "memory" else str(tmp_path / "p.db")
    async with SqliteDatabase(path, inline=kind == "inline file") as database:
        await database.write(table)
        yield database


async def table(tx: Transaction) -> None:
    await tx.execute("CREATE TABLE item (name TEXT NOT NULL UNIQUE, size INTEGER)")


async def insert(tx: Transaction, name: str) -> int:
    return await tx.execute("INSERT INTO item (name) VALUES (:name)", {"name": name})


async def names(database: SqliteDatabase) -> list[object]:
    found = await database.read(lambda tx: tx.fetch("SELECT name FROM item ORDER BY rowid"))
    return [row[0] for row in found]


async def test_writers_that_wait_together_share_commits(tmp_path: Path) -> None:
    commits: list[float] = []
    async with SqliteDatabase(str(tmp_path / "p.db"), observe=commits.append) as database:
        await database.write(table)
        before = len(commits)
        async with asyncio.TaskGroup() as group:
            for number in range(32):
                group.create_task(database.write(lambda tx, n=number: insert(tx, f"{n:02}")))
        assert len(commits) - before <= 2
        assert await names(database) == [f"{number:02}" for number in range(32)]


async def test_each_of_many_writers_is_rolled_back_alone(database: SqliteDatabase) -> None:
    async def job(tx: Transaction, number: int) -> int:
        await insert(tx, f"{number}")
        if number % 3 == 0:
            raise ValueError(number)
        return number

    outcomes = await asyncio.gather(
        *(database.write(lambda tx, n=number: job(tx, n)) for number in range(32)),
        return_exceptions=True,
    )
    kept = [str(number) for number in range(32) if number % 3]
    assert [str(outcome) for outcome in outcomes if isinstance(outcome, int)] == kept
    assert await names(database) == kept


async def test_a_lone_failing_job_leaves_nothing_and_the_next_one_works(
    database: SqliteDatabase,
) -> None:
    async def job(tx: Transaction) -> None:
        await insert(tx, "gone")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await database.write(job)
    await database.write(lambda tx: insert(tx, "kept"))
    assert await names(database) == ["kept"]


async def test_a_job_can_tell_a_duplicate_and_go_on(database: SqliteDatabase) -> None:
    async def job(tx: Transaction) -> str:
        await insert(tx, "one")
        try:
            await insert(tx, "one")
        except UniqueViolationError:
            await insert(tx, "two")
            return "told"
        return "not told"

    assert await database.write(job) == "told"
    assert await names(database) == ["one", "two"]


async def test_results_are_announced_in_commit_order_before_the_caller_goes_on(
    database: SqliteDatabase,
) -> None:
    heard: list[int] = []
    resumed: list[int] = []

    async def write(number: int) -> None:
        await database.write(
            lambda tx: insert(tx, str(number)), committed=lambda _: heard.append(number)
        )
        assert number in heard
        resumed.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(write(number))
    assert heard == list(range(20))
    assert resumed == heard


async def test_a_job_whose_caller_left_is_still_done_and_announced(
    database: SqliteDatabase,
) -> None:
    done = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(
            database.write(lambda tx: insert(tx, "kept"), committed=lambda _: done.set())
        )
        await asyncio.sleep(0)
        task.cancel()
    async with asyncio.timeout(5):
        await done.wait()
    assert await names(database) == ["kept"]


async def test_a_read_has_one_view_whatever_is_committed_meanwhile(tmp_path: Path) -> None:
    path = str(tmp_path / "p.db")
    async with SqliteDatabase(path) as database:
        await database.write(table)
        other = sqlite_connection.connect(path)

        async def job(tx: Transaction) -> list[Sequence[Row]]:
            before = await tx.fetch("SELECT name FROM item")
            other.execute("INSERT INTO item (name) VALUES ('meanwhile')")
            return [before, await tx.fetch("SELECT name FROM item")]

        assert await database.read(job) == [[], []]
        assert await names(database) == ["meanwhile"]
        other.close()


async def test_a_reader_cannot_write(tmp_path: Path) -> None:
    async with SqliteDatabase(str(tmp_path / "p.db")) as database:
        await database.write(table)
        with pytest.raises(DatabaseError, match="must not write"):
            await database.read(lambda tx: insert(tx, "no"))
        await database.read(
            lambda tx: tx.fetch("INSERT INTO item (name) VALUES ('no') RETURNING 1")
        )
        assert await names(database) == []


async def test_what_is_being_written_is_not_read_before_it_is_committed(tmp_path: Path) -> None:
    async with SqliteDatabase(str(tmp_path / "p.db")) as database:
        await database.write(table)
        # The first is written at once, the second waits for others.
        async with asyncio.TaskGroup() as group:
            group.create_task(database.write(lambda tx: insert(tx, "first")))
            group.create_task(database.write(lambda tx: insert(tx, "later")))
            await asyncio.sleep(0)
            assert await names(database) == ["first"]
        assert await names(database) == ["first", "later"]


async def test_a_full_disk_fails_every_write_of_the_commit_and_commits_none(
    database: SqliteDatabase,
) -> None:
    await database.write(lambda tx: insert(tx, "before"))
    await database.write(lambda tx: tx.execute("PRAGMA max_page_count = 8"))
    large = "x" * 100_000
    outcomes = await asyncio.gather(
        database.write(lambda tx: insert(tx, "small one")),
        database.write(lambda tx: insert(tx, large)),
        database.write(lambda tx: insert(tx, "small two")),
        return_exceptions=True,
    )
    acknowledged = [
        name
        for name, outcome in zip(("small one", large, "small two"), outcomes, strict=True)
        if not isinstance(outcome, BaseException)
    ]
    assert any("full" in str(outcome) for outcome in outcomes)
    assert all(isinstance(one, int | DatabaseError) for one in outcomes)
    assert await names(database) == ["before", *acknowledged]
    await database.write(lambda tx: tx.execute("PRAGMA max_page_count = 100000"))
    await database.write(lambda tx: insert(tx, "after"))
    assert (await names(database))[-1] == "after"


@pytest.mark.parametrize("damage", [b"this is no database at all" * 100, b"SQLite format 3\x00"])
async def test_a_damaged_file_is_named_and_refused(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "p.db"
    path.write_bytes(damage)
    with pytest.raises(DatabaseError, match=r"p\.db"):
        migrate.migrate(str(path))
    assert path.read_bytes() == damage


def test_a_place_that_cannot_be_opened_is_named() -> None:
    with pytest.raises(DatabaseError, match="/nowhere/at/all"):
        sqlite_connection.connect("/nowhere/at/all")


@pytest.mark.parametrize("version", ["3.51.3", "3.51.10", "3.52.0", "4.0.0", "3.53.1.2"])
def test_a_safe_library_is_accepted(version: str) -> None:
    sqlite_connection.require_safe_version(version)


@pytest.mark.parametrize("version", ["3.51.2", "3.45.1", "3.7.0", "2.8.17"])
def test_a_library_that_can_corrupt_a_shared_database_is_refused(version: str) -> None:
    with pytest.raises(sqlite_connection.UnsafeSqliteError, match=r"pip install --upgrade apsw"):
        sqlite_connection.require_safe_version(version)


def test_an_acknowledged_write_does_not_wait_in_a_cache(tmp_path: Path) -> None:
    connection = sqlite_connection.connect(str(tmp_path / "p.db"))
    assert connection.pragma("journal_mode") == "wal"
    assert connection.pragma("synchronous") == 2
    connection.close()


async def test_a_large_transaction_does_not_leave_a_large_log_behind(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    async with SqliteDatabase(str(path)) as database:
        await database.write(table)

        async def large(tx: Transaction) -> None:
            await tx.execute("CREATE TABLE large (data BLOB)")
            await tx.execute("INSERT INTO large VALUES (zeroblob(40000000))")

        await database.write(large)
        log = tmp_path / "p.db-wal"
        assert log.stat().st_size > 40_000_000
        for number in range(3):
            await database.write(lambda tx, name=f"{number}": insert(tx, name))
        assert log.stat().st_size <= 16 * 1024 * 1024


async def test_our_own_commits_are_not_foreign_and_those_of_another_process_are(
    tmp_path: Path,
) -> None:
    process = await child(WRITER, str(tmp_path), "other", "append")
    assert await line(process) == "ready"
    async with SqliteDatabase(str(tmp_path / "p.db")) as database:
        await database.changed_elsewhere()
        await database.write(lambda tx: tx.execute("DELETE FROM session_wake"))
        assert not await database.changed_elsewhere()
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        assert await line(process) == "done"
        # Noticed also when a write of ours comes between.
        await database.write(lambda tx: tx.execute("DELETE FROM session_wake"))
        assert await database.changed_elsewhere()
        assert not await database.changed_elsewhere()
    assert await end(process) == 0


async def test_writing_waits_while_another_process_writes(tmp_path: Path) -> None:
    path = str(tmp_path / "p.db")
    async with SqliteDatabase(path) as database:
        await database.write(table)
        other = sqlite_connection.open_connection(path)
        other.execute("BEGIN IMMEDIATE; INSERT INTO item (name) VALUES ('theirs')")
        async with asyncio.TaskGroup() as group:
            write = group.create_task(database.write(lambda tx: insert(tx, "ours")))
            for _ in range(10):
                await asyncio.sleep(0)
            assert not write.done()
            # The loop is free meanwhile: reading goes on.
            assert await names(database) == []
            other.execute("COMMIT")
        other.close()
        assert await names(database) == ["theirs", "ours"]


async def test_closing_waits_for_writes_that_were_accepted(tmp_path: Path) -> None:
    path = str(tmp_path / "p.db")
    writes: list[asyncio.Task[int]] = []
    async with asyncio.TaskGroup() as group, SqliteDatabase(path) as database:
        await database.write(table)
        for number in range(40):
            job = database.write(lambda tx, n=number: insert(tx, str(n)))
            writes.append(group.create_task(job))
        await asyncio.sleep(0)
    assert len(writes) == 40
    async with SqliteDatabase(path) as database:
        assert len(await names(database)) == 40


@pytest.mark.parametrize("acknowledgements", [5, 40, 150])
async def test_every_acknowledged_append_survives_a_kill_in_the_middle_of_writing(
    tmp_path: Path, acknowledgements: int
) -> None:
    process = await child(WRITER, str(tmp_path), "victim", "loop")
    said = [await line(process) for _ in range(acknowledgements)]
    os.kill(process.pid, signal.SIGKILL)
    assert await process.wait() == -signal.SIGKILL
    assert process.stdout is not None
    said += (await process.stdout.read()).decode().splitlines()
    path = str(tmp_path / "p.db")
    assert migrate.migrate(path) is None
    async with SqliteDatabase(path) as database:
        assert await database.read(lambda tx: tx.fetch("PRAGMA integrity_check")) == [("ok",)]
        logged = await database.read(
            lambda tx: tx.fetch("SELECT session_id, max(seq), count(*) FROM event GROUP BY 1")
        )
        latest = {str(session): int(str(seq)) for session, seq, _ in logged}
        # No gap, and never half of an append of two.
        assert all(int(str(seq)) + 1 == count for _, seq, count in logged)
        assert all(seq % 2 == 0 for seq in latest.values())
        for acknowledged in said:
            session, _, seq = acknowledged.partition(" ")
            assert int(seq) <= latest[session]
        messages = await database.read(lambda tx: tx.fetch("SELECT count(*) FROM session_message"))
        assert messages == [(sum(latest.values()) // 2,)]


async def test_the_lock_is_not_held_while_the_loop_is_busy_with_something_else(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "p.db")
    async with SqliteDatabase(path) as database:
        await database.write(table)
        other = sqlite_connection.connect(path)
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(database.write(lambda tx: insert(tx, "late")))
        # The first lets the write begin, the second lets it begin to wait.
        for _ in range(2):
            await asyncio.sleep(0)
        other.execute("ROLLBACK")
        # Without an await: this process is busy, or was stopped right here.
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
        other.close()
        await waiting
        assert await names(database) == ["late"]


async def test_all_writers_behind_a_lock_that_is_not_given_back_are_refused_together(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "p.db")
    async with SqliteDatabase(path) as database:
        await database.write(table)
        other = sqlite_connection.connect(path)
        other.execute("BEGIN IMMEDIATE")
        many = limits.COMMIT_JOBS_MAX * 3
        async with asyncio.timeout(limits.LOCK_WAIT_SECONDS_MAX * 1.5):
            refused = await asyncio.gather(
                *(database.write(lambda tx, n=n: insert(tx, f"{n}")) for n in range(many)),
                return_exceptions=True,
            )
        assert {type(error) for error in refused} == {sqlite_connection.StoreLockedError}
        other.execute("ROLLBACK")
        other.close()
        await database.write(lambda tx: insert(tx, "after"))
        assert await names(database) == ["after"]
