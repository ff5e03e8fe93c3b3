"""The instruction files a Session came upon: each once, bounded, and of this Session only."""

from collections.abc import Iterable

from perdure.core import limits
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationRef
from perdure.schema.session.event import Moved
from perdure.store.log import projector
from perdure.store.log.event_store import EventStore
from perdure.store.tables import instruction_table
from tests.fixtures import OTHER, SESSION, Facts, append


async def add(store: EventStore, session_id: SessionID, paths: Iterable[str]) -> None:
    await store.database.write(lambda tx: instruction_table.add(tx, session_id, paths))


async def of(store: EventStore, session_id: SessionID) -> tuple[str, ...]:
    return await store.database.read(lambda tx: instruction_table.list_paths(tx, session_id))


async def test_files_are_remembered_once_and_by_their_session(
    store: EventStore, facts: Facts
) -> None:
    await add(store, SESSION, ["/b/AGENTS.md", "/a/AGENTS.md", "/b/AGENTS.md"])
    await add(store, OTHER, ["/b/AGENTS.md"])
    assert await of(store, SESSION) == ("/a/AGENTS.md", "/b/AGENTS.md")
    assert await of(store, OTHER) == ("/b/AGENTS.md",)
    await store.database.write(lambda tx: instruction_table.clear(tx, SESSION))
    assert await of(store, SESSION) == ()
    assert await of(store, OTHER) == ("/b/AGENTS.md",)


async def test_files_over_the_limit_of_a_session_are_not_remembered(
    store: EventStore, facts: Facts
) -> None:
    most = limits.INSTRUCTIONS_DISCOVERED_MAX
    await add(store, OTHER, ["/somewhere/else"])
    await add(store, SESSION, [f"/{number:03}" for number in range(most + 2)])
    found = await of(store, SESSION)
    assert (len(found), found[-1]) == (most, f"/{most - 1:03}")


async def test_files_are_forgotten_with_the_move_and_not_when_it_is_folded_again(
    store: EventStore, facts: Facts
) -> None:
    await add(store, SESSION, ["/before"])
    await append(store, [facts.stamped(Moved, location=LocationRef(directory="/elsewhere"))])
    assert await of(store, SESSION) == ()
    await add(store, SESSION, ["/elsewhere/AGENTS.md"])
    await projector.rebuild(store.database)
    assert await of(store, SESSION) == ("/elsewhere/AGENTS.md",)
