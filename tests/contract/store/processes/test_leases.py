"""Leases as one process sees them: its own, those of the living, and what the dead left."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from perdure.ports import Transaction
from perdure.schema.ids import SessionID
from perdure.store.log.event_store import EventStore
from perdure.store.processes import lease_table
from perdure.store.processes.lease_table import Lease, LeaseHeldError
from perdure.store.processes.leases import Leases
from perdure.store.tables import attempt_table
from tests.fixtures import rows

FREE, MINE, THEIRS, LEFT, RETURNED = (
    SessionID(f"ses_{name}") for name in ("free", "mine", "theirs", "left", "returned")
)
LIVING = frozenset({"me", "them"})


@dataclass
class Resident:
    me: str
    living: frozenset[str] = LIVING
    stopped: frozenset[str] = frozenset()

    def alive(self, process: str) -> bool:
        return process in self.living

    def others(self) -> frozenset[str]:
        return self.living - {self.me}

    def beat(self) -> None:
        pass

    def silent(self) -> Mapping[str, str]:
        return {name: f"process {name}" for name in self.stopped}


def leases_of(store: EventStore, processes: Resident) -> Leases:
    return Leases(store.database, processes, is_running=attempt_table.is_running)


@pytest.fixture
async def mine(store: EventStore) -> Leases:
    """Those of a process `me`, beside one that lives, one that died and one that gave back."""
    held = (("me", MINE), ("them", THEIRS), ("dead", LEFT), ("gone", RETURNED))
    by_name = {name: leases_of(store, Resident(name)) for name, _ in held}
    for name, session_id in held:
        await by_name[name].take_over(session_id, look_at_nothing)
    await by_name["gone"].release_all()
    return by_name["me"]


async def look_at_nothing(_tx: Transaction, _before: Lease | None) -> None:
    return None


async def lease(store: EventStore, session_id: SessionID) -> Lease | None:
    return await store.database.read(lambda tx: lease_table.get(tx, session_id))


async def test_it_is_known_who_holds_a_session(store: EventStore, mine: Leases) -> None:
    async def look(tx: Transaction) -> list[tuple[str, bool]]:
        every = (FREE, MINE, THEIRS, LEFT, RETURNED)
        return [(await mine.holder(tx, one), await mine.runs_elsewhere(tx, one)) for one in every]

    assert await store.database.read(look) == [
        ("free", False),
        ("me", False),
        ("other", True),
        ("dead", False),
        ("free", False),
    ]
    assert await mine.list_orphaned() == [LEFT]


async def test_whoever_takes_a_lease_has_told_its_name_before(
    store: EventStore, mine: Leases
) -> None:
    names = await rows(store, "SELECT name FROM process ORDER BY name")
    assert names == [("dead",), ("gone",), ("me",), ("them",)]
    newcomer = leases_of(store, Resident("new", LIVING | {"new"}))

    async def look(_tx: Transaction, before: Lease | None) -> Lease | None:
        return before

    assert await newcomer.take_over(FREE, look) == (None, None)
    assert ("new",) in await rows(store, "SELECT name FROM process")


async def test_what_the_dead_left_is_taken_over_with_a_look_at_it(
    store: EventStore, mine: Leases
) -> None:
    async def look(_tx: Transaction, before: Lease | None) -> str:
        return "" if before is None else f"of {before.process}"

    assert await mine.take_over(LEFT, look) == (Lease("dead", 1), "of dead")
    assert await lease(store, LEFT) == Lease("me", 2)
    assert await mine.take_over(LEFT, look) == (Lease("me", 2), "of me")
    assert await mine.take_over(RETURNED, look) == (Lease(lease_table.RELEASED, 1), "of ")


async def test_what_cannot_be_looked_at_is_not_taken_over(store: EventStore, mine: Leases) -> None:
    async def look(_tx: Transaction, _before: Lease | None) -> str:
        raise LookupError

    with pytest.raises(LookupError):
        await mine.take_over(LEFT, look)
    assert await lease(store, LEFT) == Lease("dead", 1)
    with pytest.raises(LeaseHeldError):
        await mine.take_over(THEIRS, look)


async def test_only_the_holder_writes_for_a_run(store: EventStore, mine: Leases) -> None:
    async def job(tx: Transaction) -> None:
        await tx.execute("INSERT INTO process (name) VALUES ('written')")

    with pytest.raises(LeaseHeldError, match=f"{THEIRS} is run by process them"):
        await mine.write_running(THEIRS, job)
    assert ("written",) not in await rows(store, "SELECT name FROM process")
    await mine.write_running(FREE, job)
    assert ("written",) in await rows(store, "SELECT name FROM process")
    assert await lease(store, FREE) == Lease("me", 1)


async def test_a_lease_is_anothers_unless_it_is_mine_or_nobodys(mine: Leases) -> None:
    found = [None, Lease("me", 1), Lease(lease_table.RELEASED, 1), Lease("them", 1)]
    assert [mine.is_held_by_other(one) for one in found] == [False, False, False, True]
    assert [mine.is_mine(one) for one in found] == [False, True, False, False]


async def test_a_process_gives_back_its_own_leases_only(store: EventStore, mine: Leases) -> None:
    await mine.release_all()
    assert await lease(store, MINE) == Lease(lease_table.RELEASED, 1)
    assert await lease(store, THEIRS) == Lease("them", 1)


async def test_a_silent_process_loses_a_session_that_does_not_run_and_no_other(
    store: EventStore, mine: Leases
) -> None:
    them, me = leases_of(store, Resident("them")), Resident("me", stopped=frozenset({"them"}))
    await store.database.write(lambda tx: attempt_table.put(tx, THEIRS, "prepared", step=1))
    with pytest.raises(LeaseHeldError):
        await leases_of(store, me).take_over(THEIRS, look_at_nothing)
    await store.database.write(lambda tx: attempt_table.clear(tx, THEIRS))
    await leases_of(store, me).take_over(THEIRS, look_at_nothing)
    assert await lease(store, THEIRS) == Lease("me", 2)
    # It has gone on, and finds that it may write no more.
    with pytest.raises(LeaseHeldError):
        await store.database.write(lambda tx: them.hold_within(tx, THEIRS))
