"""Rows of background jobs: of two that change one, the second changes nothing."""

from functools import partial

from msgspec.structs import replace

from perdure.core.session.job import DetachedProcess, Ending, Job
from perdure.schema.ids import JobID, SessionID, ToolCallID
from perdure.schema.session.event import Deleted
from perdure.store.log.event_store import EventStore
from perdure.store.tables import job_table
from tests.fixtures import OTHER, SESSION, Facts, append


def job(name: str, *, session_id: SessionID = SESSION, at: int = 1) -> Job:
    return Job(
        id=JobID(f"job_{name}"),
        session_id=session_id,
        call_id=ToolCallID("call_1"),
        command="make 'test' ☃",
        directory="/project",
        process=DetachedProcess(pid=7, identity="boot:1", output=f"/data/tool_{name}"),
        owner="prc_1",
        time_started=at,
        deadline=at + 5,
    )


async def put(store: EventStore, *jobs: Job) -> None:
    for one in jobs:
        await store.database.write(partial(job_table.insert, job=one))


async def get(store: EventStore, name: str) -> Job:
    found = await store.database.read(partial(job_table.get, job_id=JobID(f"job_{name}")))
    assert found is not None
    return found


async def test_a_job_is_read_back_as_it_was_written(store: EventStore, facts: Facts) -> None:
    one = job("one")
    await put(store, one)
    assert await get(store, "one") == one
    assert await store.database.read(partial(job_table.get, job_id=JobID("job_no"))) is None


async def test_jobs_are_listed_by_session_and_counted(store: EventStore, facts: Facts) -> None:
    await put(store, job("a", at=1), job("b", at=3), job("c", at=2), job("d", session_id=OTHER))
    await store.database.write(
        partial(job_table.settle, job=replace(job("c"), state="exited", exit_code=0, time_ended=9))
    )
    listed = await store.database.read(
        partial(job_table.list_for_session, session_id=SESSION, limit=2)
    )
    assert [one.id for one in listed] == ["job_b", "job_c"]
    every = await store.database.read(
        partial(job_table.list_for_session, session_id=SESSION, limit=-1)
    )
    assert len(every) == 3
    assert await store.database.read(partial(job_table.count_running, session_id=SESSION)) == (2, 3)
    running = await store.database.read(job_table.list_running)
    assert [one.id for one in running] == ["job_a", "job_b", "job_d"]


async def test_jobs_of_one_moment_have_an_order(store: EventStore, facts: Facts) -> None:
    await put(store, job("b"), job("c"), job("a"))
    listed = await store.database.read(
        partial(job_table.list_for_session, session_id=SESSION, limit=9)
    )
    assert [one.id for one in listed] == ["job_c", "job_b", "job_a"]


async def test_a_job_is_settled_once(store: EventStore, facts: Facts) -> None:
    one = job("one")
    await put(store, one)
    exited = replace(one, state="exited", exit_code=3, time_ended=9)
    await store.database.write(partial(job_table.settle, job=exited))
    await store.database.write(
        partial(job_table.settle, job=replace(one, state="lost", time_ended=10))
    )
    assert await get(store, "one") == exited


async def test_the_first_reason_to_end_a_job_stands(store: EventStore, facts: Facts) -> None:
    await put(store, job("one"), job("two"))
    one = JobID("job_one")
    for late, quiet in ((False, False), (True, True)):
        ending: Ending = "cancelled" if late else "timed_out"
        await store.database.write(
            partial(job_table.set_ending, job_id=one, ending=ending, quiet=quiet)
        )
    assert await get(store, "one") == replace(job("one"), ending="timed_out")
    assert await get(store, "two") == job("two")


async def test_a_job_is_taken_over_by_one_process(store: EventStore, facts: Facts) -> None:
    one = job("one")
    await put(store, one)
    assert await store.database.write(partial(job_table.adopt, job=one, owner="prc_2"))
    assert not await store.database.write(partial(job_table.adopt, job=one, owner="prc_3"))
    assert (await get(store, "one")).owner == "prc_2"


async def test_what_was_shown_is_remembered(store: EventStore, facts: Facts) -> None:
    await put(store, job("one"))
    await store.database.write(
        partial(job_table.set_output_seen, job_id=JobID("job_one"), up_to=2**40)
    )
    assert (await get(store, "one")).seen == 2**40


async def test_a_deletion_takes_its_jobs_along(store: EventStore, facts: Facts) -> None:
    await put(store, job("one"), job("other", session_id=OTHER))
    await append(store, [Deleted(1, SESSION)])
    assert [one.id for one in await store.database.read(job_table.list_running)] == ["job_other"]
