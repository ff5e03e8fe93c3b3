"""Runs subagents: a call creates a child Session, waits until it is idle, and gets its report.

The child runs as every Session does: it has a lease, is recovered and interrupted by itself. Its
creation, its prompt and the row of the waiting call (store.tables.task_table) are one commit, and
their ids derive from the call, so that a retry creates nothing twice. If no call waits, because its
process died or the task runs in the background, the result becomes a notice to the parent.

Invariant: a wait ends. The child becomes idle, is deleted, or runs on and is reported later.
"""

import asyncio
from contextlib import suppress

from msgspec import UNSET

from perdure.core import limits
from perdure.core.session import inbox, subagent, title
from perdure.core.session.subagent import Report
from perdure.ports import Clock, Processes, Transaction
from perdure.ports.subagents import TaskAsk, TaskRefusedError, TaskResult
from perdure.runtime.background import subagent_report
from perdure.runtime.background.notices import Notices
from perdure.runtime.coordination.coordinator import RunCoordinator
from perdure.runtime.coordination.run_request import request_run
from perdure.runtime.coordination.session_activity import SessionActivity
from perdure.runtime.database_errors import TolerateFailure
from perdure.runtime.session import tree
from perdure.runtime.session.admission import PromptAdmission
from perdure.runtime.session.inbox import SessionInbox
from perdure.runtime.session.own_fields import OwnFields
from perdure.runtime.session.seed import SessionPlace, build_seed
from perdure.runtime.tasks import shielded
from perdure.schema.errors import (
    DamagedRowError,
    InboxFullError,
    MessageNotFoundError,
    PromptSettledError,
    SessionNotFoundError,
)
from perdure.schema.ids import Seq, SessionID
from perdure.schema.session.event import PromptAdmitted, SessionCreated, SessionSeed
from perdure.schema.session.prompt import PromptInput
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.session import SessionInfo
from perdure.schema.value import Value
from perdure.store.log.event_store import NO_EVENTS, EventStore, SequenceConflictError
from perdure.store.tables import session_table, task_table
from perdure.store.tables.notice_table import Notice
from perdure.store.tables.task_table import NO_PROCESS, ChildTask

_STARTED = "It works in the background now. You are told when it has come to its end."
_LONG = "It is still at work. You are told when it has come to its end."
_BLOCKED = "It cannot begin yet. You are told when it has come to its end."


class SubagentServices(Value, kw_only=True):
    store: EventStore
    coordinator: RunCoordinator
    activity: SessionActivity
    notices: Notices
    processes: Processes
    clock: Clock
    patience_seconds: float = limits.TASK_WAIT_SECONDS_MAX
    """How long a call waits for a child before the task goes on in the background."""


class Subagents:
    """Implements ports.subagents.SubagentRunner."""

    def __init__(self, services: SubagentServices) -> None:
        self._store = services.store
        self._database = services.store.database
        self._coordinator = services.coordinator
        self._notices = services.notices
        self._processes = services.processes
        self._clock = services.clock
        self._patience_seconds = services.patience_seconds
        self._admissions = PromptAdmission(services.store)
        self._inbox = SessionInbox(services.store, services.coordinator, services.clock)
        self._activity = services.activity

    # ---- the call -------------------------------------------------------------------------------

    async def delegate(self, ask: TaskAsk) -> TaskResult:
        task = self._build_task(ask)
        try:
            await shielded(self._begin(ask, task))
        except asyncio.CancelledError:
            # `_begin` was not refused, else it had raised that: the child exists.
            await shielded(self._stop(task))
            raise
        self._coordinator.wake(task.child_id)
        if ask.background:
            return _result(task, Report(state="running", text=_STARTED))
        return _result(task, await self._wait_for_report(task))

    async def _wait_for_report(self, task: ChildTask) -> Report:
        try:
            async with asyncio.timeout(self._patience_seconds):
                report = await self._wait_until_ended(task)
        except TimeoutError:
            return await self._detach(task, _LONG)
        except BaseException:
            await shielded(self._stop(task))
            raise
        return report or await self._detach(task, _BLOCKED)

    async def _wait_until_ended(self, task: ChildTask) -> Report | None:
        """Wait until the child is idle; return None if it is idle without having ended its task."""
        while True:
            await self._activity.wait_until_idle(task.child_id)
            report, elsewhere = await self._database.read(lambda tx: self._load_progress(tx, task))
            if report is not None or not elsewhere:
                return report
            # Another process has been asked to run it, and has yet to begin.
            await self._clock.sleep(limits.ELSEWHERE_LOOK_SECONDS)

    async def _load_progress(self, tx: Transaction, task: ChildTask) -> tuple[Report | None, bool]:
        report = await subagent_report.load_report(tx, task)
        return report, await self._store.leases.runs_elsewhere(tx, task.child_id)

    async def _detach(self, task: ChildTask, text: str) -> Report:
        await self._database.write(lambda tx: task_table.detach(tx, task.message_id))
        # It may have ended while the row still named a waiting call: then no notice was stored.
        self._coordinator.wake(task.child_id)
        return Report(state="running", text=text)

    async def _stop(self, task: ChildTask) -> None:
        """Interrupt the child with its caller; no result is reported."""
        if self._coordinator.closing:
            # Both continue in the next process, which reports to the parent.
            return
        with TolerateFailure(f"the interrupted subagent {task.child_id} may go on"):
            await self._database.write(lambda tx: task_table.abandon(tx, task.child_id))
            await tree.interrupt_tree(self._store, self._activity, task.child_id)
            # A child that has not begun must not begin later.
            with suppress(PromptSettledError, MessageNotFoundError, SessionNotFoundError):
                await self._inbox.cancel(task.child_id, task.message_id)

    # ---- beginning ------------------------------------------------------------------------------

    async def _begin(self, ask: TaskAsk, task: ChildTask) -> None:
        """Create or continue the child; its prompt and the row of the call commit together."""
        parent = await self._store.load_session(task.parent_id)
        if ask.task_id is not None:
            await self._continue(ask, task)
            return
        now = self._clock.now_millis()
        prompt = inbox.admit(PromptInput(text=ask.prompt))
        created = SessionCreated(
            session_id=task.child_id, info=_build_child_seed(ask, task, parent, now=now)
        )
        admitted = PromptAdmitted(
            timestamp=now,
            session_id=task.child_id,
            message_id=task.message_id,
            prompt=prompt,
            delivery="steer",
        )

        async def within(tx: Transaction, seq: Seq) -> None:
            await _check_room(tx, task.parent_id, new=True)
            await task_table.put(tx, task)
            await request_run(tx, self._store.leases, task.child_id)

        try:
            await self._store.append(
                task.child_id,
                [created, admitted],
                location=parent.location,
                expected=NO_EVENTS,
                within=within,
            )
        except SequenceConflictError as error:
            raise TaskRefusedError("This call has been made before.") from error

    async def _continue(self, ask: TaskAsk, task: ChildTask) -> None:
        child = await self._database.read(lambda tx: session_table.load(tx, task.child_id))
        if child is None or child.parent_id != task.parent_id:
            raise TaskRefusedError(
                f"There is no task {task.child_id[:200]!r} of this Session. Leave task_id out to"
                " begin a new one."
            )
        if child.agent != ask.agent.id:
            raise TaskRefusedError(
                f"The task {child.id} is not one of the subagent {ask.agent.id!r}."
            )
        asked = AdmittedPrompt(
            admitted_seq=NO_EVENTS,
            id=task.message_id,
            session_id=child.id,
            prompt=inbox.admit(PromptInput(text=ask.prompt)),
            delivery="steer",
            time_created=self._clock.now_millis(),
        )

        async def also(tx: Transaction) -> None:
            await _check_room(tx, task.parent_id, new=False)
            await task_table.put(tx, task)

        try:
            await self._admissions.admit(
                child.location, asked, supplied=True, resume=True, also=also
            )
        except InboxFullError as full:
            raise TaskRefusedError(full.message) from full

    def _build_task(self, ask: TaskAsk) -> ChildTask:
        call = ask.session_id, ask.assistant_message_id, ask.call_id
        return ChildTask(
            message_id=subagent.prompt_id(*call),
            child_id=ask.task_id or subagent.child_session_id(*call),
            parent_id=ask.session_id,
            call_id=ask.call_id,
            agent=ask.calling_agent,
            process=NO_PROCESS if ask.background else self._processes.me,
        )

    # ---- the end --------------------------------------------------------------------------------

    async def notify_finished(self, session_id: SessionID) -> None:
        """Report the end of a child's run to the call or the Session that waits for it.

        Called whenever a run ends in this process.
        """
        if self._coordinator.closing:
            # The next process continues what was interrupted.
            return
        told: list[SessionID] = []
        # The row stays: the next end of a run, or the next start, comes back to it.
        what = f"the end of subagent {session_id} is not reported yet"
        with TolerateFailure(what, DamagedRowError):
            if not await self._database.read(lambda tx: task_table.list_open(tx, session_id)):
                return
            told = await self._database.write(lambda tx: self._record_endings(tx, session_id))
        for parent_id in told:
            self._notices.wake(parent_id)

    async def _record_endings(self, tx: Transaction, session_id: SessionID) -> list[SessionID]:
        """Mark ended tasks; return the parents for which a notice was stored."""
        if await self._store.leases.runs_elsewhere(tx, session_id):
            return []
        told: list[SessionID] = []
        for task in await task_table.list_open(tx, session_id):
            report = await subagent_report.load_report(tx, task)
            if report is None:
                continue
            if task.process != NO_PROCESS and self._processes.alive(task.process):
                await task_table.set_state(tx, task.message_id, "ended")
                continue
            await task_table.set_state(tx, task.message_id, "delivered")
            if await self._notices.put(tx, await self._build_notice(tx, task, report)):
                told.append(task.parent_id)
        return told

    async def _build_notice(self, tx: Transaction, task: ChildTask, report: Report) -> Notice:
        child = await session_table.require(tx, task.child_id)
        agent = "" if child.agent is UNSET else child.agent
        return Notice(
            id=subagent.notice_id(task.message_id),
            session_id=task.parent_id,
            text=subagent.render_notice(task.child_id, agent, report),
            time_created=self._clock.now_millis(),
        )


def _result(task: ChildTask, report: Report) -> TaskResult:
    return TaskResult(task.child_id, task.message_id, report)


async def _check_room(tx: Transaction, parent_id: SessionID, *, new: bool) -> None:
    """Raise TaskRefusedError if no more children may run; checked in their transaction."""
    above = await session_table.ancestors(tx, parent_id)
    if len(above) + 1 > limits.TASK_DEPTH_MAX:
        raise TaskRefusedError(
            f"Subagents may be nested {limits.TASK_DEPTH_MAX} deep and no deeper. Do it yourself."
        )
    root = above[-1] if above else parent_id
    if await task_table.count_running_below(tx, root) >= limits.TASKS_RUNNING_MAX:
        raise TaskRefusedError(
            f"{limits.TASKS_RUNNING_MAX} subagents are at work already. Wait for one to end."
        )
    if new and len(await session_table.descendants(tx, root)) > limits.TASKS_MAX:
        raise TaskRefusedError(
            f"This Session has had {limits.TASKS_MAX} subagents, which is the most. Go on with one"
            " of them by its task_id, or do it yourself."
        )


def _build_child_seed(
    ask: TaskAsk, task: ChildTask, parent: SessionInfo, *, now: int
) -> SessionSeed:
    chosen = None if parent.model is UNSET else parent.model
    model = subagent.choose_model(ask.agent, chosen=chosen, caller=ask.caller)
    return build_seed(
        task.child_id,
        SessionPlace.from_session(parent),
        title=title.from_prompt(ask.description) or ask.agent.id,
        now=now,
        agent=ask.agent.id,
        model=UNSET if model is None else model,
        parent_id=parent.id,
        own=OwnFields(permissions=parent.permissions),
    )
