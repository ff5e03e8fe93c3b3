"""The Safe Provider-Turn Boundary: initialize, promote, tell, reconcile: in that order, one commit.

Everything a turn depends on is sampled here and stays fixed until the turn is over. The first
baseline is made before anything is promoted: while it is blocked, the prompt stays pending. Later
changes of context follow the promoted input, as one message whose commit advances the snapshot.

Invariant: nothing is committed for a Session that was moved or reverted, or whose inbox was
changed, since it was looked at, nor while a revert of it is staged.
"""

from typing import Final, assert_never

from msgspec import UNSET

from perdure.core import limits
from perdure.core.context import system_context
from perdure.core.context.system_context import ContextEpoch, Observation
from perdure.core.session import drain, inbox
from perdure.core.session.drain import RunTurn
from perdure.ports import Clock, IdSource, Transaction
from perdure.schema.errors import PromptConflictError
from perdure.schema.ids import Seq, SessionID
from perdure.schema.session.event import (
    ContextUpdated,
    InboxReordered,
    PromptCancelled,
    PromptPromoted,
    PromptRevised,
    RevertCommitted,
    SessionEvent,
    SyntheticAdded,
)
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.session import SessionInfo
from perdure.schema.value import Value
from perdure.store.log import event_store
from perdure.store.log.event_store import EventStore, latest_seq
from perdure.store.tables import (
    attempt_table,
    epoch_table,
    inbox_table,
    instruction_table,
    message_table,
    notice_table,
    session_table,
    task_table,
)
from perdure.store.tables.notice_table import Notice

_INBOX_CHANGES: Final = (PromptRevised, PromptCancelled, InboxReordered)


class ContextBlockedError(Exception):
    """The first baseline cannot be made yet. The prompt stays pending and may be tried again."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        super().__init__(f"System Context is not available yet: {', '.join(keys)}")
        self.keys = keys


class SessionMovedError(Exception):
    """The Session works elsewhere by now. What was pending is pending, and is for that Location."""

    def __init__(self, session_id: SessionID) -> None:
        super().__init__(f"session {session_id} has moved")


class RevertStagedError(Exception):
    """A person is deciding what stays of the Session. Until then nothing is promoted or asked."""

    def __init__(self, session_id: SessionID) -> None:
        super().__init__(f"a revert of session {session_id} is staged")


class StaleReadError(Exception):
    """What the boundary was about to promote is gone, or another by now. It can be tried again."""

    def __init__(self, session_id: SessionID) -> None:
        super().__init__(f"session {session_id} was changed meanwhile")


class NothingPendingError(Exception):
    """The turn was for what is pending, and that was taken back. There is nothing to ask."""

    def __init__(self, session_id: SessionID) -> None:
        super().__init__(f"nothing is pending in session {session_id} any more")


class BoundaryResult(Value, kw_only=True):
    """What the boundary settled for the coming turn."""

    session: SessionInfo
    epoch: ContextEpoch
    compaction: Seq | None
    step: int
    above: tuple[str, ...] = ()
    """The agents of those who called this Session."""


class BoundaryPlan(Value, kw_only=True):
    """What crossing now would settle, and what it would commit."""

    crossed: BoundaryResult
    facts: tuple[SessionEvent, ...]
    stores_epoch: bool
    waits_for: tuple[str, ...]
    """The sources without which a new baseline, which is due, cannot be made."""
    read_at: Seq
    """The end of the log when all this was looked at."""


class TurnInput(Value, kw_only=True):
    """What a turn is prepared with: the Session, and what its context depends on."""

    session: SessionInfo
    discovered: tuple[str, ...]
    admitted: frozenset[str]
    above: tuple[str, ...] = ()
    """The agents of those who called this Session."""


class _Inbox(Value, kw_only=True):
    session: SessionInfo
    epoch: ContextEpoch | None
    compaction: Seq | None
    steers: list[AdmittedPrompt]
    queued: AdmittedPrompt | None
    notices: list[Notice]
    cutoff: Seq
    above: tuple[str, ...]


class Boundary:
    def __init__(self, store: EventStore, clock: Clock, ids: IdSource) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids

    async def sample(self, session_id: SessionID) -> TurnInput:
        """The Session as it is now; its agent and model count for the coming turn."""

        async def job(tx: Transaction) -> TurnInput:
            epoch = await epoch_table.get(tx, session_id)
            session = await session_table.require(tx, session_id)
            return TurnInput(
                session=session,
                above=await task_table.agents_above(tx, session),
                discovered=await instruction_table.list_paths(tx, session_id),
                admitted=frozenset() if epoch is None else system_context.keys(epoch.snapshot),
            )

        return await self._store.database.read(job)

    async def commit(self, plan: BoundaryPlan) -> BoundaryResult:
        """Do what was planned, unless the Session has changed since."""
        await self._commit(plan)
        return plan.crossed

    async def plan(
        self, session: SessionInfo, turn: RunTurn, observation: Observation
    ) -> BoundaryPlan:
        """What crossing would do now. Reads only; raises ContextBlockedError."""
        sample = await self._store.database.read(lambda tx: _sample(tx, session, turn))
        promoted = inbox.select_promotions(
            turn.promotion,
            steers=sample.steers,
            queued=sample.queued,
            cutoff=sample.cutoff,
        )
        if turn.for_input and not promoted and not sample.notices:
            raise NothingPendingError(session.id)
        facts: list[SessionEvent] = [_promotion(prompt) for prompt in promoted]
        facts += map(_told, sample.notices)
        admission = _admit_context(sample, observation)
        if admission.told is not None:
            facts.append(self._context_updated(session, admission.told))
        crossed = BoundaryResult(
            session=session,
            epoch=admission.epoch,
            compaction=sample.compaction,
            step=drain.step_of(turn, promoted=len(promoted)),
            above=sample.above,
        )
        return BoundaryPlan(
            crossed=crossed,
            facts=tuple(facts),
            stores_epoch=admission.stored,
            waits_for=admission.waits_for,
            read_at=sample.cutoff,
        )

    def _context_updated(self, session: SessionInfo, text: str) -> ContextUpdated:
        return ContextUpdated(
            timestamp=self._clock.now_millis(),
            session_id=session.id,
            message_id=self._ids.message(),
            text=text,
        )

    async def _commit(self, plan: BoundaryPlan) -> None:
        session = plan.crossed.session

        async def within(tx: Transaction, seq: Seq) -> None:
            await _check_unmoved(tx, plan)
            await _take_notices(tx, plan)
            await attempt_table.put(tx, session.id, "prepared", step=plan.crossed.step)
            if plan.stores_epoch:
                await epoch_table.put(tx, session.id, plan.crossed.epoch)

        if plan.facts:
            try:
                await self._store.append(
                    session.id, plan.facts, location=session.location, running=True, within=within
                )
            except PromptConflictError as error:
                if await self._is_cancelled(plan):
                    raise StaleReadError(session.id) from error
                raise
        elif plan.stores_epoch:
            await self._store.leases.write_running(session.id, lambda tx: within(tx, Seq(0)))

    async def _is_cancelled(self, plan: BoundaryPlan) -> bool:
        """Whether a prompt was cancelled that was going to be promoted."""
        session_id = plan.crossed.session.id
        return await self._store.database.read(
            lambda tx: event_store.has_event_since(tx, session_id, plan.read_at, PromptCancelled)
        )


async def _check_unmoved(tx: Transaction, plan: BoundaryPlan) -> None:
    """What another process may have done while this one looked at the Session's Location."""
    before = plan.crossed.session
    now = await session_table.require(tx, before.id)
    if now.location != before.location:
        raise SessionMovedError(before.id)
    if now.revert is not UNSET:
        raise RevertStagedError(before.id)
    if await event_store.has_event_since(
        tx, before.id, plan.read_at, RevertCommitted, *_INBOX_CHANGES
    ):
        raise StaleReadError(before.id)


async def _take_notices(tx: Transaction, plan: BoundaryPlan) -> None:
    for fact in plan.facts:
        if isinstance(fact, SyntheticAdded) and not await notice_table.remove(tx, fact.message_id):
            raise StaleReadError(fact.session_id)


class _Admission(Value, kw_only=True):
    """The epoch from now on, what tells of a change, and whether the epoch is to be stored."""

    epoch: ContextEpoch
    stored: bool
    told: str | None = None
    waits_for: tuple[str, ...] = ()


def _admit_context(sample: _Inbox, observation: Observation) -> _Admission:
    if sample.epoch is None:
        return _Admission(epoch=_first_epoch(sample, observation), stored=True)
    epoch = sample.epoch
    snapshot = system_context.decode_snapshot(epoch.snapshot)
    compacted = sample.compaction is not None and sample.compaction > epoch.baseline_seq
    reconciled = (
        system_context.replace(observation, snapshot)
        if compacted
        else system_context.reconcile(observation, snapshot)
    )
    match reconciled:
        case system_context.Unchanged():
            return _Admission(epoch=epoch, stored=False)
        case system_context.ReplacementBlocked(keys=keys):
            return _Admission(epoch=epoch, stored=False, waits_for=keys)
        case system_context.Updated(text=text, snapshot=changed):
            advanced = ContextEpoch(
                baseline=epoch.baseline,
                baseline_seq=epoch.baseline_seq,
                snapshot=system_context.encode_snapshot(changed),
            )
            return _Admission(epoch=advanced, stored=True, told=text)
        case system_context.ReplacementReady(generation=generation):
            seq = sample.compaction if compacted and sample.compaction else sample.cutoff
            return _Admission(epoch=_epoch(generation, seq), stored=True)
        case _:
            assert_never(reconciled)


def _first_epoch(sample: _Inbox, observation: Observation) -> ContextEpoch:
    generation = system_context.initialize(observation)
    if isinstance(generation, system_context.InitializationBlocked):
        raise ContextBlockedError(generation.keys)
    return _epoch(generation, sample.cutoff)


async def _sample(tx: Transaction, session: SessionInfo, turn: RunTurn) -> _Inbox:
    steers: list[AdmittedPrompt] = []
    queued: list[AdmittedPrompt] = []
    notices: list[Notice] = []
    if turn.promotion != "none":
        # One append can hold so many facts; whatever is over joins at the next boundary.
        steers = await inbox_table.list_pending(
            tx, session.id, "steer", limit=limits.APPEND_EVENTS_MAX - 2
        )
        room = limits.APPEND_EVENTS_MAX - 2 - len(steers)
        notices = await notice_table.list_pending(tx, session.id, limit=room)
    if turn.promotion == "queue":
        queued = await inbox_table.list_pending(tx, session.id, "queue", limit=1)
    return _Inbox(
        session=session,
        epoch=await epoch_table.get(tx, session.id),
        compaction=await message_table.latest_compaction(tx, session.id),
        steers=steers,
        queued=queued[0] if queued else None,
        notices=notices,
        cutoff=await latest_seq(tx, session.id),
        above=await task_table.agents_above(tx, session),
    )


def _promotion(admitted: AdmittedPrompt) -> PromptPromoted:
    return PromptPromoted(
        timestamp=admitted.time_created,
        session_id=admitted.session_id,
        message_id=admitted.id,
        prompt=admitted.prompt,
        delivery=admitted.delivery,
    )


def _told(notice: Notice) -> SyntheticAdded:
    return SyntheticAdded(
        timestamp=notice.time_created,
        session_id=notice.session_id,
        message_id=notice.id,
        text=notice.text,
    )


def _epoch(generation: system_context.Generation, seq: Seq) -> ContextEpoch:
    return ContextEpoch(
        baseline=generation.baseline,
        baseline_seq=seq,
        snapshot=system_context.encode_snapshot(generation.snapshot),
    )
