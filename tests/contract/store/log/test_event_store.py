"""Reading the log: in pages, up to what is damaged, and whether something has happened since."""

import pytest

from perdure.core import limits
from perdure.ports import Transaction
from perdure.schema.errors import DamagedRowError, SessionNotFoundError
from perdure.schema.ids import Seq, SessionID
from perdure.schema.session.event import (
    ContextUpdated,
    Deleted,
    PromptAdmitted,
    SessionEvent,
    StepStarted,
)
from perdure.store.log import event_store
from perdure.store.log.event_store import EventStore, StoredEvent
from tests.fixtures import LOCATION, OTHER, SESSION, Facts, append, rows


async def spoil(store: EventStore, column: str, seq: int) -> None:
    async def job(tx: Transaction) -> None:
        value = "x'7b'" if column == "data" else "99"
        await tx.execute(f"UPDATE event SET {column} = {value} WHERE seq = :seq", {"seq": seq})

    await store.database.write(job)


async def readable(
    store: EventStore, *, after: int, limit: int = 9
) -> tuple[list[int], int | None]:
    page = await store.read_page(SESSION, after=Seq(after), limit=limit)
    return [seq for seq, _ in page.rows], None if page.damaged is None else page.damaged.seq


async def test_a_page_has_fewer_events_where_they_are_large(
    store: EventStore, facts: Facts
) -> None:
    large = "x" * (limits.PAGE_BYTES_MAX // 2)
    await append(store, [facts.admitted(f"msg_{number}", large) for number in range(4)])
    pages: list[list[int]] = []
    after, has_more = Seq(-1), True
    while has_more:
        page = await store.read_page(SESSION, after=after, limit=100)
        pages.append([seq for seq, _ in page.rows])
        after, has_more = page.rows[-1][0], page.has_more
    assert pages == [[0, 1], [2], [3], [4]]


@pytest.mark.parametrize("column", ["data", "location"])
async def test_what_stands_before_a_damaged_event_is_read(
    store: EventStore, facts: Facts, column: str
) -> None:
    await append(store, [facts.told(f"msg_{number}") for number in range(4)])
    assert await readable(store, after=-1) == ([0, 1, 2, 3, 4], None)
    await spoil(store, column, 3)
    assert await readable(store, after=-1) == ([0, 1, 2], 3)
    assert await readable(store, after=1) == ([2], 3)
    assert await readable(store, after=-1, limit=2) == ([0, 1], None)
    assert await readable(store, after=3) == ([4], None)
    with pytest.raises(DamagedRowError) as caught:
        await readable(store, after=2)
    assert (caught.value.seq, caught.value.table) == (3, "event")


async def test_it_is_known_whether_something_has_happened_since(
    store: EventStore, facts: Facts
) -> None:
    other = Facts(OTHER)
    await append(store, [other.created(), other.told("msg_o"), other.step("msg_s")], OTHER)
    await append(store, [facts.told("msg_1"), facts.admitted("msg_2")])

    async def happened(
        after: int, *shapes: type[SessionEvent], session_id: SessionID = SESSION
    ) -> bool:
        return await store.database.read(
            lambda tx: event_store.has_event_since(tx, session_id, Seq(after), *shapes)
        )

    assert await happened(0, ContextUpdated)
    assert not await happened(1, ContextUpdated)
    assert await happened(1, ContextUpdated, PromptAdmitted)
    assert not await happened(0, StepStarted)
    assert await happened(0, StepStarted, session_id=OTHER)


async def test_only_a_copy_may_be_longer_than_an_append_and_only_its_end_is_heard(
    store: EventStore, facts: Facts
) -> None:
    heard: list[tuple[StoredEvent, ...]] = []
    store.listen(lambda _, events, __: heard.append(events), live=True)
    many = [facts.told(f"msg_{number}") for number in range(limits.APPEND_EVENTS_MAX + 1)]
    with pytest.raises(AssertionError):
        await append(store, many)
    assert await store.latest(SESSION) == 0
    await append(store, many[:-1])
    copy = [facts.told(f"msg_copy_{number}") for number in range(len(many))]
    appended = await store.append(SESSION, copy, location=LOCATION, copied=True)
    assert [len(events) for events in heard] == [len(many) - 1, 1]
    assert heard[-1] == appended.events[-1:]


async def test_an_append_of_nothing_is_refused(store: EventStore, facts: Facts) -> None:
    with pytest.raises(AssertionError):
        await append(store, [])
    with pytest.raises(AssertionError):
        await append(store, [Facts(OTHER).told("msg_1")], SESSION)
    assert await store.latest(SESSION) == 0


async def test_a_log_begins_with_the_creation_of_its_session(
    store: EventStore, facts: Facts
) -> None:
    unknown = Facts(OTHER)
    for event in (unknown.admitted("msg_1"), unknown.told("msg_2")):
        with pytest.raises(SessionNotFoundError):
            await append(store, [event, unknown.created()], OTHER)
    assert await store.latest(OTHER) == -1
    assert await rows(store, "SELECT id FROM session_input") == []


async def test_nothing_follows_the_end_of_a_log(store: EventStore, facts: Facts) -> None:
    await append(store, [facts.stamped(Deleted)])
    for event in (facts.told("msg_1"), facts.created(), facts.stamped(Deleted)):
        with pytest.raises(SessionNotFoundError):
            await append(store, [event])
    assert await store.latest(SESSION) == 1
