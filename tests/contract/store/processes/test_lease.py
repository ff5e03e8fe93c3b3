"""Who may run a Session: one living process at a time."""

import signal
from pathlib import Path

import pytest

from perdure.host.process_locks import ProcessLocks
from perdure.ports import Transaction
from perdure.schema.ids import SessionID
from perdure.store.log.event_store import EventStore
from perdure.store.processes import lease_table, wake_table
from perdure.store.processes.lease_table import Lease, LeaseHeldError
from tests.fixtures import LOCATION, SESSION, Facts, append, child, end, line, opened_store, rows
from tests.requirements import requirement

WRITER = "tests.contract.store.writer"


def locks(data: Path, name: str = "here") -> ProcessLocks:
    return ProcessLocks(str(data / "processes"), name)


async def run_something(store: EventStore, message: str) -> Lease | None:
    facts = Facts()
    event = facts.admitted(message)
    appended = await store.append(SESSION, [event], location=LOCATION, running=True)
    return appended.lease


async def holder(store: EventStore) -> str:
    return await store.database.read(lambda tx: store.leases.holder(tx, SESSION))


@requirement("S14")
async def test_the_first_append_of_a_run_takes_the_lease_and_keeps_it(tmp_path: Path) -> None:
    with locks(tmp_path) as here:
        async with opened_store(tmp_path / "p.db", processes=here) as store:
            await append(store, [Facts().created()])
            assert await holder(store) == "free"
            assert await run_something(store, "msg_1") == Lease("here", 1)
            assert await run_something(store, "msg_2") == Lease("here", 1)
            assert await holder(store) == "me"


async def test_a_session_that_a_living_process_runs_is_refused_whole(tmp_path: Path) -> None:
    with locks(tmp_path) as here:
        async with opened_store(tmp_path / "p.db", processes=here) as store:
            await append(store, [Facts().created()])
            process = await child(WRITER, str(tmp_path), "there", "hold")
            assert await line(process) == "held"
            with pytest.raises(LeaseHeldError) as caught:
                await run_something(store, "msg_1")
            assert caught.value.process == "there"
            with pytest.raises(LeaseHeldError):
                await store.database.write(lambda tx: store.leases.hold_within(tx, SESSION))
            assert await store.latest(SESSION) == 0
            # Admitting a prompt needs no lease: the process that runs the Session will find it.
            await append(store, [Facts().admitted("msg_2")])
            assert await end(process) == 0


async def test_the_lease_of_a_killed_process_is_free_at_once(tmp_path: Path) -> None:
    with locks(tmp_path) as here:
        async with opened_store(tmp_path / "p.db", processes=here) as store:
            await append(store, [Facts().created()])
            process = await child(WRITER, str(tmp_path), "there", "hold")
            assert await line(process) == "held"
            process.kill()
            assert await process.wait() == -signal.SIGKILL
            assert await run_something(store, "msg_1") == Lease("here", 2)


async def test_a_released_lease_may_be_taken_and_its_generation_grows(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    for generation, name in enumerate(("first", "second", "first"), 1):
        with locks(tmp_path, name) as here:
            async with opened_store(path, processes=here, seed=generation) as store:
                if generation == 1:
                    await append(store, [Facts().created()])
                assert await run_something(store, f"msg_{generation}") == Lease(name, generation)
                await store.leases.release_all()
                assert await holder(store) == "free"
                assert await rows(store, "SELECT process FROM session_lease") == [("",)]


async def test_a_run_asked_of_another_is_answered_by_its_holder_or_when_that_is_gone(
    store: EventStore, facts: Facts
) -> None:
    living = {"me", "other"}

    async def answerable(process: str) -> list[str]:
        return list(
            await store.database.read(
                lambda tx: wake_table.list_for_process(
                    tx, process=process, alive=living.__contains__
                )
            )
        )

    await store.database.write(lambda tx: wake_table.request(tx, facts.session_id))
    await store.database.write(lambda tx: wake_table.request(tx, facts.session_id))
    assert await answerable("me") == [SESSION]
    await store.database.write(
        lambda tx: lease_table.hold(tx, SESSION, process="other", alive=living.__contains__)
    )
    assert await answerable("me") == []
    assert await answerable("other") == [SESSION]
    living.discard("other")
    assert await answerable("me") == [SESSION]
    living.add("other")
    await store.database.write(lambda tx: lease_table.release_all(tx, "other"))
    assert await answerable("me") == [SESSION]
    await store.database.write(lambda tx: wake_table.clear(tx, SESSION))
    assert await answerable("me") == []


async def test_it_can_be_told_who_holds_what(store: EventStore) -> None:
    async def job(tx: Transaction) -> list[list[str]]:
        for session, process in (("ses_a", "here"), ("ses_b", "there"), ("ses_c", "here")):
            await lease_table.hold(
                tx, SessionID(session), process=process, alive=lambda process: True
            )
        await lease_table.release_all(tx, "there")
        here = sorted(await lease_table.list_sessions(tx, "here"))
        return [
            await lease_table.list_processes(tx),
            [*here],
            [*await lease_table.list_sessions(tx, "there")],
        ]

    # A lease that was given back is free.
    assert await store.database.write(job) == [["here"], ["ses_a", "ses_c"], []]
