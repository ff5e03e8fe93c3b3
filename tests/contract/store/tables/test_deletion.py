"""A deletion: the Session is gone at once, its rows go in portions, and no others do."""

from functools import partial

import pytest

from perdure.ports import Transaction
from perdure.schema.errors import DamagedRowError
from perdure.schema.ids import SessionID, ToolCallID
from perdure.schema.session.event import Deleted, Renamed, ToolSucceeded
from perdure.schema.session.tool import CallProvider
from perdure.store.log.event_store import EventStore
from perdure.store.tables import deletion_table
from tests.fixtures import OTHER, SESSION, Facts, append, rows
from tests.support import every_table

MANY = ["event", "session_deletion", "session_message"]
"""What is left when a deletion has begun."""


async def occupied(store: EventStore, session_id: SessionID) -> list[str]:
    return await store.database.read(lambda tx: every_table.occupied(tx, session_id))


async def occupy(store: EventStore, session_id: SessionID) -> None:
    await store.database.write(lambda tx: every_table.occupy(tx, session_id))


async def remove_some(store: EventStore, limit: int) -> bool:
    return await store.database.write(
        lambda tx: deletion_table.remove_batch(tx, SESSION, limit=limit)
    )


async def kept_outputs(store: EventStore, limit: int) -> tuple[str, ...]:
    return await store.database.read(
        lambda tx: deletion_table.list_output_paths(tx, SESSION, limit=limit)
    )


async def test_a_deletion_leaves_nothing_in_any_table_and_takes_nothing_of_others(
    store: EventStore, facts: Facts
) -> None:
    await append(store, [Facts(OTHER).created()], OTHER)
    for session_id in (SESSION, OTHER):
        await occupy(store, session_id)
    theirs = await occupied(store, OTHER)
    assert theirs == await store.database.read(every_table.naming_sessions)
    await append(store, [facts.stamped(Deleted)])
    assert await occupied(store, SESSION) == MANY
    assert await rows(store, "SELECT id FROM session") == [(OTHER,)]
    assert not await remove_some(store, 9)
    assert await occupied(store, SESSION) == []
    assert await occupied(store, OTHER) == theirs


async def test_a_deletion_may_come_with_what_it_deletes(store: EventStore, facts: Facts) -> None:
    await append(store, [facts.step("msg_1")])
    last = [facts.ended("msg_1"), facts.told("msg_2"), facts.stamped(Renamed, title="Gone")]
    await append(store, [*last, facts.stamped(Deleted)])
    assert await rows(store, "SELECT id FROM session") == []
    assert not await remove_some(store, 9)
    assert await occupied(store, SESSION) == []


async def test_what_a_run_left_after_the_deletion_began_goes_too(
    store: EventStore, facts: Facts
) -> None:
    await append(store, [facts.stamped(Deleted)])
    await occupy(store, SESSION)
    while await remove_some(store, 2):
        pass
    assert await occupied(store, SESSION) == []


async def test_a_few_rows_go_at_a_time_and_the_last_event_last(
    store: EventStore, facts: Facts
) -> None:
    await append(store, [facts.told("msg_1"), facts.told("msg_2"), facts.told("msg_3")])
    await append(store, [facts.stamped(Deleted)])

    async def left() -> tuple[list[object], list[object]]:
        messages = await rows(store, "SELECT seq FROM session_message ORDER BY seq")
        events = await rows(store, "SELECT seq FROM event ORDER BY seq")
        return [seq for (seq,) in messages], [seq for (seq,) in events]

    assert await left() == ([1, 2, 3], [0, 1, 2, 3, 4])
    assert await remove_some(store, 2)
    assert await left() == ([3], [0, 1, 2, 3, 4])
    assert await remove_some(store, 2)
    assert await left() == ([], [2, 3, 4])
    assert await store.database.read(deletion_table.list_sessions) == {SESSION}
    assert await remove_some(store, 2)
    assert await left() == ([], [4])
    assert not await remove_some(store, 2)
    assert await left() == ([], [])
    assert await store.database.read(deletion_table.list_sessions) == frozenset()


async def test_a_deletion_is_begun_again_without_harm(store: EventStore, facts: Facts) -> None:
    for _ in range(2):
        await store.database.write(partial(deletion_table.begin, session_id=SESSION))
    assert await store.database.read(deletion_table.list_sessions) == {SESSION}


def kept(facts: Facts, call: str, *paths: str) -> ToolSucceeded:
    return ToolSucceeded(
        facts.tick(),
        facts.session_id,
        assistant_message_id=facts.step("msg_1").assistant_message_id,
        call_id=ToolCallID(call),
        structured={},
        content=(),
        provider=CallProvider(executed=False),
        output_paths=paths,
    )


async def test_the_files_that_the_next_events_name_are_known_before_they_go(
    store: EventStore, facts: Facts
) -> None:
    other = Facts(OTHER)
    await append(store, [other.created(), other.step("msg_o"), kept(other, "c", "/theirs")], OTHER)
    await append(store, [facts.step("msg_1"), kept(facts, "a", "/1", "/2"), kept(facts, "b", "/3")])
    await append(store, [facts.succeeded("msg_1", "nothing kept"), facts.told("msg_2")])
    # Only what may name a file is looked at.
    await store.database.write(lambda tx: tx.execute("UPDATE event SET data = x'7b' WHERE seq = 5"))
    assert await kept_outputs(store, 9) == ("/1", "/2", "/3")
    assert await kept_outputs(store, 3) == ("/1", "/2")
    assert await kept_outputs(store, 2) == ()


async def test_an_event_that_cannot_be_read_is_told_by_name(
    store: EventStore, facts: Facts
) -> None:
    await append(store, [facts.step("msg_1"), kept(facts, "a", "/1")])

    async def spoil(tx: Transaction) -> None:
        await tx.execute("UPDATE event SET data = x'7b' WHERE seq = 2")

    await store.database.write(spoil)
    with pytest.raises(DamagedRowError) as caught:
        await kept_outputs(store, 9)
    assert caught.value.seq == 2
