"""The list of a Session: the newest that was written, by a message that is still there."""

import pytest

from perdure.schema.errors import DamagedRowError
from perdure.schema.session import event as events
from perdure.store.log import projector
from perdure.store.log.event_store import EventStore
from perdure.store.tables import todo_table
from tests.fixtures import OTHER, SESSION, Facts, answered, append, dump
from tests.requirements import requirement


async def shown(store: EventStore) -> list[str]:
    found = await store.database.read(lambda tx: todo_table.load_todos(tx, SESSION))
    return [item.content for item in found]


@requirement("S182")
async def test_the_newest_list_takes_the_place_of_the_others(store: EventStore) -> None:
    facts = Facts()
    await append(store, [facts.created(), *answered(facts, "msg_1", "msg_2", "hello")])
    assert await shown(store) == []
    await append(store, [facts.todos("msg_2", "one", "two"), facts.todos("msg_2", "three")])
    assert await shown(store) == ["three"]
    await append(store, [facts.todos("msg_2")])
    assert await shown(store) == []
    assert await store.database.read(lambda tx: todo_table.load_todos(tx, OTHER)) == ()


async def test_each_session_has_its_own_list(store: EventStore) -> None:
    facts, other = Facts(), Facts(OTHER)
    await append(store, [facts.created(), *answered(facts, "msg_1", "msg_2", "hello")])
    await append(store, [other.created(), *answered(other, "msg_o", "msg_p", "hello")], OTHER)
    await append(store, [other.todos("msg_p", "theirs"), other.todos("msg_p", "newer")], OTHER)
    await append(store, [facts.todos("msg_2", "mine")])
    assert await shown(store) == ["mine"]
    # Forgetting what was not written leaves alone what others wrote, or did not.
    await store.database.write(lambda tx: tx.execute("DELETE FROM session_message"))
    await store.database.write(lambda tx: todo_table.delete_without_message(tx, SESSION))
    assert await shown(store) == []
    theirs = await store.database.read(lambda tx: todo_table.load_todos(tx, OTHER))
    assert [item.content for item in theirs] == ["newer"]


async def test_a_revert_brings_back_the_list_of_its_last_message(store: EventStore) -> None:
    facts = Facts()
    await append(store, [facts.created(), *answered(facts, "msg_1", "msg_2", "hello")])
    await append(store, [facts.todos("msg_2", "first")])
    await append(store, [*answered(facts, "msg_3", "msg_4", "go on"), facts.todos("msg_4", "2nd")])
    await append(store, [facts.stamped(events.RevertCommitted, message_id="msg_2")])
    assert await shown(store) == ["first"]
    await append(store, [facts.todos("msg_4", "too late"), *answered(facts, "msg_5", "msg_6", "x")])
    assert await shown(store) == ["first"]
    # Going back once more must not find what was reverted before.
    await append(store, [facts.stamped(events.RevertCommitted, message_id="msg_1")])
    assert await shown(store) == []
    before = await dump(store)
    await projector.rebuild(store.database)
    assert await dump(store) == before


async def test_a_list_of_a_message_that_the_same_append_takes_away_does_not_count(
    store: EventStore,
) -> None:
    facts = Facts()
    await append(store, [facts.created(), *answered(facts, "msg_1", "msg_2", "hello")])
    await append(
        store,
        [
            *answered(facts, "msg_3", "msg_4", "go on"),
            facts.stamped(events.RevertCommitted, message_id="msg_2"),
            facts.todos("msg_4", "too late"),
            *facts.text("msg_4", "text-1", "too late"),
        ],
    )
    assert await shown(store) == []
    before = await dump(store)
    await projector.rebuild(store.database)
    assert await dump(store) == before


async def test_a_row_that_names_another_event_is_reported_not_shown(store: EventStore) -> None:
    facts = Facts()
    await append(store, [facts.created(), *answered(facts, "msg_1", "msg_2", "hello")])
    for seq in (2, 99):
        await store.database.write(
            lambda tx, seq=seq: tx.execute(
                "INSERT INTO todo (session_id, seq, message_id) VALUES (:id, :seq, 'msg_2')",
                {"id": SESSION, "seq": seq},
            )
        )
        with pytest.raises(DamagedRowError) as caught:
            await shown(store)
        assert (caught.value.table, caught.value.seq) == ("todo", seq)
