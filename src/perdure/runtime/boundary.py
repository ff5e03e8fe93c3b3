"""The Safe Provider-Turn Boundary: initialize, promote, reconcile, in that order, in one commit.

Everything a turn depends on is sampled here and stays fixed until the turn is over. The first
baseline is made before anything is promoted: while it is blocked, the prompt stays pending. Later
changes of context follow the promoted input, as one message whose commit advances the snapshot.
"""

from typing import assert_never

from perdure.core import drain, inbox, limits, system_context
from perdure.core.drain import RunTurn
from perdure.core.system_context import ContextEpoch, Observation
from perdure.ports import Clock, IdSource, Transaction
from perdure.schema.ids import Seq, SessionID
from perdure.schema.session import SessionInfo
from perdure.schema.session_event import ContextUpdated, PromptPromoted, SessionEvent
from perdure.schema.session_input import AdmittedPrompt
from perdure.schema.value import Value
from perdure.store import epoch_table, inbox_table, instruction_table, message_table, session_table
from perdure.store.event_store import EventStore, latest_seq


class ContextBlockedError(Exception):
    """The first baseline cannot be made yet. The prompt stays pending and may be tried again."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        super().__init__(f"System Context is not available yet: {', '.join(keys)}")
        self.keys = keys


class Crossed(Value, kw_only=True):
    """What the boundary settled for the coming turn."""

    session: SessionInfo
    epoch: ContextEpoch
    compaction: Seq | None
    step: int


class Sample(Value, kw_only=True):
    """What a turn is prepared with: the Session, and what its context depends on."""

    session: SessionInfo
    discovered: tuple[str, ...]
    admitted: frozenset[str]


class _Inbox(Value, kw_only=True):
    session: SessionInfo
    epoch: ContextEpoch | None
    compaction: Seq | None
    steers: list[AdmittedPrompt]
    queued: AdmittedPrompt | None
    cutoff: Seq


class Boundary:
    def __init__(self, store: EventStore, clock: Clock, ids: IdSource) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids

    async def sample(self, session_id: SessionID) -> Sample:
        """The Session as it is now; its agent and model count for the coming turn."""

        async def job(tx: Transaction) -> Sample:
            epoch = await epoch_table.get(tx, session_id)
            return Sample(
                session=await session_table.require(tx, session_id),
                discovered=await instruction_table.of(tx, session_id),
                admitted=frozenset() if epoch is None else system_context.keys(epoch.snapshot),
            )

        return await self._store.database.read(job)

    async def cross(self, session: SessionInfo, turn: RunTurn, observation: Observation) -> Crossed:
        sample = await self._store.database.read(lambda tx: _sample(tx, session, turn))
        promoted = inbox.select_promotions(
            turn.promotion,
            steers=sample.steers,
            queued=sample.queued,
            cutoff=sample.cutoff,
        )
        facts: list[SessionEvent] = [_promotion(prompt) for prompt in promoted]
        epoch, told, changed = self._admit_context(sample, observation)
        if told is not None:
            facts.append(told)
        await self._commit(session, facts, epoch if changed else None)
        return Crossed(
            session=session,
            epoch=epoch,
            compaction=sample.compaction,
            step=drain.step_of(turn, promoted=len(promoted)),
        )

    def _admit_context(
        self, sample: _Inbox, observation: Observation
    ) -> tuple[ContextEpoch, ContextUpdated | None, bool]:
        """The epoch from now on, the message that tells of a change, and whether to store it."""
        if sample.epoch is None:
            return self._first_epoch(sample, observation), None, True
        epoch = sample.epoch
        snapshot = system_context.decode_snapshot(epoch.snapshot)
        compacted = sample.compaction is not None and sample.compaction > epoch.baseline_seq
        reconciled = (
            system_context.replace(observation, snapshot)
            if compacted
            else system_context.reconcile(observation, snapshot)
        )
        match reconciled:
            case system_context.Unchanged() | system_context.ReplacementBlocked():
                return epoch, None, False
            case system_context.Updated(text=text, snapshot=changed):
                advanced = ContextEpoch(
                    baseline=epoch.baseline,
                    baseline_seq=epoch.baseline_seq,
                    snapshot=system_context.encode_snapshot(changed),
                )
                return advanced, self._context_updated(sample.session, text), True
            case system_context.ReplacementReady(generation=generation):
                seq = sample.compaction if compacted and sample.compaction else sample.cutoff
                return _epoch(generation, seq), None, True
            case _:
                assert_never(reconciled)

    def _first_epoch(self, sample: _Inbox, observation: Observation) -> ContextEpoch:
        generation = system_context.initialize(observation)
        if isinstance(generation, system_context.InitializationBlocked):
            raise ContextBlockedError(generation.keys)
        return _epoch(generation, sample.cutoff)

    def _context_updated(self, session: SessionInfo, text: str) -> ContextUpdated:
        return ContextUpdated(
            timestamp=self._clock.now_millis(),
            session_id=session.id,
            message_id=self._ids.message(),
            text=text,
        )

    async def _commit(
        self, session: SessionInfo, facts: list[SessionEvent], epoch: ContextEpoch | None
    ) -> None:
        async def put_epoch(tx: Transaction, seq: Seq) -> None:
            if epoch is not None:
                await epoch_table.put(tx, session.id, epoch)

        if facts:
            await self._store.append(
                session.id, facts, location=session.location, running=True, within=put_epoch
            )
        elif epoch is not None:
            await self._store.write_running(session.id, lambda tx: put_epoch(tx, Seq(0)))


async def _sample(tx: Transaction, session: SessionInfo, turn: RunTurn) -> _Inbox:
    steers: list[AdmittedPrompt] = []
    queued: list[AdmittedPrompt] = []
    if turn.promotion != "none":
        # One append can hold so many facts; whatever is over joins at the next boundary.
        steers = await inbox_table.pending(
            tx, session.id, "steer", limit=limits.APPEND_EVENTS_MAX - 2
        )
    if turn.promotion == "queue":
        queued = await inbox_table.pending(tx, session.id, "queue", limit=1)
    return _Inbox(
        session=session,
        epoch=await epoch_table.get(tx, session.id),
        compaction=await message_table.latest_compaction(tx, session.id),
        steers=steers,
        queued=queued[0] if queued else None,
        cutoff=await latest_seq(tx, session.id),
    )


def _promotion(admitted: AdmittedPrompt) -> PromptPromoted:
    return PromptPromoted(
        timestamp=admitted.time_created,
        session_id=admitted.session_id,
        message_id=admitted.id,
        prompt=admitted.prompt,
        delivery=admitted.delivery,
    )


def _epoch(generation: system_context.Generation, seq: Seq) -> ContextEpoch:
    return ContextEpoch(
        baseline=generation.baseline,
        baseline_seq=seq,
        snapshot=system_context.encode_snapshot(generation.snapshot),
    )
