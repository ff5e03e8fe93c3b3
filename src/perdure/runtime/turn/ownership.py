"""Ownership of Sessions by this process: the lease, and what is cached while it is held.

The first run of a Session in this process takes the lease and settles what a dead process left
unfinished. Ownership outlasts a run; it ends when a run fails, so that the next starts from what is
on disk. A run that could not write, or had no memory left, is settled as one that died. What to do
when another process has the lease is the caller's decision.
"""

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core.compaction import outcome
from perdure.core.compaction.outcome import CompactionFailed
from perdure.core.session import recovery
from perdure.core.session.recovery import AskPerson, Attempt
from perdure.core.session.retry import Retry
from perdure.ports import DatabaseError, Transaction
from perdure.runtime.coordination.pending_calls import asks_person, waits_for_person
from perdure.runtime.tasks import shielded
from perdure.runtime.turn import failed_step
from perdure.runtime.turn.history_cache import HistoryCache
from perdure.runtime.turn.services import RunServices
from perdure.runtime.turn.step_log import StepUnrecordedError
from perdure.schema.approval.pending import PendingRequest
from perdure.schema.approval.permission import PermissionRequest
from perdure.schema.errors import DamagedRowError
from perdure.schema.ids import Seq, SessionID
from perdure.schema.live_event import PermissionReplied, QuestionRejected
from perdure.schema.location import LocationRef
from perdure.schema.session.event import (
    CompactionEnded,
    CompactionReported,
    CompactionStarted,
    Deleted,
    RevertCommitted,
    SessionEvent,
    ToolFailed,
)
from perdure.schema.session.message import SessionMessage
from perdure.schema.session.session import SessionInfo
from perdure.schema.value import Value
from perdure.store.log.event_store import (
    StoredEvent,
    has_event_since,
    latest_of,
)
from perdure.store.processes import interrupt_table
from perdure.store.processes.lease_table import Lease
from perdure.store.tables import attempt_table, message_table, pending_table, retry_table
from perdure.store.tables.message_table import MessageRow

logger = logging.getLogger(__name__)


class SessionOwnership:
    def __init__(self, services: RunServices) -> None:
        self._services = services
        self._store = services.store
        self._held: set[SessionID] = set()
        self._cut_off: dict[SessionID, str] = {}
        """Runs of our own that could not record how they ended, and why their steps failed."""
        self.still_running: dict[SessionID, tuple[str, ...]] = {}
        """What a dead process ran for a Session and could not be ended, in words."""
        self.histories = HistoryCache()
        self._store.listen(self._heard)

    @asynccontextmanager
    async def own(self, session_id: SessionID) -> AsyncGenerator[bool]:
        """Whether the lease was taken only now, and what was left unfinished settled.

        Raises LeaseHeldError when another living process runs this Session.
        """
        try:
            taken_over = session_id not in self._held
            if taken_over:
                # Uncut: once the lease is ours, no process can tell that it was left behind.
                await shielded(self._take_over(session_id))
            yield taken_over
        except (DatabaseError, StepUnrecordedError, MemoryError) as error:
            self._forget(session_id)
            told = isinstance(error, StepUnrecordedError)
            self._cut_off[session_id] = str(error) if told else recovery.CUT_OFF
            # If nothing can be written even now, the next run settles it.
            with suppress(DatabaseError, MemoryError):
                await shielded(self._take_over(session_id))
            raise
        except BaseException:
            self._forget(session_id)
            raise

    def _forget(self, session_id: SessionID) -> None:
        """Whatever went wrong, the next run starts from what is on disk."""
        self._held.discard(session_id)
        self.still_running.pop(session_id, None)
        self.histories.drop(session_id)

    def _heard(
        self, session_id: SessionID, events: tuple[StoredEvent, ...], _: LocationRef | None
    ) -> None:
        # Its id may be used again, by a Session that has nothing in common with it.
        if isinstance(events[-1].event, Deleted):
            self._forget(session_id)

    async def unfinished(self) -> list[SessionID]:
        """Sessions that a dead process left in the middle of something."""
        left = await self._store.leases.list_orphaned()
        left += await self._store.database.read(attempt_table.list_sessions)
        return [found for found in dict.fromkeys(left) if await self._is_unfinished_for_sure(found)]

    async def is_unfinished(self, session_id: SessionID) -> bool:
        if session_id in self._held:
            return False

        async def look(tx: Transaction) -> bool:
            holder = await self._store.leases.holder(tx, session_id)
            if holder != "other" and await attempt_table.get(tx, session_id) is not None:
                return True
            if holder != "dead":
                return False
            if await message_table.has_open_shell(tx, session_id):
                return True
            if await _has_open_compaction(tx, session_id, newest=_NEWEST_EVENTS):
                return True
            newest = await message_table.latest_conversation_message(tx, session_id)
            if newest is not None and recovery.is_unfinished(newest.message()):
                return not await _is_taken_back(tx, session_id, newest)
            return await retry_table.get(tx, session_id) is not None

        return await self._store.database.read(look)

    async def _is_unfinished_for_sure(self, session_id: SessionID) -> bool:
        try:
            return await self.is_unfinished(session_id)
        except DamagedRowError as error:
            # It cannot be run. The others can, and must not wait for it.
            logger.warning("left alone: %s", error.message)
            return False

    async def _take_over(self, session_id: SessionID) -> None:
        """Take the lease, then settle what the run before left open."""

        async def look(tx: Transaction, before: Lease | None) -> _Left:
            left_behind = self._store.leases.is_held_by_other(before) or session_id in self._cut_off
            # A run that waits for a person did not bring its process down.
            if left_behind and not await waits_for_person(tx, session_id):
                await attempt_table.count_death(tx, session_id)
            await attempt_table.take_over(tx, session_id)
            return await _load_left(tx, session_id)

        before, left = await self._store.leases.take_over(session_id, look)
        left_behind = self._store.leases.is_held_by_other(before) or session_id in self._cut_off
        orphans = await self._end_orphans(session_id, before) if left_behind else ()
        session = await self._settle(session_id, left, orphans)
        if left_behind:
            await self._settle_compaction(session)
        attempt, waits = await self._store.database.read(lambda tx: _owed(tx, session_id))
        if left_behind and (attempt is not None or waits is not None):
            if session_id in self._cut_off:
                # The run is over, and no other process would continue it.
                self._services.wake(session_id)
        elif left_behind and left.unanswered:
            agent = "" if session.agent is UNSET else session.agent
            reason = self._cut_off.get(session_id, recovery.CUT_OFF)
            if reason == recovery.CUT_OFF:
                reason = recovery.UNANSWERED
            await failed_step.record(self._services, session, agent=agent, reason=reason)
        self._held.add(session_id)
        if before is not None and not self._store.leases.is_mine(before):
            # The process that had it takes no more wakes for this Session.
            self._services.wake(session_id)
        self._cut_off.pop(session_id, None)

    async def _settle_compaction(self, session: SessionInfo) -> None:
        """Say that a compaction came to no end, if the process before left one."""
        if not await self._store.database.read(lambda tx: _has_open_compaction(tx, session.id)):
            return
        reported = outcome.report(
            session.id,
            CompactionFailed(outcome.CUT_OFF),
            reason="manual",
            now=self._services.clock.now_millis(),
        )
        assert reported is not None
        await self._store.append(session.id, [reported], location=session.location, running=True)

    async def _end_orphans(self, session_id: SessionID, before: Lease | None) -> tuple[str, ...]:
        """End what the dead process ran for the Session; returns what still runs, in words."""
        if not self._store.leases.is_dead(before):
            return ()
        assert before is not None
        left = await self._services.end_orphans(before.process)
        return tuple(
            f"{orphan.program} (process {orphan.pid})"
            for orphan in left
            if orphan.session == session_id
        )

    async def settle_stopped(self, session_id: SessionID) -> None:
        """Settle what an interrupt left open of a run before it had begun to run its calls."""
        left = await self._store.database.read(lambda tx: _load_left(tx, session_id))
        await self._settle(session_id, replace(left, stopped=True), ())

    async def settle_lost(self, session_id: SessionID) -> None:
        """Settle a step whose calls cannot be decided about; the run is still owed."""
        left = await self._store.database.read(lambda tx: _load_left(tx, session_id))
        orphans = self.still_running.get(session_id, ())
        await self._settle(session_id, left, orphans, leaves_calls=False)

    async def _settle(
        self,
        session_id: SessionID,
        left: "_Left",
        orphans: Sequence[str],
        *,
        leaves_calls: bool = True,
    ) -> SessionInfo:
        """Settle what is open, except a step with calls whose run goes on.

        An answer that was cut is a failed step. Whether it is asked for again is decided later.
        """
        now = self._services.clock.now_millis()
        reason = self._cut_off.get(session_id, recovery.CUT_OFF)
        # A step that cannot be recorded would not be the next time either.
        owed = left.is_owed and reason == recovery.CUT_OFF
        step = recovery.find_cut_step(left.messages)
        goes_on = leaves_calls and owed and left.goes_on
        leave = step.id if goes_on and step is not None and recovery.has_calls(step) else None
        self.still_running[session_id] = tuple(orphans)
        facts: list[SessionEvent] = [
            *recovery.settle_dangling(
                session_id, left.messages, now=now, orphans=orphans, leave=leave
            ),
            *recovery.end_open_shells(session_id, left.messages, now=now, orphans=orphans),
        ]
        if leave is None:
            facts += recovery.fail_open_step(session_id, left.messages, now=now, reason=reason)
        session = await self._store.load_session(session_id)
        void = await self._store.database.read(lambda tx: _list_void(tx, facts)) if facts else []
        while facts:
            piece = self._store.first_piece(facts)
            ends = len(piece) == len(facts) and not owed

            async def within(tx: Transaction, seq: Seq, *, ends: bool = ends) -> None:
                if ends:
                    await attempt_table.release(tx, session_id)

            await self._store.append(
                session_id, piece, location=session.location, running=True, within=within
            )
            facts = facts[len(piece) :]
        for request in void:
            self._services.hub.publish(build_rejection(request), session.location)
        return session


class _Left(Value, kw_only=True):
    """What the run before left of a Session."""

    messages: tuple[SessionMessage, ...]
    unanswered: bool
    """Whether a prompt or a notice was promoted, and no step followed."""
    mark: Attempt | None
    stopped: bool
    """Whether an interrupt had asked for its end."""
    asks: bool
    """Whether calls of its newest step have yet to go on with the answer of a person."""

    @property
    def is_owed(self) -> bool:
        return self.mark is not None and not self.stopped

    @property
    def goes_on(self) -> bool:
        """Whether the run continues without a decision of a person.

        While a person is asked by a call, that goes first, however many processes have died.
        """
        asks_person = isinstance(recovery.classify(self.mark), AskPerson)
        return self.is_owed and (self.asks or not asks_person)


_NEWEST_EVENTS: Final = 50
"""Only these are looked at when a start finds out what to settle: a Session may have many."""


async def _has_open_compaction(tx: Transaction, session_id: SessionID, *, newest: int = -1) -> bool:
    """Whether a compaction began, and no event says how it ended."""
    kinds = (CompactionStarted, CompactionEnded, CompactionReported)
    return await latest_of(tx, session_id, *kinds, newest=newest) is CompactionStarted


async def _load_left(tx: Transaction, session_id: SessionID) -> _Left:
    rows = await message_table.list_after(tx, session_id, await cut_floor(tx, session_id))
    said = await message_table.latest_conversation_message(tx, session_id)
    # A turn that made itself room left its own prompt before the cut.
    earlier = () if said is None or said in rows else (said,)
    messages = [row.message() for row in (*earlier, *rows)]
    taken_back = await _is_taken_back(tx, session_id, said)
    return _Left(
        messages=tuple(messages),
        unanswered=recovery.is_unanswered(messages) and not taken_back,
        mark=await attempt_table.get(tx, session_id),
        stopped=await interrupt_table.is_requested(tx, session_id),
        asks=await asks_person(tx, session_id),
    )


async def _list_void(tx: Transaction, facts: list[SessionEvent]) -> list[PendingRequest]:
    """What a person has yet to answer, and the calls that are settled here asked."""
    rows = [
        row
        for fact in facts
        if isinstance(fact, ToolFailed)
        for row in await pending_table.list_of_call(
            tx, fact.session_id, fact.assistant_message_id, fact.call_id
        )
    ]
    return [row.request for row in rows if row.answer is None]


def build_rejection(request: PendingRequest) -> PermissionReplied | QuestionRejected:
    """The live event of a request that is void."""
    if isinstance(request, PermissionRequest):
        return PermissionReplied(
            session_id=request.session_id, request_id=request.id, reply="reject"
        )
    return QuestionRejected(session_id=request.session_id, request_id=request.id)


async def _owed(tx: Transaction, session_id: SessionID) -> tuple[Attempt | None, Retry | None]:
    return await attempt_table.get(tx, session_id), await retry_table.get(tx, session_id)


async def _is_taken_back(tx: Transaction, session_id: SessionID, said: MessageRow | None) -> bool:
    """Whether a revert removed the answer to this prompt or notice, so that none is due."""
    if said is None or not isinstance(said.message(), recovery.InputMessage):
        return False
    return await has_event_since(tx, session_id, said.seq, RevertCommitted)


async def cut_floor(tx: Transaction, session_id: SessionID) -> Seq:
    """The sequence up to which nothing is sent any more, so nothing can dangle."""
    compaction = await message_table.latest_compaction(tx, session_id)
    return Seq(-1) if compaction is None else Seq(compaction - 1)
