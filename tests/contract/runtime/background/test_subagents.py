"""Waiting for a child ends, whatever becomes of it; what is left to work on is told of later."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.session import subagent
from perdure.host.clock import SystemClock
from perdure.host.process_locks import SingleProcess
from perdure.ports.subagents import TaskAsk, TaskRefusedError, TaskResult
from perdure.runtime.background.notices import Notices
from perdure.runtime.background.subagents import Subagents, SubagentServices
from perdure.runtime.coordination.coordinator import RunCoordinator
from perdure.runtime.coordination.session_activity import SessionActivity
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.models.model import RequestInfo
from perdure.schema.session.event import Deleted
from perdure.schema.settings.agent import AgentInfo
from perdure.store.log.event_store import EventStore
from perdure.store.processes import interrupt_table
from perdure.store.tables import attempt_table, inbox_table, notice_table, session_table, task_table
from tests.fixtures import LOCATION, SESSION, Facts, append, opened_store, rows

GENERAL = AgentInfo(
    id="general",
    request=RequestInfo(headers={}, body={}),
    mode="subagent",
    hidden=False,
    permissions=(),
)
CALL = MessageID("msg_turn"), ToolCallID("call")
CHILD = subagent.child_session_id(SESSION, *CALL)
PROMPT = subagent.prompt_id(SESSION, *CALL)


def asked(*, call: str = "call", background: bool = False, task_id: str | None = None) -> TaskAsk:
    return TaskAsk(
        session_id=SESSION,
        assistant_message_id=CALL[0],
        call_id=ToolCallID(call),
        calling_agent="build",
        agent=GENERAL,
        caller=None,
        description="Dig a hole",
        prompt="dig",
        task_id=None if task_id is None else SessionID(task_id),
        background=background,
    )


Run = Callable[[EventStore], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Yard:
    store: EventStore
    desk: Subagents
    coordinator: RunCoordinator

    async def state(self) -> str | None:
        found = await rows(self.store, f"SELECT state FROM child_task WHERE message_id='{PROMPT}'")
        return str(found[0][0]) if found else None

    async def told(self) -> list[str]:
        found = await self.store.database.read(
            lambda tx: notice_table.list_pending(tx, SESSION, limit=9)
        )
        return [notice.text for notice in found]

    async def delegate(self, ask: TaskAsk) -> TaskResult:
        async with asyncio.timeout(10):
            return await self.desk.delegate(ask)


@asynccontextmanager
async def yard(path: Path, run: Run, *, patience_seconds: float = 10) -> AsyncGenerator[Yard]:
    """A parent, and children that do what `run` does instead of asking a model."""
    async with opened_store(path / "p.db") as store:
        await append(store, [Facts().created()])

        async def drain(session_id: SessionID) -> None:
            if session_id == SESSION:
                return
            try:
                await run(store)
            except asyncio.CancelledError:
                # As every drain does that an interrupt ends.
                await store.database.write(lambda tx: interrupt_table.clear(tx, session_id))
                raise
            finally:
                await desk.notify_finished(session_id)

        coordinator = RunCoordinator(drain)
        clock = SystemClock()
        desk = Subagents(
            SubagentServices(
                store=store,
                coordinator=coordinator,
                activity=SessionActivity(store, coordinator, clock),
                notices=Notices(store, wake=coordinator.wake),
                processes=SingleProcess(),
                clock=clock,
                patience_seconds=patience_seconds,
            )
        )
        try:
            yield Yard(store, desk, coordinator)
        finally:
            await coordinator.close()


async def answers(store: EventStore) -> None:
    if not await store.database.read(lambda tx: inbox_table.is_waiting(tx, PROMPT)):
        return
    facts = Facts(CHILD)
    prompt = facts.promoted(PROMPT, "dig")
    step = [facts.step("msg_a"), *facts.text("msg_a", "t", "a hole"), facts.ended("msg_a")]
    await store.append(CHILD, [prompt, *step], location=LOCATION)


async def does_nothing(store: EventStore) -> None:
    """As while a person is deciding what stays of the Session."""


async def deletes(store: EventStore) -> None:
    gone = Deleted(timestamp=1, session_id=CHILD)
    if await store.database.read(lambda tx: session_table.load_json(tx, CHILD)) is not None:
        await store.append(CHILD, [gone], location=None)


async def test_a_call_has_what_its_child_said(tmp_path: Path) -> None:
    async with yard(tmp_path, answers) as it:
        result = await it.delegate(asked())
        assert (result.child_id, result.prompt_id) == (CHILD, PROMPT)
        report = result.report
        assert (report.state, report.text, report.steps) == ("completed", "a hole", 1)
        # It is delivered when the call's success is recorded, and not before.
        assert (await it.state(), await it.told()) == ("ended", [])


async def test_a_child_that_takes_too_long_is_left_to_work_and_told_of(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def slowly(store: EventStore) -> None:
        await go_on.wait()
        await answers(store)

    async with yard(tmp_path, slowly, patience_seconds=0.02) as it:
        result = await it.delegate(asked())
        assert result.report.state == "running"
        assert (await it.state(), await it.told()) == ("waiting", [])
        go_on.set()
        await it.coordinator.wait_until_idle(CHILD)
        (told,) = await it.told()
        assert "a hole" in told
        assert await it.state() == "delivered"


async def test_a_child_that_cannot_begin_is_not_waited_for(tmp_path: Path) -> None:
    async with yard(tmp_path, does_nothing) as it:
        result = await it.delegate(asked())
        assert result.report.state == "running"
        assert "cannot begin" in result.report.text
        await it.coordinator.wait_until_idle(CHILD)
        assert (await it.state(), await it.told()) == ("waiting", [])
        # Whenever it comes to its end, its parent hears of it.
        await answers(it.store)
        await it.desk.notify_finished(CHILD)
        assert len(await it.told()) == 1


async def test_a_child_that_is_deleted_meanwhile_is_a_failure(tmp_path: Path) -> None:
    async with yard(tmp_path, deletes) as it:
        report = (await it.delegate(asked())).report
        assert report.state == "failed"
        assert "deleted" in report.text


async def test_however_often_it_is_told_a_parent_hears_it_once(tmp_path: Path) -> None:
    async with yard(tmp_path, answers) as it:
        await it.delegate(asked(background=True))
        await it.coordinator.wait_until_idle(CHILD)
        for _ in range(3):
            await it.desk.notify_finished(CHILD)
        assert len(await it.told()) == 1


class Heir(SingleProcess):
    """Another process, after the one that waited is dead."""

    me = "heir"


async def test_what_a_process_died_with_is_told_by_the_next_one(tmp_path: Path) -> None:
    """It knew the result, and had not recorded the success of the call."""
    async with yard(tmp_path, answers) as it:
        await it.delegate(asked())
        heir = Heir()
        unheard = await it.store.database.read(
            lambda tx: task_table.list_undelivered(tx, process=heir.me, alive=heir.alive)
        )
        assert unheard == [CHILD]
        notices = Notices(it.store, wake=it.coordinator.wake)
        services = SubagentServices(
            store=it.store,
            coordinator=it.coordinator,
            activity=SessionActivity(it.store, it.coordinator, SystemClock()),
            notices=notices,
            processes=heir,
            clock=SystemClock(),
        )
        for _ in range(2):
            await Subagents(services).notify_finished(CHILD)
        (told,) = await it.told()
        assert "a hole" in told
        assert await it.state() == "delivered"


async def test_interrupting_the_call_stops_the_child_and_tells_nobody(tmp_path: Path) -> None:
    began = asyncio.Event()

    async def for_ever(store: EventStore) -> None:
        began.set()
        await asyncio.Event().wait()

    async with yard(tmp_path, for_ever) as it:
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            call = group.create_task(it.desk.delegate(asked()))
            await began.wait()
            call.cancel()
        assert call.cancelled()
        assert it.coordinator.active == ()
        assert (await it.state(), await it.told()) == ("abandoned", [])
        # What it had not begun with, no later start begins with.
        assert await it.store.database.read(attempt_table.list_sessions) == []


async def test_the_same_call_again_makes_nothing(tmp_path: Path) -> None:
    async with yard(tmp_path, answers) as it:
        await it.delegate(asked())
        with pytest.raises(TaskRefusedError, match="made before"):
            await it.delegate(asked())
        below = await it.store.database.read(lambda tx: session_table.children(tx, SESSION))
        assert below == [CHILD]


async def test_a_root_has_only_so_many_children_ever(tmp_path: Path) -> None:
    async with yard(tmp_path, does_nothing) as it:
        for number in range(limits.TASKS_MAX):
            made = Facts(SessionID(f"ses_{number}")).created()
            info = replace(made.info, parent_id=SESSION)
            await append(it.store, [replace(made, info=info)], made.session_id)
        with pytest.raises(TaskRefusedError, match="which is the most"):
            await it.delegate(asked())
        below = await it.store.database.read(lambda tx: session_table.children(tx, SESSION))
        assert len(below) == limits.TASKS_MAX
        # What is there can still be asked to go on, once it is a subagent's.
        with pytest.raises(TaskRefusedError, match="is not one of the subagent 'general'"):
            await it.delegate(asked(task_id="ses_1"))


async def test_a_child_whose_inbox_is_full_is_not_asked_for_more(tmp_path: Path) -> None:
    async with yard(tmp_path, answers) as it:
        await it.delegate(asked())
        facts, most = Facts(CHILD), limits.INBOX_PENDING_MAX
        waiting = [facts.admitted(f"msg_{number}", delivery="queue") for number in range(most)]
        await append(it.store, waiting, CHILD)
        with pytest.raises(TaskRefusedError, match="takes no more"):
            await it.delegate(asked(call="next", task_id=CHILD))
        pending = await it.store.database.read(lambda tx: inbox_table.count_pending(tx, CHILD))
        assert pending == most
