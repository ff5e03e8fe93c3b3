"""What of a log tells of requests to models: steps and side work, in order, of one Session."""

from perdure.schema.session.event import Spent
from perdure.store.log import usage
from perdure.store.log.event_store import EventStore
from tests.fixtures import MODEL, OTHER, SESSION, TOKENS, Facts, append


async def test_steps_and_side_work_are_told_in_order_and_answered_turns_counted(
    store: EventStore, facts: Facts
) -> None:
    told = [
        facts.step("msg_1"),
        facts.ended("msg_1"),
        facts.stamped(Spent, purpose="title", model=MODEL, cost=0.5, tokens=TOKENS),
        facts.step("msg_2"),
    ]
    await append(store, [facts.admitted("msg_p"), *told, facts.failed("msg_2")])
    other = Facts(OTHER)
    await append(store, [other.created(), other.step("msg_o"), other.ended("msg_o")], OTHER)
    await append(store, [other.step("msg_q"), other.ended("msg_q")], OTHER)
    assert await store.database.read(lambda tx: usage.load_usage_events(tx, SESSION)) == told
    assert await store.database.read(lambda tx: usage.count_turns(tx, SESSION)) == 1
    assert await store.database.read(lambda tx: usage.count_turns(tx, OTHER)) == 2
