"""An end of a run is asked for by Session, and stays asked for until a process has obeyed."""

from perdure.schema.ids import SessionID
from perdure.store.log.event_store import EventStore
from perdure.store.processes import interrupt_table
from tests.fixtures import OTHER, SESSION, Facts


async def asked(store: EventStore) -> tuple[set[SessionID], bool, bool]:
    database = store.database
    return (
        set(await database.read(interrupt_table.list_requested)),
        await database.read(lambda tx: interrupt_table.is_requested(tx, SESSION)),
        await database.read(lambda tx: interrupt_table.is_requested(tx, OTHER)),
    )


async def test_an_end_is_asked_of_one_session(store: EventStore, facts: Facts) -> None:
    assert await asked(store) == (set(), False, False)
    for _ in range(2):
        await store.database.write(lambda tx: interrupt_table.request(tx, SESSION))
    assert await asked(store) == ({SESSION}, True, False)
    await store.database.write(lambda tx: interrupt_table.request(tx, OTHER))
    assert await asked(store) == ({SESSION, OTHER}, True, True)
    await store.database.write(lambda tx: interrupt_table.clear(tx, SESSION))
    assert await asked(store) == ({OTHER}, False, True)
