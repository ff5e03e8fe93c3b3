"""The Context Epoch of one Session is kept, replaced and ended by itself."""

from perdure.core.context.system_context import ContextEpoch
from perdure.schema.ids import Seq, SessionID
from perdure.store.log.event_store import EventStore
from perdure.store.tables import epoch_table
from tests.fixtures import OTHER, SESSION, Facts


def epoch(baseline: str) -> ContextEpoch:
    return ContextEpoch(baseline=baseline, baseline_seq=Seq(len(baseline)), snapshot="{}")


async def put(store: EventStore, session_id: SessionID, baseline: str) -> None:
    await store.database.write(lambda tx: epoch_table.put(tx, session_id, epoch(baseline)))


async def get(store: EventStore, session_id: SessionID) -> ContextEpoch | None:
    return await store.database.read(lambda tx: epoch_table.get(tx, session_id))


async def test_an_epoch_is_read_back_by_its_own_session(store: EventStore, facts: Facts) -> None:
    assert await get(store, SESSION) is None
    await put(store, SESSION, "one")
    await put(store, OTHER, "another ☃")
    await put(store, SESSION, "newer")
    assert await get(store, SESSION) == epoch("newer")
    assert await get(store, OTHER) == epoch("another ☃")


async def test_an_epoch_ends_alone(store: EventStore, facts: Facts) -> None:
    await put(store, SESSION, "one")
    await put(store, OTHER, "two")
    await store.database.write(lambda tx: epoch_table.clear(tx, SESSION))
    assert await get(store, SESSION) is None
    assert await get(store, OTHER) == epoch("two")
