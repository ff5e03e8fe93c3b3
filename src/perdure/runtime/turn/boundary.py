"""The Safe Provider-Turn Boundary: one commit that fixes what a turn depends on.

In this order: make the first baseline, promote input, tell notices, tell what changed in the
context. The first baseline comes before anything is promoted: while it is blocked, prompts stay
pending. Later changes of context follow the promoted input, as one message whose commit also
advances the stored snapshot. Planning is pure; committing checks that the plan still holds.

Invariant: nothing is committed for a Session that was moved or reverted, or whose inbox was
changed, since it was read, nor while a revert of it is staged.
"""

from typing import Final, assert_never

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core.context import system_context
from perdure.core.context.system_context import ContextEpoch, Observation
from perdure.core.session import drain, inbox
from perdure.core.session.drain import RunTurn
from perdure.location.workspace.attachments import AttachmentContext, Attachments
from perdure.ports import Clock, IdSource, Transaction
from perdure.runtime.turn.turn_input import TurnInput
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
from perdure.store.log.event_store import EventStore
from perdure.store.tables import attempt_table, epoch_table, notice_table, session_table
from perdure.store.tables.notice_table import Notice

_INBOX_CHANGES: Final = (PromptRevised, PromptCancelled, InboxReordered)


class ContextBlockedError(Exception):
    """The first baseline cannot be made yet. The prompt stays pending and may be tried again."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        super().__init__(f"System Context is not available yet: {', '.join(keys)}")
        self.keys = keys


class SessionMovedError(Exception):
    """The Session moved to another Location; its pending prompts are for that Location."""

    def __init__(self, session_id: SessionID) -> None:
        super().__init__(f"session {session_id} has moved")


class RevertStagedError(Exception):
    """A revert is staged: until it is committed or cleared, nothing is promoted or sent."""

    def __init__(self, session_id: SessionID) -> None:
        super().__init__(f"a revert of session {session_id} is staged")


class StaleReadError(Exception):
    """The Session changed after it was read. Read it again and plan anew."""

    def __init__(self, session_id: SessionID) -> None:
        super().__init__(f"session {session_id} was changed meanwhile")


class NothingPendingError(Exception):
    """The turn was for pending input, and that input was taken back."""

    def __init__(self, session_id: SessionID) -> None:
        super().__init__(f"nothing is pending in session {session_id} any more")


class Boundary(Value, kw_only=True):
    """What the boundary commits, and what stays fixed until its turn is over."""

    session: SessionInfo
    step: int
    epoch: ContextEpoch
    compaction: Seq | None
    callers: tuple[str, ...]
    facts: tuple[SessionEvent, ...]
    stores_epoch: bool
    blocked_by: tuple[str, ...]
    """Context Sources without which a baseline that is due cannot be made."""
    read_at: Seq


def plan(
    found: TurnInput, turn: RunTurn, observation: Observation, *, clock: Clock, ids: IdSource
) -> Boundary:
    """What the boundary would commit now. Raises ContextBlockedError and NothingPendingError."""
    session, waiting = found.session, found.inbox
    promoted = inbox.select_promotions(
        turn.promotion, steers=waiting.steers, queued=waiting.queued, cutoff=found.read_at
    )
    notices = () if turn.promotion == "none" else waiting.notices
    if turn.for_input and not promoted and not notices:
        raise NothingPendingError(session.id)
    facts: list[SessionEvent] = [_promotion(prompt) for prompt in promoted]
    facts += map(_notice, notices)
    context = _reconcile(found, observation)
    if context.update is not None:
        facts.append(
            ContextUpdated(
                timestamp=clock.now_millis(),
                session_id=session.id,
                message_id=ids.message(),
                text=context.update,
            )
        )
    return Boundary(
        session=session,
        step=drain.step_of(turn, promoted=len(promoted)),
        epoch=context.epoch,
        compaction=found.compaction,
        callers=found.callers,
        facts=tuple(facts),
        stores_epoch=context.changed,
        blocked_by=context.blocked_by,
        read_at=found.read_at,
    )


async def with_attachments(boundary: Boundary, attachments: Attachments, agent: str) -> Boundary:
    """The same boundary, with the content of what its prompts attach, read now.

    The content is committed with the promotion or not at all; a later try reads it again.
    """
    above = boundary.callers
    facts = [await _with_content(fact, attachments, agent, above) for fact in boundary.facts]
    return replace(boundary, facts=tuple(facts))


async def commit(store: EventStore, boundary: Boundary) -> None:
    """Commit what was planned. Raises if the Session has changed since it was read."""
    session = boundary.session

    async def within(tx: Transaction, seq: Seq) -> None:
        # Whatever changes a Session is an event: without one, all is as it was read.
        if seq != boundary.read_at + len(boundary.facts):
            await _check_unchanged(tx, boundary)
        await _take_notices(tx, boundary)
        await attempt_table.put(tx, session.id, "prepared", step=boundary.step)
        if boundary.stores_epoch:
            await epoch_table.put(tx, session.id, boundary.epoch)

    async def commit_epoch(tx: Transaction) -> None:
        await within(tx, await event_store.latest_seq(tx, session.id))

    if boundary.facts:
        try:
            await store.append(
                session.id, boundary.facts, location=session.location, running=True, within=within
            )
        except PromptConflictError as error:
            if await _is_cancelled(store, boundary):
                raise StaleReadError(session.id) from error
            raise
    elif boundary.stores_epoch:
        await store.leases.write_running(session.id, commit_epoch)


async def _is_cancelled(store: EventStore, boundary: Boundary) -> bool:
    """Whether a prompt was cancelled that was going to be promoted."""
    return await store.database.read(
        lambda tx: event_store.has_event_since(
            tx, boundary.session.id, boundary.read_at, PromptCancelled
        )
    )


async def _check_unchanged(tx: Transaction, boundary: Boundary) -> None:
    """Another process may have changed the Session since it was read."""
    before = boundary.session
    now = await session_table.require(tx, before.id)
    if now.location != before.location:
        raise SessionMovedError(before.id)
    if now.revert is not UNSET:
        raise RevertStagedError(before.id)
    if await event_store.has_event_since(
        tx, before.id, boundary.read_at, RevertCommitted, *_INBOX_CHANGES
    ):
        raise StaleReadError(before.id)


async def _take_notices(tx: Transaction, boundary: Boundary) -> None:
    for fact in boundary.facts:
        if isinstance(fact, SyntheticAdded) and not await notice_table.remove(tx, fact.message_id):
            raise StaleReadError(fact.session_id)


class _ContextChange(Value, kw_only=True):
    """The epoch from now on, and the text that tells the model of a change."""

    epoch: ContextEpoch
    changed: bool
    update: str | None = None
    blocked_by: tuple[str, ...] = ()


def _reconcile(found: TurnInput, observation: Observation) -> _ContextChange:
    epoch = found.epoch
    if epoch is None:
        return _ContextChange(epoch=_first_epoch(found, observation), changed=True)
    snapshot = system_context.decode_snapshot(epoch.snapshot)
    compacted = found.compaction is not None and found.compaction > epoch.baseline_seq
    reconciled = (
        system_context.replace(observation, snapshot)
        if compacted
        else system_context.reconcile(observation, snapshot)
    )
    match reconciled:
        case system_context.Unchanged():
            return _ContextChange(epoch=epoch, changed=False)
        case system_context.ReplacementBlocked(keys=keys):
            return _ContextChange(epoch=epoch, changed=False, blocked_by=keys)
        case system_context.Updated(text=text, snapshot=changed):
            advanced = ContextEpoch(
                baseline=epoch.baseline,
                baseline_seq=epoch.baseline_seq,
                snapshot=system_context.encode_snapshot(changed),
            )
            return _ContextChange(epoch=advanced, changed=True, update=text)
        case system_context.ReplacementReady(generation=generation):
            seq = found.compaction if compacted and found.compaction else found.read_at
            return _ContextChange(epoch=_epoch(generation, seq), changed=True)
        case _:
            assert_never(reconciled)


def _first_epoch(found: TurnInput, observation: Observation) -> ContextEpoch:
    generation = system_context.initialize(observation)
    if isinstance(generation, system_context.InitializationBlocked):
        raise ContextBlockedError(generation.keys)
    return _epoch(generation, found.read_at)


def _epoch(generation: system_context.Generation, seq: Seq) -> ContextEpoch:
    return ContextEpoch(
        baseline=generation.baseline,
        baseline_seq=seq,
        snapshot=system_context.encode_snapshot(generation.snapshot),
    )


def _promotion(admitted: AdmittedPrompt) -> PromptPromoted:
    return PromptPromoted(
        timestamp=admitted.time_created,
        session_id=admitted.session_id,
        message_id=admitted.id,
        prompt=admitted.prompt,
        delivery=admitted.delivery,
    )


def _notice(notice: Notice) -> SyntheticAdded:
    return SyntheticAdded(
        timestamp=notice.time_created,
        session_id=notice.session_id,
        message_id=notice.id,
        text=notice.text,
    )


async def _with_content(
    fact: SessionEvent, attachments: Attachments, agent: str, above: tuple[str, ...]
) -> SessionEvent:
    if not isinstance(fact, PromptPromoted):
        return fact
    listener = AttachmentContext(
        session_id=fact.session_id, message_id=fact.message_id, agent=agent, above=above
    )
    content = await attachments.read(fact.prompt, listener)
    return replace(fact, attached=content) if content else fact
