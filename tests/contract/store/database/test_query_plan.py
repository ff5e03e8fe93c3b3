"""Every query that a turn or a page makes is a search in an index, without sorting."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from perdure.ports import Row, SqlValue, Transaction
from perdure.schema.ids import MessageID, Seq
from perdure.store.database.sqlite import SqliteDatabase
from perdure.store.log import event_store
from perdure.store.processes import lease_table
from perdure.store.tables import epoch_table, inbox_table, message_table, session_table
from perdure.store.tables.session_table import SessionFilter, SessionPlace
from tests.fixtures import SESSION, opened
from tests.requirements import requirement

Query = Callable[[Transaction], Awaitable[object]]


class Explaining:
    """A transaction that asks how each statement would be run, and runs none."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.plans: list[str] = []

    async def execute(self, sql: str, parameters: Mapping[str, SqlValue] | None = None) -> int:
        await self.fetch(sql, parameters)
        return 1

    async def fetch(
        self, sql: str, parameters: Mapping[str, SqlValue] | None = None
    ) -> Sequence[Row]:
        plan = await self._tx.fetch(f"EXPLAIN QUERY PLAN {sql}", parameters)
        self.plans.extend(str(row[3]) for row in plan)
        return []


async def plans(path: Path, query: Query) -> list[str]:
    async with opened(path) as database:
        return await explain(database, query)


async def explain(database: SqliteDatabase, query: Query) -> list[str]:
    async def job(tx: Transaction) -> list[str]:
        explaining = Explaining(tx)
        await query(explaining)
        return explaining.plans

    return await database.read(job)


_COMPOUND = ("COMPOUND QUERY", "LEFT-MOST SUBQUERY", "UNION ALL")
MESSAGE = MessageID("msg_1")
HOT: dict[str, Query] = {
    "latest sequence": lambda tx: event_store.latest_seq(tx, SESSION),
    "session by id": lambda tx: session_table.load(tx, SESSION),
    "message by id": lambda tx: message_table.get(tx, SESSION, MESSAGE),
    "session reverting": lambda tx: session_table.is_reverting(tx, SESSION),
    "message exists": lambda tx: message_table.exists(tx, MESSAGE),
    "messages that follow one": lambda tx: message_table.list_following(tx, SESSION, Seq(3)),
    "messages since": lambda tx: message_table.list_after(tx, SESSION, Seq(3)),
    "newest assistant": lambda tx: message_table.latest_of_type(
        tx, SESSION, "assistant", before=Seq(9)
    ),
    "newest prompts": lambda tx: message_table.newest_prompts(tx, SESSION, limit=9),
    "latest compaction": lambda tx: message_table.latest_compaction(tx, SESSION),
    "first page of messages": lambda tx: message_table.page(
        tx, SESSION, newest_first=True, limit=50, anchor=None
    ),
    "next page of messages": lambda tx: message_table.page(
        tx, SESSION, newest_first=False, limit=50, anchor=Seq(50)
    ),
    "messages after a revert": lambda tx: message_table.delete_after(tx, SESSION, Seq(3)),
    "inbox entry": lambda tx: inbox_table.get(tx, MESSAGE),
    "promotion": lambda tx: inbox_table.mark_promoted(tx, SESSION, MESSAGE, Seq(4)),
    "pending steers": lambda tx: inbox_table.list_pending(tx, SESSION, "steer", limit=9),
    "next queued": lambda tx: inbox_table.list_pending(tx, SESSION, "queue", limit=1),
    "what a boundary promotes": lambda tx: inbox_table.list_next(tx, SESSION, steers_max=9),
    "epoch": lambda tx: epoch_table.get(tx, SESSION),
    "lease": lambda tx: lease_table.get(tx, SESSION),
    "releasing leases": lambda tx: lease_table.release_all(tx, "prc_1"),
}


@requirement("S158", "S75")
@pytest.mark.parametrize("name", HOT)
async def test_a_hot_query_searches_an_index(tmp_path: Path, name: str) -> None:
    found = await plans(tmp_path / "p.db", HOT[name])
    assert found
    indexes = ("USING INDEX", "USING COVERING INDEX", "USING PRIMARY KEY")
    for plan in found:
        if plan in _COMPOUND or "(subquery-" in plan:
            continue
        assert plan.startswith("SEARCH")
        assert any(index in plan for index in indexes), plan


@requirement("S158")
async def test_the_log_is_read_by_its_sequence_index(tmp_path: Path) -> None:
    read = "SELECT seq FROM event WHERE session_id = :id AND seq > 3 ORDER BY seq LIMIT 9"
    found = await plans(tmp_path / "p.db", lambda tx: tx.fetch(read, {"id": SESSION}))
    assert len(found) == 1
    assert found[0].startswith("SEARCH event USING")


@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize("anchor", [None, SessionPlace(5, 1, SESSION)])
async def test_a_page_of_sessions_is_read_in_order_and_only_ties_are_sorted(
    tmp_path: Path, anchor: SessionPlace | None, *, newest_first: bool
) -> None:
    found = await plans(
        tmp_path / "p.db",
        lambda tx: session_table.page(
            tx, SessionFilter(), newest_first=newest_first, limit=50, anchor=anchor
        ),
    )
    listed, *rest = [plan for plan in found if "(id=?)" not in plan]
    assert "USING INDEX session_created" in listed
    assert all("LAST TERM OF ORDER BY" in plan for plan in rest), rest
