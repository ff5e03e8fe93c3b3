"""A turn that waits to be sent again: the latest failure counts, and only for its Session."""

from perdure.core.session.retry import Retry
from perdure.schema.ids import SessionID
from perdure.store.log.event_store import EventStore
from perdure.store.tables import retry_table
from tests.fixtures import OTHER, SESSION, Facts


def retry(failed: int) -> Retry:
    return Retry(failed=failed, due=2**40 + failed, delay=500, step=3, message="busy ☃")


async def put(store: EventStore, session_id: SessionID, failed: int) -> None:
    await store.database.write(lambda tx: retry_table.put(tx, session_id, retry(failed)))


async def get(store: EventStore, session_id: SessionID) -> Retry | None:
    return await store.database.read(lambda tx: retry_table.get(tx, session_id))


async def test_the_latest_failure_of_each_session_is_kept(store: EventStore, facts: Facts) -> None:
    await put(store, SESSION, 1)
    await put(store, OTHER, 5)
    await put(store, SESSION, 2)
    assert await get(store, SESSION) == retry(2)
    assert await get(store, OTHER) == retry(5)
    assert set(await store.database.read(retry_table.list_sessions)) == {SESSION, OTHER}


async def test_a_turn_stops_waiting_alone(store: EventStore, facts: Facts) -> None:
    await put(store, SESSION, 1)
    await put(store, OTHER, 1)
    await store.database.write(lambda tx: retry_table.clear(tx, SESSION))
    assert await get(store, SESSION) is None
    assert await store.database.read(retry_table.list_sessions) == [OTHER]
