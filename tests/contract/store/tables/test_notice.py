"""Notices wait in the order in which they were put, once each, for Sessions that can be told."""

from perdure.core import limits
from perdure.ports import Transaction
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.session.event import Archived, Deleted, SyntheticAdded
from perdure.store.log.event_store import EventStore
from perdure.store.tables import notice_table
from perdure.store.tables.notice_table import Notice
from tests.fixtures import OTHER, SESSION, Facts, append


def notice(name: str, *, at: int = 1, session_id: SessionID = SESSION) -> Notice:
    return Notice(
        id=MessageID(f"msg_{name}"), session_id=session_id, text=f"{name} ended", time_created=at
    )


async def put(store: EventStore, *notices: Notice) -> list[bool]:
    async def job(tx: Transaction) -> list[bool]:
        return [await notice_table.put(tx, one) for one in notices]

    return await store.database.write(job)


async def waiting(store: EventStore, *, limit: int = limits.APPEND_EVENTS_MAX) -> list[str]:
    found = await store.database.read(
        lambda tx: notice_table.list_pending(tx, SESSION, limit=limit)
    )
    return [one.id for one in found]


async def test_notices_are_told_in_the_order_in_which_they_came(
    store: EventStore, facts: Facts
) -> None:
    assert await waiting(store) == []
    await put(store, notice("late", at=3), notice("b", at=2), notice("a", at=2))
    assert await waiting(store) == ["msg_a", "msg_b", "msg_late"]
    assert await waiting(store, limit=2) == ["msg_a", "msg_b"]


async def test_the_same_notice_again_is_nothing(store: EventStore, facts: Facts) -> None:
    first, other_words = notice("job"), notice("job", at=9)
    assert await put(store, first, first, other_words) == [True, False, False]
    found = await store.database.read(lambda tx: notice_table.list_pending(tx, SESSION, limit=5))
    assert found == [first]


async def test_one_that_was_told_is_not_put_again(store: EventStore, facts: Facts) -> None:
    told = notice("job")
    await put(store, told)
    await store.database.write(lambda tx: notice_table.remove(tx, told.id))
    event = SyntheticAdded(1, SESSION, message_id=told.id, text=told.text)
    await append(store, [event])
    assert await put(store, told) == [False]
    assert await waiting(store) == []


async def test_each_is_taken_by_itself(store: EventStore, facts: Facts) -> None:
    await put(store, notice("one"), notice("two"))
    assert await store.database.write(lambda tx: notice_table.remove(tx, MessageID("msg_one")))
    assert not await store.database.write(lambda tx: notice_table.remove(tx, MessageID("msg_one")))
    assert await waiting(store) == ["msg_two"]


async def test_a_session_that_is_unknown_gets_none(store: EventStore, facts: Facts) -> None:
    assert await put(store, notice("nobody", session_id=OTHER)) == [False]


async def test_one_that_was_put_away_keeps_its_notice(store: EventStore, facts: Facts) -> None:
    await append(store, [Archived(1, SESSION)])
    assert await put(store, notice("job")) == [True]
    assert await waiting(store) == ["msg_job"]


async def test_a_deletion_takes_them_along(store: EventStore, facts: Facts) -> None:
    await put(store, notice("job"))
    await append(store, [Deleted(1, SESSION)])
    assert await waiting(store) == []
    assert await put(store, notice("job")) == [False]


async def test_what_waits_for_one_session_does_not_wait_for_another(
    store: EventStore, facts: Facts
) -> None:
    await append(store, [Facts(OTHER).created()], OTHER)
    await put(store, notice("theirs", session_id=OTHER))
    assert await waiting(store) == []
    theirs = await store.database.read(lambda tx: notice_table.list_pending(tx, OTHER, limit=9))
    assert [found.session_id for found in theirs] == [OTHER]
