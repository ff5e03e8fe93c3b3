"""Replay, then follow: nothing missed, nothing twice, and no needless query."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from perdure.core import limits
from perdure.host.process_locks import SingleProcess
from perdure.net import sse
from perdure.ports import Transaction
from perdure.schema.errors import DamagedRowError
from perdure.schema.ids import Seq
from perdure.schema.session.event import Deleted
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.store.log.event_store import NO_EVENTS, EventStore
from perdure.store.log.follow import EventFollowers
from perdure.store.tables import deletion_table
from perdure.testing import SeededIds
from tests.fixtures import OTHER, SESSION, Facts, append, child, end, line
from tests.requirements import requirement

T = TypeVar("T")


class CountingDatabase(SqliteDatabase):
    """The real one. Counts reads, and can let others write while one is about to happen."""

    reads = 0
    before_read: Callable[[], Awaitable[object]] | None = None

    async def read(self, job: Callable[[Transaction], Awaitable[T]]) -> T:
        self.reads += 1
        hook, self.before_read = self.before_read, None
        result = await super().read(job)
        if hook is not None:
            await hook()
        return result


@asynccontextmanager
async def counted(
    path: Path,
) -> AsyncGenerator[tuple[CountingDatabase, EventStore, EventFollowers]]:
    migrate.migrate(str(path))
    async with CountingDatabase(str(path)) as database:
        store = EventStore(database, SeededIds(), SingleProcess())
        await append(store, [Facts().created()])
        yield database, store, EventFollowers(store)


class Reader:
    """Reads a tail frame by frame."""

    def __init__(self, tail: AsyncIterator[bytes]) -> None:
        self._tail = tail
        self._parser = sse.Reader(bytes_max=16 * 1024 * 1024)
        self.seen: list[int] = []

    async def until(self, seq: int) -> list[int]:
        """The sequences of every frame up to `seq`."""
        async with asyncio.timeout(5):
            while not self.seen or self.seen[-1] < seq:
                chunk = await anext(self._tail)
                self.seen.extend(int(frame.id) for frame in self._parser.feed(chunk))
        return self.seen


async def write_some(store: EventStore, facts: Facts, count: int, name: str) -> None:
    for number in range(count):
        await append(store, [facts.admitted(f"msg_{name}_{number}")])


@requirement("S154", "S163")
async def test_a_reader_gets_what_was_and_then_what_comes(tmp_path: Path) -> None:
    async with counted(tmp_path / "p.db") as (_, store, tails):
        facts = Facts()
        await write_some(store, facts, 3, "a")
        async with aclosing(tails.follow(SESSION, after=NO_EVENTS)) as tail:
            reader = Reader(tail)
            assert await reader.until(3) == [1, 2, 3]
            await write_some(store, facts, 2, "b")
            assert await reader.until(5) == [1, 2, 3, 4, 5]


@requirement("S154")
@pytest.mark.parametrize(("after", "first"), [(-1, 1), (0, 1), (2, 3)])
async def test_a_reader_resumes_after_the_sequence_it_names(
    tmp_path: Path, after: int, first: int
) -> None:
    async with counted(tmp_path / "p.db") as (_, store, tails):
        await write_some(store, Facts(), 4, "a")
        async with aclosing(tails.follow(SESSION, after=Seq(after))) as tail:
            assert await Reader(tail).until(4) == list(range(first, 5))


@requirement("S163")
async def test_a_commit_while_the_past_is_read_is_not_lost(tmp_path: Path) -> None:
    async with counted(tmp_path / "p.db") as (database, store, tails):
        facts = Facts()
        await write_some(store, facts, 1, "a")
        # After the rows of the past were read, and before the reader waits.
        database.before_read = lambda: append(store, [facts.admitted("msg_between")])
        async with aclosing(tails.follow(SESSION, after=NO_EVENTS)) as tail:
            assert await Reader(tail).until(2) == [1, 2]


@requirement("S129")
async def test_a_reader_is_told_where_the_past_ends(tmp_path: Path) -> None:
    async with counted(tmp_path / "p.db") as (_, store, tails):
        facts = Facts()
        await write_some(store, facts, 3, "a")
        async with aclosing(tails.follow(SESSION, after=Seq(1))) as tail:
            assert (await anext(tail)).count(b"id: ") == 2
            assert await anext(tail) == sse.REPLAYED
            for seq in (4, 5):
                await append(store, [facts.admitted(f"msg_new_{seq}")])
                assert (await anext(tail)).startswith(b"id: %d\n" % seq)
        async with aclosing(tails.follow(SESSION, after=Seq(5))) as tail:
            assert await anext(tail) == sse.REPLAYED, "at once, when there is nothing to replay"


async def test_a_reader_gets_what_stands_before_a_damaged_event_and_is_told(tmp_path: Path) -> None:
    async with counted(tmp_path / "p.db") as (database, store, tails):
        await write_some(store, Facts(), 4, "a")
        await database.write(lambda tx: tx.execute("UPDATE event SET data = x'7b' WHERE seq = 3"))
        async with aclosing(tails.follow(SESSION, after=NO_EVENTS)) as tail:
            reader = Reader(tail)
            assert await reader.until(2) == [1, 2]
            with pytest.raises(DamagedRowError):
                await reader.until(3)


@requirement("S163")
async def test_commits_made_here_cost_a_waiting_reader_no_query(tmp_path: Path) -> None:
    async with counted(tmp_path / "p.db") as (database, store, tails):
        facts = Facts()
        await append(store, [facts.admitted("msg_first")])
        async with aclosing(tails.follow(SESSION, after=NO_EVENTS)) as tail:
            reader = Reader(tail)
            await reader.until(1)
            before = database.reads
            await write_some(store, facts, 50, "a")
            assert await reader.until(51) == list(range(1, 52))
            # Caught up, it waits without looking, until there is something new.
            async with asyncio.TaskGroup() as group:
                group.create_task(reader.until(52))
                for _ in range(5):
                    await asyncio.sleep(0)
                await append(store, [facts.admitted("msg_last")])
            assert database.reads == before


@requirement("S163")
async def test_a_reader_that_fell_behind_what_is_kept_reads_the_log_once(tmp_path: Path) -> None:
    async with counted(tmp_path / "p.db") as (database, store, tails):
        facts = Facts()
        await append(store, [facts.admitted("msg_first")])
        async with (
            aclosing(tails.follow(SESSION, after=NO_EVENTS)) as quick_tail,
            aclosing(tails.follow(SESSION, after=NO_EVENTS)) as slow_tail,
        ):
            quick, slow = Reader(quick_tail), Reader(slow_tail)
            await quick.until(1)
            await slow.until(1)
            before = database.reads
            for number in range(2, 5):
                long = facts.admitted(f"msg_{number}", "x" * (limits.TAIL_BYTES_KEPT_MAX // 2))
                await append(store, [long])
                assert await quick.until(number) == list(range(1, number + 1))
            assert database.reads == before
            assert await slow.until(4) == [1, 2, 3, 4]
            assert database.reads == before + 1


@asynccontextmanager
async def read_beside_another(
    path: Path,
) -> AsyncGenerator[tuple[EventStore, EventStore, EventFollowers, Reader]]:
    """Our store and that of another process, and a reader of ours that has seen one event."""
    async with counted(path) as (_, store, tails), SqliteDatabase(str(path)) as elsewhere:
        await append(store, [Facts().admitted("msg_1")])
        async with aclosing(tails.follow(SESSION, after=NO_EVENTS)) as tail:
            reader = Reader(tail)
            await reader.until(1)
            yield store, EventStore(elsewhere, SeededIds(1), SingleProcess()), tails, reader


@requirement("S163")
async def test_what_others_wrote_in_between_comes_in_its_place(tmp_path: Path) -> None:
    """This process was not told of it: its own next commit shows that something is missing."""
    async with read_beside_another(tmp_path / "p.db") as (ours, theirs, _, reader):
        await append(ours, [Facts().admitted("msg_2")])
        await append(theirs, [Facts().admitted("msg_3")])
        await append(ours, [Facts().admitted("msg_4")])
        assert await reader.until(4) == [1, 2, 3, 4]


@requirement("S163")
async def test_one_wake_for_a_commit_here_and_one_elsewhere_brings_both(tmp_path: Path) -> None:
    async with read_beside_another(tmp_path / "p.db") as (ours, theirs, tails, reader):
        await append(ours, [Facts().admitted("msg_2")])
        await append(theirs, [Facts().admitted("msg_3")])
        tails.wake_all()
        assert await reader.until(3) == [1, 2, 3]


@requirement("S163")
async def test_a_reader_of_a_session_that_goes_comes_to_its_end(tmp_path: Path) -> None:
    async with counted(tmp_path / "p.db") as (database, store, tails):
        await append(store, [Facts().admitted("msg_1")])
        async with aclosing(tails.follow(SESSION, after=NO_EVENTS)) as tail:
            await Reader(tail).until(1)
            await append(store, [Deleted(1, SESSION)])
            await database.write(lambda tx: deletion_table.remove_batch(tx, SESSION, limit=100))
            async with asyncio.timeout(5):
                assert [chunk async for chunk in tail if chunk != sse.REPLAYED] == []


@requirement("S163")
async def test_commits_of_other_sessions_cost_a_reader_nothing(tmp_path: Path) -> None:
    async with counted(tmp_path / "p.db") as (database, store, tails):
        facts, other = Facts(), Facts(OTHER)
        await append(store, [facts.admitted("msg_first")])
        async with aclosing(tails.follow(SESSION, after=NO_EVENTS)) as tail:
            reader = Reader(tail)
            await reader.until(1)
            async with asyncio.TaskGroup() as group:
                waiting = group.create_task(reader.until(2))
                await asyncio.sleep(0)
                before = database.reads
                await append(store, [other.created(), other.admitted("msg_other")], OTHER)
                assert database.reads == before
                assert not waiting.done()
                await append(store, [facts.admitted("msg_mine")])


@requirement("S163")
async def test_a_closed_reader_leaves_nothing_behind(tmp_path: Path) -> None:
    async with counted(tmp_path / "p.db") as (database, store, tails):
        facts = Facts()
        await append(store, [facts.admitted("msg_first")])
        async with aclosing(tails.follow(SESSION, after=NO_EVENTS)) as first:
            await Reader(first).until(1)
            async with aclosing(tails.follow(SESSION, after=NO_EVENTS)) as second:
                await Reader(second).until(1)
        before = database.reads
        await append(store, [facts.admitted("msg_later")])
        assert database.reads == before


@requirement("S163")
async def test_a_cancelled_reader_leaves_nothing_behind(tmp_path: Path) -> None:
    async with counted(tmp_path / "p.db") as (database, store, tails):

        async def read() -> None:
            async with aclosing(tails.follow(SESSION, after=NO_EVENTS)) as tail:
                while True:
                    await anext(tail)

        waiting = asyncio.Event()

        async def nothing_yet() -> None:
            waiting.set()

        database.before_read = nothing_yet
        async with asyncio.TaskGroup() as group:
            task = group.create_task(read())
            async with asyncio.timeout(5):
                await waiting.wait()
            task.cancel()
        database.before_read = None
        before = database.reads
        await append(store, [Facts().admitted("msg_later")])
        assert database.reads == before


async def test_a_long_past_arrives_in_pages_and_in_order(tmp_path: Path) -> None:
    count = limits.REPLAY_ROWS_PER_READ * 2 + 7
    async with counted(tmp_path / "p.db") as (database, store, tails):
        facts = Facts()
        for start in range(0, count, 300):
            size = min(300, count - start)
            batch = [facts.admitted(f"msg_{start}_{number}") for number in range(size)]
            await append(store, batch)
        before = database.reads
        async with aclosing(tails.follow(SESSION, after=NO_EVENTS)) as tail:
            assert await Reader(tail).until(count) == list(range(1, count + 1))
        assert database.reads - before == 3


async def test_a_session_without_public_events_is_followed_from_its_first(tmp_path: Path) -> None:
    async with (
        counted(tmp_path / "p.db") as (_, store, tails),
        aclosing(tails.follow(SESSION, after=NO_EVENTS)) as tail,
    ):
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(Reader(tail).until(1))
            await asyncio.sleep(0)
            await append(store, [Facts().admitted("msg_1")])
        assert reading.result() == [1]


@requirement("S163")
async def test_a_commit_of_another_process_reaches_a_reader_here(tmp_path: Path) -> None:
    async with counted(tmp_path / "p.db") as (database, _, tails):
        process = await child("tests.contract.store.writer", str(tmp_path), "other", "append")
        assert await line(process) == "ready"
        await database.changed_elsewhere()
        past_was_read = asyncio.Event()

        async def tell() -> None:
            past_was_read.set()

        database.before_read = tell
        async with aclosing(tails.follow(SESSION, after=NO_EVENTS)) as tail:
            async with asyncio.TaskGroup() as group:
                reading = group.create_task(Reader(tail).until(1))
                await past_was_read.wait()
                assert process.stdin is not None
                process.stdin.write(b"go\n")
                assert await line(process) == "done"
                assert not reading.done()
                assert await database.changed_elsewhere()
                tails.wake_all()
            assert reading.result() == [1]
        assert not await database.changed_elsewhere()
        assert await end(process) == 0
