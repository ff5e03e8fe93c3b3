"""Tasks of child Sessions: who is to be told, whom no living process waits for, who bounds whom."""

from msgspec import UNSET
from msgspec.structs import replace

from perdure.ports import Transaction
from perdure.schema.ids import MessageID, ProjectID, SessionID, ToolCallID
from perdure.schema.models.model import NO_TOKENS
from perdure.schema.session.event import SessionCreated, SessionSeed
from perdure.schema.session.session import SessionTime
from perdure.store.log.event_store import EventStore
from perdure.store.processes.lease_table import RELEASED
from perdure.store.tables import deletion_table, session_table, task_table
from perdure.store.tables.task_table import NO_PROCESS, ChildTask
from tests.fixtures import rows


async def made(
    store: EventStore, name: str, parent: str | None = None, *, agent: str | None = None
) -> SessionID:
    session_id = SessionID(f"ses_{name}")
    seed = SessionSeed(
        id=session_id,
        slug=name,
        project_id=ProjectID("global"),
        directory="/",
        path="",
        title=name,
        version="0",
        cost=0,
        tokens=NO_TOKENS,
        time=SessionTime(created=1, updated=1),
        parent_id=UNSET if parent is None else SessionID(f"ses_{parent}"),
        agent=UNSET if agent is None else agent,
    )
    created = SessionCreated(session_id=session_id, info=seed)
    await store.append(session_id, [created], location=None)
    return session_id


def task(child: str, parent: str, number: int = 1, *, by: str = NO_PROCESS) -> ChildTask:
    return ChildTask(
        message_id=MessageID(f"msg_{child}{number}"),
        child_id=SessionID(f"ses_{child}"),
        parent_id=SessionID(f"ses_{parent}"),
        call_id=ToolCallID("call"),
        agent=f"agent of {parent} {number}",
        process=by,
    )


async def put(store: EventStore, *tasks: ChildTask) -> None:
    async def job(tx: Transaction) -> None:
        for one in tasks:
            await task_table.put(tx, one)

    await store.database.write(job)


async def test_a_task_is_open_until_somebody_was_told_or_nobody_is_to_be(store: EventStore) -> None:
    await made(store, "root")
    child = await made(store, "child", "root")
    first, second, third = (task("child", "root", number) for number in (1, 2, 3))
    await put(store, first, second, third)

    async def job(tx: Transaction) -> None:
        await task_table.set_state(tx, first.message_id, "delivered")
        await task_table.set_state(tx, second.message_id, "ended")

    await store.database.write(job)
    assert await store.database.read(lambda tx: task_table.list_open(tx, child)) == [second, third]
    await store.database.write(lambda tx: task_table.abandon(tx, child))
    assert await store.database.read(lambda tx: task_table.list_open(tx, child)) == []


async def test_the_end_of_one_task_is_not_that_of_another(store: EventStore) -> None:
    await made(store, "root")
    child = await made(store, "child", "root")
    await made(store, "sibling", "root")
    done, one = task("child", "root", by="a"), task("child", "root", 2, by="a")
    other = task("sibling", "root", by="b")
    await put(store, done, one, other)

    async def states() -> list[object]:
        found = await rows(store, "SELECT message_id, state FROM child_task")
        state_of = {row[0]: row[1] for row in found}
        return [state_of[each.message_id] for each in (done, one, other)]

    assert await states() == ["waiting", "waiting", "waiting"]
    await store.database.write(lambda tx: task_table.set_state(tx, done.message_id, "delivered"))
    await store.database.write(lambda tx: task_table.detach(tx, one.message_id))
    assert await store.database.read(lambda tx: task_table.list_open(tx, child)) == [
        replace(one, process=NO_PROCESS)
    ]
    assert await store.database.read(lambda tx: task_table.list_open(tx, other.child_id)) == [other]
    await store.database.write(lambda tx: task_table.abandon(tx, child))
    assert await states() == ["delivered", "abandoned", "waiting"]


async def test_only_what_waits_below_the_root_counts_as_running(store: EventStore) -> None:
    root, other = await made(store, "root"), await made(store, "other")
    for name, parent in (("one", "root"), ("two", "one"), ("far", "other")):
        await made(store, name, parent)
    await put(store, task("one", "root"), task("one", "root", 2), task("two", "one"))
    await put(store, task("far", "other"))

    async def running(root_id: SessionID) -> int:
        return await store.database.read(lambda tx: task_table.count_running_below(tx, root_id))

    assert (await running(root), await running(other)) == (2, 1)
    await store.database.write(
        lambda tx: task_table.set_state(tx, task("two", "one").message_id, "ended")
    )
    assert (await running(root), await running(other)) == (1, 1)


async def test_a_task_that_no_living_process_waits_for_is_found(store: EventStore) -> None:
    await made(store, "root")
    for name in ("background", "dead", "alive", "elsewhere"):
        await made(store, name, "root")
    waiters = {"background": NO_PROCESS, "dead": "gone", "alive": "here", "elsewhere": "gone"}
    waiters |= {"left": "gone", "mine": NO_PROCESS, "given back": "gone"}
    await put(store, *(task(name, "root", by=by) for name, by in waiters.items()))
    lease = "INSERT INTO session_lease (session_id, process, generation) VALUES (:id, :process, 1)"
    holders = {"elsewhere": "there", "left": "gone", "mine": "here", "given back": RELEASED}
    for name, holder in holders.items():
        held = {"id": f"ses_{name}", "process": holder}
        await store.database.write(lambda tx, row=held: tx.execute(lease, row))
    found = await store.database.read(
        lambda tx: task_table.list_undelivered(
            tx, process="here", alive=lambda name: name != "gone"
        )
    )
    assert sorted(found) == [
        "ses_background",
        "ses_dead",
        "ses_given back",
        "ses_left",
        "ses_mine",
    ]


async def test_a_child_is_bounded_by_the_agents_that_called_it_and_its_parents(
    store: EventStore,
) -> None:
    root = await made(store, "root", agent="plan")
    await made(store, "child", "root")
    grandchild = await made(store, "grandchild", "child")
    await put(store, task("grandchild", "child"), task("grandchild", "child", 2))

    stray = await made(store, "stray", "grandchild")

    async def above(session_id: SessionID) -> tuple[str, ...]:
        async def job(tx: Transaction) -> tuple[str, ...]:
            return await task_table.agents_above(tx, await session_table.require(tx, session_id))

        return await store.database.read(job)

    # The last caller counts; a child that was not called has its parent's agent above it, if any.
    assert await above(grandchild) == ("agent of child 2", "plan")
    assert await above(stray) == ("agent of child 2", "plan")
    assert await above(root) == ()


async def test_a_task_goes_with_its_child(store: EventStore) -> None:
    await made(store, "root")
    child = await made(store, "child", "root")
    one = task("child", "root")
    await put(store, one)
    await store.database.write(lambda tx: deletion_table.begin(tx, child))
    assert await rows(store, "SELECT state FROM child_task") == []


async def test_a_circle_of_parents_has_an_end(store: EventStore) -> None:
    one, other = await made(store, "one", "other"), await made(store, "other", "one")
    assert await store.database.read(lambda tx: session_table.descendants(tx, one)) == [other]
    assert await store.database.read(lambda tx: session_table.ancestors(tx, one)) == [other]
