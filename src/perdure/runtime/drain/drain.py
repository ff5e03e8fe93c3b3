"""The Session Drain: one turn after the other, until nothing is pending.

What comes next is decided by core.session.drain; this module carries it out. Which process runs a
Session is runtime.turn.ownership; what a dead process left of it, runtime.drain.crash_recovery; one
turn, runtime.drain.turn.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core.session import drain
from perdure.core.session.drain import DrainStep, Pending, RunTurn, Stop
from perdure.core.session.recovery import AskPerson, Attempt, classify
from perdure.core.session.retry import Retry
from perdure.llm.error import LLMError
from perdure.ports import DatabaseError, Transaction
from perdure.runtime.coordination.pending_calls import asks_person
from perdure.runtime.drain.crash_recovery import CrashRecovery
from perdure.runtime.drain.cut_steps import CutSteps
from perdure.runtime.drain.turn import DrainState, Turn, TurnServices
from perdure.runtime.tasks import shielded
from perdure.runtime.turn import failed_step
from perdure.runtime.turn import turn_input as turn_inputs
from perdure.runtime.turn.boundary import (
    NothingPendingError,
    RevertStagedError,
    SessionMovedError,
    StaleReadError,
)
from perdure.runtime.turn.ownership import SessionOwnership
from perdure.runtime.turn.turn_end import TURN_INTERRUPTED, TurnEnd
from perdure.runtime.turn.turn_input import TurnInput
from perdure.schema.errors import InvalidRequestError, SessionNotFoundError
from perdure.schema.ids import SessionID
from perdure.schema.session.session import SessionInfo
from perdure.schema.value import Value
from perdure.store.processes import interrupt_table, wake_table
from perdure.store.processes.lease_table import LeaseHeldError
from perdure.store.tables import attempt_table, retry_table

_NOTHING_PENDING = Pending(steer=False, queue=False)


class _Found(Value, kw_only=True):
    """What a drain finds when it begins."""

    turn_input: TurnInput | None
    """None: nothing is pending, or it must be read again."""
    mark: Attempt | None
    """The request that an earlier run left unsettled."""
    retry: Retry | None
    """The retry that an earlier run was waiting for."""
    stopped: bool
    """Whether an interrupt has asked for the end of the run."""
    step: DrainStep

    @property
    def is_left_over(self) -> bool:
        """Whether an earlier run left something to finish, or a process died in it."""
        return (
            self.stopped
            or self.retry is not None
            or self.has_request
            or (self.mark is not None and self.mark.deaths > 0)
        )

    @property
    def has_request(self) -> bool:
        return self.mark is not None and self.mark.has_request

    @property
    def is_root(self) -> bool:
        """Whether the Session is known to be no subagent's."""
        return self.turn_input is not None and self.turn_input.session.parent_id is UNSET


class SessionDrain:
    def __init__(
        self,
        services: TurnServices,
        ownership: SessionOwnership,
        recovery: CrashRecovery,
        *,
        finished: Callable[[SessionID], Coroutine[Any, Any, None]],
    ) -> None:
        """`finished` is called after every drain of a subagent, however it ended."""
        self._services = services
        self._store = services.run.store
        self._locations = services.run.locations
        self._ownership = ownership
        self._recovery = recovery
        self._finished = finished
        self._cut_steps = CutSteps(services)

    async def run(self, session_id: SessionID) -> None:
        """Run until idle. If another process runs this Session, ask that one to continue."""
        found: _Found | None = None
        try:
            while (found := await self._find_work(session_id)) is not None:
                with suppress(SessionMovedError):
                    async with self._ownership.own(session_id) as taken_over:
                        if taken_over or found.is_left_over:
                            # Taking over may have settled things. Owned, they stay as they are.
                            found = await self._recovered(await self._look(session_id), session_id)
                        await self._run_turns(session_id, found)
                        return
                # The Session was moved: what is pending runs in its new Location.
        except LeaseHeldError:
            await self._store.database.write(lambda tx: wake_table.request(tx, session_id))
        except SessionNotFoundError:
            # Another process has deleted it.
            return
        except asyncio.CancelledError:
            if not self._services.run.closing():
                await shielded(self._stopped(session_id))
            raise
        finally:
            if found is None or not found.is_root:
                await shielded(self._finished(session_id))

    async def _find_work(self, session_id: SessionID) -> _Found | None:
        found = await self._look(session_id)
        if found.mark is not None or found.is_left_over:
            return found
        if await self._ownership.is_unfinished(session_id):
            return found
        self._recovery.forget(session_id)
        return None

    async def _look(self, session_id: SessionID) -> _Found:
        async def read(tx: Transaction) -> _Found:
            mark = await attempt_table.get(tx, session_id)
            # What waits is not due unless a run is owed.
            found = None if mark is None else await _load_pending(tx, session_id)
            return _Found(
                turn_input=found,
                mark=mark,
                retry=await retry_table.get(tx, session_id),
                stopped=await interrupt_table.is_requested(tx, session_id),
                step=drain.first_step(_pending(found)),
            )

        return await self._store.database.read(read)

    async def _recovered(self, found: _Found, session_id: SessionID) -> _Found:
        """What is done about an unsettled request of an earlier run; how the drain begins then."""
        if found.stopped:
            await shielded(self._end_stopped(session_id, found.mark))
            found = await self._look(session_id)
        if found.mark is not None and await self._resume_cut(session_id, found.mark):
            found = await self._look(session_id)
        if not found.is_left_over:
            return found
        step = await self._recovery.first_step(session_id, found.mark, found.step)
        waits = await self._store.database.read(lambda tx: retry_table.get(tx, session_id))
        return replace(found, step=step, retry=waits, turn_input=None)

    async def _resume_cut(self, session_id: SessionID, mark: Attempt) -> bool:
        """Go on with the calls of the step that an earlier run left open, if there is one."""
        if not mark.has_request:
            return False
        spent = isinstance(classify(mark), AskPerson)
        if spent and not await self._store.database.read(lambda tx: asks_person(tx, session_id)):
            return False
        orphans = self._ownership.still_running.get(session_id, ())
        try:
            end = await self._cut_steps.resume(
                session_id, step=mark.step, orphans=orphans, only_asked=spent
            )
        except InvalidRequestError:
            # The Location is gone. A client must not see calls that run for ever.
            await shielded(self._ownership.settle_lost(session_id))
            raise
        return end is not None

    async def _run_turns(self, session_id: SessionID, found: _Found) -> None:
        state = DrainState(unanswered=found.has_request)
        if found.mark is not None and not found.is_left_over:
            self._services.marks.take_charge(session_id)
        async with self._clearing_marks(session_id, state):
            step, read = found.step, found.turn_input
            if found.retry is not None and isinstance(step, RunTurn):
                step = await self._wait(session_id, found.retry, state)
            while isinstance(step, RunTurn) and not self._services.run.closing():
                if read is None:
                    read = await self._load(session_id)
                if not await self._may_run(read.session, state):
                    break
                try:
                    async with self._locations.hold(
                        read.session.location, session=session_id
                    ) as location:
                        end = await Turn(self._services, state, read, location).run(step)
                except (RevertStagedError, StaleReadError, NothingPendingError) as stale:
                    step, read = await self._read_again(session_id, step, stale)
                else:
                    state.unanswered = False
                    step, read = await self._after(session_id, end, state)

    @asynccontextmanager
    async def _clearing_marks(
        self, session_id: SessionID, state: DrainState
    ) -> AsyncGenerator[None]:
        """Clear the Session's mark when its run ends, unless a later run must continue from it."""
        keeps_mark = False
        try:
            yield
            # A process that ends begins no turn: the next one goes on.
            keeps_mark = self._services.run.closing()
        except asyncio.CancelledError:
            if state.waited:
                await shielded(self._services.retries.interrupted(session_id))
            # When only this process ends, the next one continues from the mark. Else `run` ends it.
            keeps_mark = True
            if state.unanswered and not self._services.run.closing():
                await shielded(self._record_interrupted(session_id))
            raise
        except (DatabaseError, InvalidRequestError) as error:
            # The disk failed, or the Location is gone: the next run continues from the mark.
            keeps_mark = state.unanswered or isinstance(error, DatabaseError)
            raise
        finally:
            if not keeps_mark and self._services.marks.may_exist(session_id):
                await shielded(self._services.marks.clear(session_id))

    async def _may_run(self, session: SessionInfo, state: DrainState) -> bool:
        """Whether the next turn may begin; False while a revert is staged."""
        if state.location not in (None, session.location):
            raise SessionMovedError(session.id)
        state.location = session.location
        if session.revert is not UNSET:
            return False
        if state.waited:
            state.waited = False
            await self._services.retries.begin(session.id)
        return True

    async def _read_again(
        self, session_id: SessionID, step: RunTurn, stale: Exception
    ) -> tuple[DrainStep, TurnInput | None]:
        """What comes next when the Session had changed before the boundary was committed."""
        if isinstance(stale, RevertStagedError):
            return Stop(), None
        if isinstance(stale, StaleReadError):
            return step, None
        read = await self._store.database.read(lambda tx: _load_pending(tx, session_id))
        return drain.first_step(_pending(read)), read

    async def _after(
        self, session_id: SessionID, end: TurnEnd, state: DrainState
    ) -> tuple[DrainStep, TurnInput | None]:
        if end.retry is not None:
            return await self._wait(session_id, end.retry, state, because=end.failed), None
        state.failures = 0
        if end.handed_over:
            return drain.repeat_turn(end.step), None
        state.waited_millis = 0
        if not (end.continues or self._services.marks.may_exist(session_id)):
            # The commit that settled the step found no input; what came since wakes the Session.
            return Stop(), None
        read = await self._store.database.read(
            lambda tx: _load_due(tx, session_id, continues=end.continues)
        )
        return drain.next_step(end.step, _pending(read), continues=end.continues), read

    async def _wait(
        self,
        session_id: SessionID,
        waits: Retry,
        state: DrainState,
        *,
        because: LLMError | None = None,
    ) -> DrainStep:
        await self._services.retries.wait(session_id, waits, because=because)
        state.failures, state.waited, state.waited_millis = waits.failed, True, waits.waited
        return drain.repeat_turn(waits.step)

    async def _load(self, session_id: SessionID) -> TurnInput:
        return await self._store.database.read(lambda tx: turn_inputs.load(tx, session_id))

    async def _stopped(self, session_id: SessionID) -> None:
        """An interrupt has ended this drain, wherever it was."""

        async def look(tx: Transaction) -> Attempt | None:
            # Before the lease is ours, what is left is for the drain that the interrupt starts.
            if await self._store.leases.holder(tx, session_id) != "me":
                return None
            return await attempt_table.get(tx, session_id)

        await self._end_stopped(session_id, await self._store.database.read(look))

    async def _end_stopped(self, session_id: SessionID, mark: Attempt | None) -> None:
        """Settle what an interrupt left of a run; only what was asked for since is still owed."""
        if mark is not None and mark.has_request:
            await self._ownership.settle_stopped(session_id)
            # A request that was sent has an answer, if only that it was interrupted.
            await failed_step.record_unanswered(
                self._services.run,
                session_id,
                reason=TURN_INTERRUPTED,
                sent=mark.state == "dispatched",
            )
            await self._store.leases.write_running(
                session_id, lambda tx: retry_table.clear(tx, session_id)
            )
        await self._services.marks.clear_stopped(session_id)

    async def _record_interrupted(self, session_id: SessionID) -> None:
        await failed_step.record_unanswered(self._services.run, session_id, reason=TURN_INTERRUPTED)


async def _load_due(tx: Transaction, session_id: SessionID, *, continues: bool) -> TurnInput | None:
    """What the next turn takes in; None when no run is owed any more."""
    if not continues and await attempt_table.get(tx, session_id) is None:
        return None
    return await turn_inputs.load_pending(tx, session_id, continues=continues)


async def _load_pending(tx: Transaction, session_id: SessionID) -> TurnInput | None:
    return await turn_inputs.load_pending(tx, session_id, continues=False)


def _pending(read: TurnInput | None) -> Pending:
    return _NOTHING_PENDING if read is None else read.inbox.pending
