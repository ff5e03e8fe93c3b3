"""What waits in a Session, as its table keeps it: in order, once, and never what left it."""

import pytest
from msgspec import UNSET

from perdure.ports import Transaction
from perdure.schema.errors import DamagedRowError
from perdure.schema.ids import MessageID, Seq
from perdure.schema.session.event import InboxReordered, PromptCancelled, PromptRevised
from perdure.schema.session.prompt import Delivery, Prompt
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.store.log.event_store import EventStore
from perdure.store.tables import inbox_table
from tests.fixtures import OTHER, SESSION, Facts, append

ONE, TWO, THREE = (MessageID(f"msg_{number}") for number in (1, 2, 3))


@pytest.fixture
async def three(store: EventStore, facts: Facts) -> Facts:
    """Two steers with a queued prompt between them, at the sequences 1 to 3."""
    queued = facts.admitted(TWO, "two", "queue")
    await append(store, [facts.admitted(ONE, "one"), queued, facts.admitted(THREE, "three")])
    return facts


async def waiting(store: EventStore, delivery: Delivery = "steer", limit: int = 9) -> list[str]:
    found = await store.database.read(
        lambda tx: inbox_table.list_pending(tx, SESSION, delivery, limit=limit)
    )
    return [entry.prompt.text for entry in found]


async def more_than(store: EventStore, count: int) -> bool:
    return await store.database.read(
        lambda tx: inbox_table.has_more_pending(tx, SESSION, than=count)
    )


async def count(store: EventStore) -> int:
    return await store.database.read(lambda tx: inbox_table.count_pending(tx, SESSION))


async def test_each_delivery_waits_in_the_order_of_admission(
    store: EventStore, three: Facts
) -> None:
    assert await waiting(store) == ["one", "three"]
    assert await waiting(store, limit=1) == ["one"]
    assert await waiting(store, "queue") == ["two"]
    assert await count(store) == 3
    queued = await store.database.read(lambda tx: inbox_table.get(tx, TWO))
    assert queued is not None
    assert (queued.delivery, queued.admitted_seq) == ("queue", 2)


async def test_a_boundary_may_promote_steers_and_one_queued_prompt(
    store: EventStore, three: Facts
) -> None:
    async def promotable(steers_max: int) -> list[str]:
        found = await store.database.read(
            lambda tx: inbox_table.list_next(tx, SESSION, steers_max=steers_max)
        )
        return [prompt.prompt.text for prompt in found]

    await append(store, [three.admitted("msg_4", "four", "queue")])
    assert await promotable(9) == ["one", "three", "two"]
    assert await promotable(1) == ["one", "two"]
    await append(store, [three.promoted(ONE, "one"), three.promoted(TWO, "two")])
    assert await promotable(9) == ["three", "four"]
    await append(store, [three.promoted(THREE, "three")])
    assert await promotable(9) == ["four"]
    await append(store, [three.promoted(MessageID("msg_4"), "four")])
    assert await promotable(9) == []


async def test_what_has_left_does_not_count(store: EventStore, three: Facts) -> None:
    assert await more_than(store, 2)
    assert not await more_than(store, 3)
    await append(store, [three.promoted(ONE, "one")])
    assert not await more_than(store, 2)
    await append(store, [three.stamped(PromptCancelled, message_id=TWO)])
    assert not await more_than(store, 1)
    assert await more_than(store, 0)
    assert await count(store) == 1
    other = Facts(OTHER)
    await append(store, [other.created(), other.admitted("msg_other")], OTHER)
    assert not await more_than(store, 1)
    await append(store, [three.promoted(THREE, "three")])
    for session_id, pending in ((SESSION, []), (OTHER, ["msg_other"])):
        found = await store.database.read(
            lambda tx, session_id=session_id: inbox_table.list_pending(
                tx, session_id, "steer", limit=9
            )
        )
        assert [prompt.id for prompt in found] == pending
    assert await count(store) == 0


async def test_a_cancelled_prompt_keeps_its_receipt(store: EventStore, three: Facts) -> None:
    await append(store, [three.stamped(PromptCancelled, message_id=TWO)])

    async def look(tx: Transaction) -> tuple[bool, bool, list[AdmittedPrompt]]:
        return (
            await inbox_table.is_cancelled(tx, TWO),
            await inbox_table.is_waiting(tx, TWO),
            await inbox_table.list_pending(tx, SESSION, "queue", limit=9),
        )

    assert await store.database.read(look) == (True, False, [])
    receipt = await store.database.read(lambda tx: inbox_table.get_admission(tx, TWO))
    assert receipt is not None
    assert (receipt.admitted_seq, receipt.prompt, receipt.delivery) == (2, Prompt("two"), "queue")


async def test_a_revised_prompt_is_receipted_as_it_was_sent(
    store: EventStore, three: Facts
) -> None:
    revised = three.stamped(
        PromptRevised, message_id=TWO, prompt=Prompt("better"), delivery="steer"
    )
    await append(store, [revised])
    assert await waiting(store) == ["one", "better", "three"]

    async def look(tx: Transaction) -> tuple[object, object]:
        return await inbox_table.get(tx, TWO), await inbox_table.get_admission(tx, TWO)

    now, sent = await store.database.read(look)
    assert isinstance(now, inbox_table.AdmittedPrompt)
    assert isinstance(sent, inbox_table.AdmittedPrompt)
    assert (now.prompt.text, now.delivery, now.admitted_seq) == ("better", "steer", 2)
    assert (sent.prompt.text, sent.delivery, sent.admitted_seq) == ("two", "queue", 2)
    assert now.promoted_seq is UNSET


async def test_places_are_exchanged_among_those_that_are_named_and_wait(
    store: EventStore, three: Facts
) -> None:
    await append(store, [three.admitted("msg_4", "four"), three.promoted(ONE, "one")])
    order = (MessageID("msg_4"), ONE, MessageID("msg_unknown"), THREE)
    await append(store, [three.stamped(InboxReordered, message_ids=order)])
    assert await waiting(store) == ["four", "three"]


async def test_a_prompt_is_promoted_once_and_only_by_its_own_session(
    store: EventStore, three: Facts
) -> None:
    async def promote(tx: Transaction) -> list[bool]:
        return [
            await inbox_table.mark_promoted(tx, OTHER, ONE, Seq(9)),
            await inbox_table.mark_promoted(tx, SESSION, ONE, Seq(9)),
            await inbox_table.mark_promoted(tx, SESSION, ONE, Seq(10)),
        ]

    assert await store.database.write(promote) == [False, True, False]
    found = await store.database.read(lambda tx: inbox_table.get(tx, ONE))
    assert found is not None
    assert found.promoted_seq == 9


async def test_what_came_after_a_boundary_is_taken_out(store: EventStore, three: Facts) -> None:
    await append(store, [three.promoted(ONE, "one")])
    await store.database.write(lambda tx: inbox_table.delete_after(tx, SESSION, Seq(4)))
    assert await store.database.read(lambda tx: inbox_table.get(tx, ONE)) is not None
    await store.database.write(lambda tx: inbox_table.delete_after(tx, SESSION, Seq(2)))
    assert await waiting(store) == []
    assert await waiting(store, "queue") == ["two"]
    assert await store.database.read(lambda tx: inbox_table.get(tx, ONE)) is None


async def test_of_an_unknown_id_there_is_nothing(store: EventStore, three: Facts) -> None:
    unknown = MessageID("msg_unknown")

    async def look(tx: Transaction) -> list[object]:
        return [
            await inbox_table.get(tx, unknown),
            await inbox_table.get_admission(tx, unknown),
            await inbox_table.is_cancelled(tx, unknown),
            await inbox_table.is_waiting(tx, unknown),
        ]

    assert await store.database.read(look) == [None, None, False, False]


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        ("UPDATE session_input SET delivery = 'later'", "has delivery 'later'"),
        ("UPDATE session_input SET prompt_seq = 77", "names no event of the log"),
        ("UPDATE session_input SET prompt_seq = 0", "names an event that is not its own"),
        ("UPDATE session_input SET prompt_seq = 3", "names an event that is not its own"),
    ],
)
async def test_a_damaged_row_is_said_to_be_one(
    store: EventStore, three: Facts, damaged: str, reason: str
) -> None:
    await store.database.write(lambda tx: tx.execute(f"{damaged} WHERE id = 'msg_2'"))
    with pytest.raises(DamagedRowError, match=reason) as caught:
        await store.database.read(lambda tx: inbox_table.get(tx, TWO))
    assert (caught.value.session_id, caught.value.table) == (SESSION, "session_input")
    # The others are readable.
    assert await store.database.read(lambda tx: inbox_table.get(tx, ONE)) is not None
