"""Messages as their table finds them: by place, by kind, in pages, and of one Session."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import pytest

from perdure.ports import Transaction
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.session.event import SyntheticAdded
from perdure.store.log.event_store import EventStore
from perdure.store.tables import message_table
from perdure.store.tables.message_table import MessageRow
from tests.fixtures import OTHER, SESSION, Facts, append

T = TypeVar("T")


@pytest.fixture
async def talk(store: EventStore, facts: Facts) -> EventStore:
    """Messages at the sequences 2, 3, 5, 6, 8 and 9; those of another Session begin as they do."""
    await _talk(store, facts, "m")
    other = Facts(OTHER)
    await append(store, [other.created()], OTHER)
    await _talk(store, other, "o")
    await append(store, [other.compacted("o_again"), other.step("o_third")], OTHER)
    return store


async def _talk(store: EventStore, facts: Facts, name: str) -> None:
    events = [
        facts.admitted(f"{name}_hello"),
        facts.promoted(f"{name}_hello"),
        facts.step(f"{name}_first"),
        facts.ended(f"{name}_first"),
        facts.compacted(f"{name}_cut"),
        facts.step(f"{name}_second"),
        facts.admitted(f"{name}_more"),
        facts.promoted(f"{name}_more"),
        facts.told(f"{name}_told"),
    ]
    await append(store, events, facts.session_id)


async def read(store: EventStore, job: Callable[[Transaction], Awaitable[T]]) -> T:
    return await store.database.read(job)


def names(rows: Sequence[MessageRow]) -> list[str]:
    return [row.id for row in rows]


async def page(
    store: EventStore, *, newest_first: bool, limit: int = 9, anchor: int | None = None
) -> list[str]:
    after = None if anchor is None else Seq(anchor)
    found = await read(
        store,
        lambda tx: message_table.page(
            tx, SESSION, newest_first=newest_first, limit=limit, anchor=after
        ),
    )
    return names(found)


async def test_a_message_is_found_by_its_owner_only(talk: EventStore) -> None:
    hello = MessageID("m_hello")
    found = await read(talk, lambda tx: message_table.get(tx, SESSION, hello))
    assert found is not None
    assert (found.id, found.seq, found.type, found.session_id) == (hello, 2, "user", SESSION)
    assert found.message().id == hello
    assert await read(talk, lambda tx: message_table.get(tx, OTHER, hello)) is None
    assert await read(talk, lambda tx: message_table.exists(tx, hello))
    assert not await read(talk, lambda tx: message_table.exists(tx, MessageID("m_unknown")))


async def test_a_place_has_one_message_or_none(talk: EventStore) -> None:
    places = [
        await read(talk, lambda tx, at=at: message_table.get_at(tx, SESSION, at)) for at in (3, 4)
    ]
    assert [row and row.id for row in places] == ["m_first", None]
    theirs = await read(talk, lambda tx: message_table.get_at(tx, OTHER, 3))
    assert theirs is not None
    assert theirs.id == "o_first"


async def test_messages_follow_one_that_is_still_there(talk: EventStore) -> None:
    every = await read(talk, lambda tx: message_table.list_after(tx, SESSION, Seq(3)))
    assert every
    assert await read(talk, lambda tx: message_table.list_following(tx, SESSION, Seq(3))) == every
    last = every[-1].seq
    assert await read(talk, lambda tx: message_table.list_following(tx, SESSION, last)) == []
    for gone in (Seq(4), Seq(last + 1)):
        found = await read(talk, lambda tx, at=gone: message_table.list_following(tx, SESSION, at))
        assert found is None


@pytest.mark.parametrize(
    ("before", "found"), [(3, None), (4, "m_first"), (6, "m_first"), (9, "m_second")]
)
async def test_the_latest_of_a_kind_stands_before_a_place(
    talk: EventStore, before: int, found: str | None
) -> None:
    row = await read(
        talk,
        lambda tx: message_table.latest_of_type(tx, SESSION, "assistant", before=Seq(before)),
    )
    assert (row and row.id) == found


async def test_what_was_said_last_is_no_context_and_no_summary(
    talk: EventStore, facts: Facts
) -> None:
    async def said(session_id: SessionID) -> str | None:
        row = await read(talk, lambda tx: message_table.latest_conversation_message(tx, session_id))
        return row and row.id

    assert (await said(SESSION), await said(OTHER)) == ("m_more", "o_third")
    told = facts.stamped(SyntheticAdded, message_id=MessageID("m_done"), text="done")
    await append(talk, [told])
    assert (await said(SESSION), await said(SessionID("ses_unknown"))) == ("m_done", None)


async def test_the_newest_prompts_are_told_in_order(talk: EventStore, facts: Facts) -> None:
    await append(talk, [facts.admitted("m_last"), facts.promoted("m_last")])

    async def prompts(limit: int) -> list[str]:
        return names(
            await read(talk, lambda tx: message_table.newest_prompts(tx, SESSION, limit=limit))
        )

    assert await prompts(9) == ["m_hello", "m_more", "m_last"]
    assert await prompts(2) == ["m_more", "m_last"]


async def test_answers_are_counted_since_a_place(talk: EventStore) -> None:
    async def answers(*, after: int) -> int:
        return await read(talk, lambda tx: message_table.count_steps(tx, SESSION, after=after))

    assert await read(talk, lambda tx: message_table.count_steps(tx, SESSION)) == 2
    assert [await answers(after=place) for place in (2, 3, 6)] == [2, 1, 0]
    assert await read(talk, lambda tx: message_table.count_steps(tx, OTHER)) == 3


async def test_the_last_compaction_counts(talk: EventStore, facts: Facts) -> None:
    async def latest(session_id: SessionID) -> Seq | None:
        return await read(talk, lambda tx: message_table.latest_compaction(tx, session_id))

    assert await latest(SessionID("ses_unknown")) is None
    assert (await latest(SESSION), await latest(OTHER)) == (5, 10)


async def test_pages_follow_each_other_in_both_directions(talk: EventStore) -> None:
    every = ["m_hello", "m_first", "m_cut", "m_second", "m_more", "m_told"]
    assert await page(talk, newest_first=False) == every
    assert await page(talk, newest_first=True) == every[::-1]
    assert await page(talk, newest_first=False, limit=2, anchor=3) == every[2:4]
    assert await page(talk, newest_first=True, limit=2, anchor=8) == every[3:1:-1]
    assert await page(talk, newest_first=False, anchor=9) == []


async def test_what_came_after_a_place_is_read_and_removed_alone(talk: EventStore) -> None:
    assert names(await read(talk, lambda tx: message_table.list_after(tx, SESSION, Seq(5)))) == [
        "m_second",
        "m_more",
        "m_told",
    ]
    theirs = await read(talk, lambda tx: message_table.list_after(tx, OTHER, Seq(0)))
    await talk.database.write(lambda tx: message_table.delete_after(tx, SESSION, Seq(5)))
    assert await page(talk, newest_first=False) == ["m_hello", "m_first", "m_cut"]
    assert await read(talk, lambda tx: message_table.list_after(tx, OTHER, Seq(0))) == theirs


async def test_a_message_is_written_anew_in_its_place(talk: EventStore, facts: Facts) -> None:
    before = await read(talk, lambda tx: message_table.list_after(tx, SESSION, Seq(0)))
    await append(talk, [facts.ended("m_second", "length")])
    after = await read(talk, lambda tx: message_table.list_after(tx, SESSION, Seq(0)))
    changed = [new.id for old, new in zip(before, after, strict=True) if old.stored != new.stored]
    assert changed == ["m_second"]
