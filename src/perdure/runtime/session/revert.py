"""Reverts a Session: a boundary message is staged, then cleared or committed.

Staging marks the boundary and hides nothing; committing removes every later message and prompt from
the projections, while the log keeps them. Nothing is promoted in between. Files are restored when a
revert is staged, and changed back when it is cleared (runtime.files.revert); a commit leaves them.
Admitting a prompt commits a staged revert (runtime.session.admission).

Invariant: nothing is staged, cleared or committed while the Session runs, in whichever process, and
a commit ends the Context Epoch, so that context is admitted anew.
"""

import logging
from collections.abc import Callable, Coroutine
from typing import TypeVar

from msgspec import UNSET

from perdure.ports import Clock, Transaction
from perdure.runtime.coordination.coordinator import DrainInterruptedError, RunCoordinator
from perdure.runtime.coordination.session_activity import SessionActivity
from perdure.runtime.session.engine_services import GetEngine
from perdure.runtime.tasks import shielded
from perdure.schema.errors import (
    DomainError,
    MessageNotFoundError,
    ServiceUnavailableError,
    SessionBusyError,
    SessionNotFoundError,
)
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.session.event import RevertCleared, RevertCommitted, RevertStaged, SessionEvent
from perdure.schema.session.session import RevertState, SessionInfo
from perdure.store.log.event_store import EventStore, SequenceConflictError, latest_seq
from perdure.store.tables import file_change_table, message_table, revert_table, session_table

T = TypeVar("T")

logger = logging.getLogger(__name__)


class SessionReverts:
    def __init__(
        self,
        store: EventStore,
        coordinator: RunCoordinator,
        runs: SessionActivity,
        clock: Clock,
        *,
        engine: GetEngine,
    ) -> None:
        self._store = store
        self._coordinator = coordinator
        self._runs = runs
        self._clock = clock
        self._engine = engine

    async def stage(
        self, session_id: SessionID, message_id: MessageID, *, files: bool = True
    ) -> RevertState:
        """Make a message the last that is kept; staging again moves the boundary.

        With `files`, files that the Session changed after the message are restored, unless another
        program has changed them since. Raises RevertConflictError when one cannot be written.
        """
        session, _ = await self._load_with_seq(session_id)
        if await self._store.database.read(lambda tx: _has_files(tx, session_id)):
            return await self._run_exclusively(
                session_id, lambda: self._stage_with_files(session_id, message_id, files=files)
            )
        revert = RevertState(message_id=message_id)

        async def check(tx: Transaction, seq: Seq) -> None:
            await _require_message(tx, session_id, message_id)
            await self._runs.check_idle(tx, session_id)

        await self._store.append(
            session_id, [self._staged(session_id, revert)], location=session.location, within=check
        )
        return revert

    async def clear(self, session_id: SessionID) -> None:
        """Keep everything. A no-op if nothing is staged."""
        if await self._store.database.read(lambda tx: _has_files(tx, session_id)):
            await self._run_exclusively(session_id, lambda: self._clear_with_files(session_id))
            return
        await self._end(session_id, lambda _: self._cleared(session_id))

    async def commit(self, session_id: SessionID) -> None:
        """Remove what came after the boundary. A no-op if nothing is staged."""
        await self._end(
            session_id,
            lambda staged: build_commit(session_id, staged, now=self._clock.now_millis()),
        )

    async def _end(
        self, session_id: SessionID, fact: Callable[[RevertState], SessionEvent]
    ) -> None:
        while True:
            session, seq = await self._load_with_seq(session_id)
            if session.revert is UNSET:
                return
            event = fact(session.revert)

            async def check(tx: Transaction, _: Seq) -> None:
                await self._runs.check_idle(tx, session_id)

            try:
                await self._store.append(
                    session_id, [event], location=session.location, expected=seq, within=check
                )
            except SequenceConflictError:
                # Another revert may be staged by now, or none.
                continue
            # Pending prompts have waited for this.
            self._coordinator.wake(session_id)
            return

    # ---- with files -----------------------------------------------------------------------------

    async def _run_exclusively(
        self, session_id: SessionID, work: Callable[[], Coroutine[None, None, T]]
    ) -> T:
        """Run `work` while nothing else runs in the Session; an interrupt waits for it."""
        await self._store.database.read(lambda tx: self._runs.check_idle(tx, session_id))

        async def done(_: SessionID) -> T | DomainError:
            try:
                return await shielded(work())
            except DomainError as error:
                # A refusal, which must not be reported as a failed run.
                return error

        try:
            outcome = await self._coordinator.run_exclusively(session_id, done)
        except DrainInterruptedError as error:
            raise ServiceUnavailableError(
                "Interrupted; look at the Session for what was done", service="session.revert"
            ) from error
        if isinstance(outcome, DomainError):
            raise outcome
        return outcome

    async def _stage_with_files(
        self, session_id: SessionID, message_id: MessageID, *, files: bool
    ) -> RevertState:
        session, _ = await self._load_with_seq(session_id)
        boundary = await self._store.database.read(
            lambda tx: _require_message(tx, session_id, message_id)
        )
        reverts = self._engine().file_reverts
        plan = await reverts.plan(session_id, after=boundary if files else None)
        revert = await reverts.describe_plan(session, message_id, plan)

        async def within(tx: Transaction, seq: Seq) -> None:
            await _require_message(tx, session_id, message_id)
            await self._check_not_elsewhere(tx, session_id)
            await revert_table.finish(tx, session_id)

        async with reverts.apply_plan(session_id, plan):
            event = self._staged(session_id, revert)
            await self._store.append(session_id, [event], location=session.location, within=within)
        return revert

    async def _clear_with_files(self, session_id: SessionID) -> None:
        reverts = self._engine().file_reverts
        while True:
            session, seq = await self._load_with_seq(session_id)
            if session.revert is UNSET:
                return
            plan = await reverts.plan(session_id, after=None)
            for conflict in plan.conflicts:
                logger.warning("%s is not changed back: %s", conflict.path, conflict.reason)

            async def within(tx: Transaction, _: Seq) -> None:
                await self._check_not_elsewhere(tx, session_id)

            event, location = self._cleared(session_id), session.location
            try:
                async with reverts.apply_plan(session_id, plan):
                    await self._store.append(
                        session_id, [event], location=location, expected=seq, within=within
                    )
            except SequenceConflictError:
                continue
            # Pending prompts have waited for this.
            self._coordinator.wake(session_id)
            return

    async def _check_not_elsewhere(self, tx: Transaction, session_id: SessionID) -> None:
        if await self._runs.runs_elsewhere(tx, session_id):
            raise SessionBusyError(session_id)

    def _staged(self, session_id: SessionID, revert: RevertState) -> RevertStaged:
        now = self._clock.now_millis()
        return RevertStaged(timestamp=now, session_id=session_id, revert=revert)

    def _cleared(self, session_id: SessionID) -> RevertCleared:
        return RevertCleared(timestamp=self._clock.now_millis(), session_id=session_id)

    async def _load_with_seq(self, session_id: SessionID) -> tuple[SessionInfo, Seq]:
        """Return the Session, and the sequence at which it was read."""

        async def job(tx: Transaction) -> tuple[SessionInfo | None, Seq]:
            return await session_table.load(tx, session_id), await latest_seq(tx, session_id)

        session, seq = await self._store.database.read(job)
        if session is None:
            raise SessionNotFoundError(session_id)
        return session, seq


def build_commit(session_id: SessionID, revert: RevertState, *, now: int) -> RevertCommitted:
    return RevertCommitted(timestamp=now, session_id=session_id, message_id=revert.message_id)


async def _has_files(tx: Transaction, session_id: SessionID) -> bool:
    """Whether the Session has changed files, or a revert of it has."""
    if await file_change_table.latest_snapshot(tx, session_id) is not None:
        return True
    return bool(await revert_table.list_staged(tx, session_id))


async def _require_message(tx: Transaction, session_id: SessionID, message_id: MessageID) -> Seq:
    """Return its sequence. Raises MessageNotFoundError, also if a commit has removed it."""
    found = await message_table.get(tx, session_id, message_id)
    if found is None:
        raise MessageNotFoundError(session_id, message_id)
    return found.seq
