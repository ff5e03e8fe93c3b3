"""The Session Drain: one turn after the other, until nothing immediate remains.

What comes next is decided by core.session.drain; this module carries it out. Whose Session it is,
and what a dead process left of it, is runtime.turn.ownership; one turn, from its boundary to its
end, runtime.drain.turn_cycle.
"""

import asyncio

from msgspec import UNSET

from perdure.core.session import drain
from perdure.core.session.drain import DrainStep, Pending, RunTurn, Stop
from perdure.core.session.retry import Retry
from perdure.llm.error import LLMError
from perdure.ports import DatabaseError, Transaction
from perdure.runtime.drain.crash_recovery import CrashRecovery
from perdure.runtime.drain.turn_cycle import DrainState, TurnCycle
from perdure.runtime.tasks import shielded
from perdure.runtime.turn.boundary import (
    Boundary,
    NothingPendingError,
    RevertStagedError,
    SessionMovedError,
    StaleReadError,
)
from perdure.runtime.turn.ownership import SessionOwnership
from perdure.runtime.turn.request_marks import RequestMarks
from perdure.runtime.turn.retries import Retries
from perdure.runtime.turn.services import RunServices
from perdure.schema.errors import InvalidRequestError, SessionNotFoundError
from perdure.schema.ids import SessionID
from perdure.store.processes import wake_table
from perdure.store.processes.lease_table import LeaseHeldError
from perdure.store.tables import inbox_table, notice_table


class SessionDrain:
    def __init__(
        self,
        services: RunServices,
        ownership: SessionOwnership,
        turns: TurnCycle,
        *,
        boundary: Boundary,
        attempts: RequestMarks,
        retries: Retries,
        recoveries: CrashRecovery,
    ) -> None:
        self._store = services.store
        self._closing = services.closing
        self._ownership = ownership
        self._turns = turns
        self._boundary = boundary
        self._attempts = attempts
        self._retries = retries
        self._recoveries = recoveries

    async def drain(self, session_id: SessionID, force: bool) -> None:
        """Run until idle. Does nothing when another process runs this Session: it is told."""
        while not await self._drained(session_id, force=force):
            # Nothing more runs here. What is pending begins anew, in the Location it is for.
            force = False

    async def _drained(self, session_id: SessionID, *, force: bool) -> bool:
        """Run until idle; False when another process has moved the Session away meanwhile."""
        step = drain.first_step(await self._pending(session_id), force=force)
        owed, left = await self._attempts.left(session_id)
        if isinstance(step, Stop) and not (
            owed or left or await self._ownership.is_unfinished(session_id)
        ):
            return True
        try:
            async with self._ownership.own(session_id):
                if owed or left:
                    # Only now they cannot change any more, except by what is done about them.
                    owed, _ = await self._attempts.left(session_id)
                    step = await self._recoveries.first_step(session_id, owed, step)
                    _, left = await self._attempts.left(session_id)
                owes = owed is not None and owed.state != "begun"
                await self._run(session_id, step, left, owes=owes)
        except LeaseHeldError:
            await self._store.database.write(lambda tx: wake_table.request(tx, session_id))
        except SessionMovedError:
            return False
        except SessionNotFoundError:
            # Another process has deleted it.
            return True
        return True

    async def _run(
        self, session_id: SessionID, step: DrainStep, left: Retry | None, *, owes: bool
    ) -> None:
        """`owes`: what a process that died has promoted may still have no answer."""
        run, kept = DrainState(), False
        try:
            if left is not None and isinstance(step, RunTurn):
                step = await self._wait(session_id, left, run)
            while isinstance(step, RunTurn):
                step, owes = await self._next(session_id, step, run), False
        except asyncio.CancelledError:
            if run.waited:
                await shielded(self._retries.interrupted(session_id))
            # What is owed when only this process ends, the next one goes on with.
            kept = self._closing()
            if owes and not kept:
                await shielded(self._turns.stopped(session_id))
            raise
        except (DatabaseError, InvalidRequestError) as error:
            # A disk that fails, a Location that is gone: who comes next goes on with what is owed.
            kept = owes or isinstance(error, DatabaseError)
            raise
        finally:
            if not kept:
                await shielded(self._attempts.end(session_id))

    async def _next(self, session_id: SessionID, step: RunTurn, run: DrainState) -> DrainStep:
        """One turn, where the run began or not at all: what comes after it."""
        sample = await self._boundary.sample(session_id)
        here = sample.session.location
        if run.home is not None and here != run.home:
            raise SessionMovedError(session_id)
        run.home = here
        if sample.session.revert is not UNSET:
            return Stop()
        if run.waited:
            run.waited = False
            await self._retries.begin(session_id)
        try:
            outcome, end = await self._turns.take(sample, step, run)
        except RevertStagedError:
            return Stop()
        except StaleReadError:
            return step
        except NothingPendingError:
            return drain.first_step(await self._pending(session_id), force=False)
        if end.declined:
            return Stop()
        if end.retry is not None:
            return await self._wait(session_id, end.retry, run, because=end.failed)
        run.failed = 0
        return drain.next_step(outcome, await self._pending(session_id))

    async def _wait(
        self,
        session_id: SessionID,
        waits: Retry,
        run: DrainState,
        *,
        because: LLMError | None = None,
    ) -> DrainStep:
        await self._retries.wait(session_id, waits, because=because)
        run.failed, run.waited = waits.failed, True
        return drain.repeat_turn(waits.step)

    async def _pending(self, session_id: SessionID) -> Pending:
        async def job(tx: Transaction) -> Pending:
            return Pending(
                steer=await inbox_table.has_pending(tx, session_id, "steer"),
                queue=await inbox_table.has_pending(tx, session_id, "queue"),
                notice=await notice_table.has_pending(tx, session_id),
            )

        return await self._store.database.read(job)
