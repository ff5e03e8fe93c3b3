"""Carries out a compaction: prune old large results, or condense Session History to a checkpoint.

Asked for by a person, a compaction that fails says why and leaves everything as it was. One that a
turn needs tries the model once and then cuts without it, so that the Session always goes on; what
cannot be made small enough is told with its reason. What is chosen is core.compaction. Nothing else
runs for the Session meanwhile; see runtime.turn.ownership.

Invariant: only the end of a compaction changes what the model is shown, and none ends that was made
of messages which a revert has taken away or the user has excluded meanwhile.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.compaction import outcome, pruning
from perdure.core.compaction import plan as compaction
from perdure.core.compaction.outcome import (
    INTERRUPTED,
    Compacted,
    CompactionFailed,
    CompactionOutcome,
    NothingToCompact,
    WindowUse,
)
from perdure.core.compaction.plan import CompactionPlan
from perdure.core.compaction.pruning import Prunable
from perdure.core.request import token_budget
from perdure.core.request.token_budget import ConversationSize, Demand
from perdure.location.location import Location
from perdure.ports import Transaction
from perdure.runtime.compaction import session_history, summarizer
from perdure.runtime.compaction.result_pruning import ResultPruning
from perdure.runtime.compaction.session_history import FoundHistory
from perdure.runtime.compaction.summarizer import Summarizer
from perdure.runtime.tasks import shielded
from perdure.runtime.turn import model_choice
from perdure.runtime.turn.boundary import StaleReadError
from perdure.runtime.turn.model_choice import ChosenModel, NoModelChosen
from perdure.runtime.turn.ownership import SessionOwnership
from perdure.runtime.turn.services import RunServices
from perdure.schema.errors import InvalidRequestError
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.session.compaction import CompactionReason
from perdure.schema.session.event import (
    CompactionEnded,
    CompactionStarted,
    MessageExcluded,
    RevertCommitted,
)
from perdure.schema.session.session import SessionInfo
from perdure.schema.value import Confidential, Value
from perdure.store.log import event_store
from perdure.store.processes.lease_table import LeaseHeldError

_EXCLUDED_MEANWHILE: Final = "A message was excluded meanwhile"


class Need(Value, kw_only=True):
    """The room that a turn needs."""

    demand: Demand
    window: int
    """How large the request may be."""
    message_max: int
    """Tokens of the conversation that one message which waits for its answer may have."""
    believed: int = 0
    """A request as large as this has just been too large; 0 if none was."""


class _ExcludedMeanwhileError(Exception):
    """The user excluded a message after it was read to be condensed."""


class _Job(Confidential, kw_only=True):
    session: SessionInfo
    location: Location
    chosen: ChosenModel
    found: FoundHistory
    reason: CompactionReason
    fixed: int
    """Tokens of the request beside the conversation."""
    instruction: str = ""
    room: int | None = None
    """For the conversation afterwards; None: unknown."""
    believed: int = 0

    @property
    def keep_tokens(self) -> int:
        return self.location.settings.compaction.keep_tokens

    @property
    def tokens(self) -> int:
        """The whole request, estimated."""
        return self.fixed + self.found.material.size


class Compactor:
    def __init__(self, services: RunServices, ownership: SessionOwnership) -> None:
        self._services = services
        self._store = services.store
        self._clock = services.clock
        self._ownership = ownership
        self._summarizer = Summarizer(services)
        self._pruning = ResultPruning(services)

    async def compact(self, session_id: SessionID, *, instruction: str = "") -> CompactionOutcome:
        """By hand. Raises CancelledError when interrupted; the old checkpoint then still holds.

        Ends in an event that says what was done, or why nothing was.
        """
        try:
            outcome = await self._compact(session_id, instruction)
        except asyncio.CancelledError:
            await shielded(self._report(session_id, CompactionFailed(INTERRUPTED), "manual"))
            raise
        await self._report(session_id, outcome, "manual")
        return outcome

    async def _compact(self, session_id: SessionID, instruction: str) -> CompactionOutcome:
        try:
            async with self._ownership.own(session_id):
                session, goes_on = await self._store.database.read(
                    lambda tx: session_history.load(tx, session_id)
                )
                if goes_on:
                    # Its process has died, and taking the Session over has woken it.
                    return CompactionFailed("A run that was cut goes on first; try again after it")
                return await self._by_hand(session, instruction)
        except LeaseHeldError:
            return CompactionFailed("Another process is running this Session")
        except InvalidRequestError as unusable:
            return CompactionFailed(unusable.message)
        except StaleReadError:
            return CompactionFailed("The Session was reverted meanwhile")

    async def make_room(
        self, session: SessionInfo, location: Location, chosen: ChosenModel, need: Need
    ) -> Compacted | NothingToCompact:
        """For a turn that is about to be sent."""
        target = token_budget.compaction_target(need.demand, need.window)
        room = max(target, limits.COMPACTION_ROOM_TOKENS_MIN)
        job = _Job(
            session=session,
            location=location,
            chosen=chosen,
            found=await self._found(session, chosen),
            reason="auto",
            fixed=need.demand.fixed,
            room=room,
            believed=need.believed,
        )
        material = job.found.material
        within = compaction.divide_tokens(room, keep_tokens=job.keep_tokens)
        enough = pruning.choose_enough(
            material.history, material.tokens, room=room, keep_tokens=within.recent
        )
        if enough:
            pruned = await self._prune(job, enough)
            await self._report(session.id, pruned, "auto")
            return pruned
        if (refusal := _refusal(job, need)) is not None:
            return refusal
        plan = _plan(job)
        if plan is None or not _is_enough(job, plan, plan.mechanical_summary("")):
            return NothingToCompact(_why_not(job, need, target), job.tokens)
        return await self._summarise_or_cut(job, plan)

    async def _by_hand(self, session: SessionInfo, instruction: str) -> CompactionOutcome:
        if session.revert is not UNSET:
            return CompactionFailed("A revert is staged; commit or clear it first")
        async with self._services.locations.hold(session.location, session=session.id) as location:
            chosen = model_choice.choose(session, location)
            if isinstance(chosen, NoModelChosen):
                return CompactionFailed(chosen.reason)
            found = await self._found(session, chosen)
            fixed = _fixed_tokens(found, location, chosen)
            job = _Job(
                session=session,
                location=location,
                chosen=chosen,
                found=found,
                reason="manual",
                fixed=fixed,
                instruction=instruction,
                room=_room(found, location, chosen, fixed),
            )
            material = found.material
            old = pruning.choose_old(material.history, material.tokens, keep_tokens=job.keep_tokens)
            plan = _plan(job if not old else _as_if_pruned(job, old))
            if plan is None:
                return await self._prune(job, old) if old else _too_short(job)
            if plan.tokens_with("") >= material.size:
                return await self._prune(job, old) if old else _no_gain(job)
            message_id = await self._begin(job)
            summary = await self._summary(job, plan, message_id)
        if isinstance(summary, CompactionFailed):
            return replace(await self._prune(job, old), note=summary.reason) if old else summary
        if plan.tokens_with(summary) >= material.size:
            nothing = _no_gain(job)
            return replace(await self._prune(job, old), note=nothing.reason) if old else nothing
        try:
            return await self._end(job, plan, message_id, summary=summary)
        except _ExcludedMeanwhileError:
            return CompactionFailed(f"{_EXCLUDED_MEANWHILE}; compact again")

    async def _summarise_or_cut(self, job: _Job, planned: CompactionPlan) -> Compacted:
        """Make a checkpoint, with the model if it can."""
        plan: CompactionPlan | None = planned
        message_id = await self._begin(job)
        summary = await self._summary(job, planned, message_id)
        if not isinstance(summary, CompactionFailed) and not _is_enough(job, planned, summary):
            summary = CompactionFailed("the summary was hardly shorter")
        if isinstance(summary, CompactionFailed):
            summary = planned.mechanical_summary(summary.reason)
        before = job.tokens
        while plan is not None:
            try:
                return await self._end(job, plan, message_id, summary=summary)
            except _ExcludedMeanwhileError:
                # Without the model: the turn has waited for it once.
                found = await self._found(job.session, job.chosen)
                job = replace(job, found=found)
                plan = _plan(job)
                summary = "" if plan is None else plan.mechanical_summary(_EXCLUDED_MEANWHILE)
        # What is left is short enough to be sent as it is.
        done = Compacted(by="pruned", tokens_before=before, tokens_after=job.tokens)
        await self._report(job.session.id, done, "auto")
        return done

    async def _summary(
        self, job: _Job, plan: CompactionPlan, message_id: MessageID
    ) -> str | CompactionFailed:
        by = summarizer.condenser(
            job.chosen, job.location, instruction=job.instruction, believed=job.believed
        )
        if isinstance(by, CompactionFailed):
            return by
        return await self._summarizer.summarize(job.session, message_id, plan, by)

    async def _found(self, session: SessionInfo, chosen: ChosenModel) -> FoundHistory:
        return await self._store.database.read(
            lambda tx: session_history.look(tx, session.id, chosen.model)
        )

    # ---- what is recorded -----------------------------------------------------------------------

    async def _report(
        self, session_id: SessionID, ended: CompactionOutcome, reason: CompactionReason
    ) -> None:
        """Record how a compaction ended that made no checkpoint."""
        now = self._clock.now_millis()
        reported = outcome.report(session_id, ended, reason=reason, now=now)
        if reported is not None:
            session = await self._store.load_session(session_id)
            await self._store.append(session_id, [reported], location=session.location)

    async def _prune(self, job: _Job, chosen: Sequence[Prunable]) -> Compacted:
        await self._pruning.prune(job.session, chosen, read_at=job.found.read_at)
        return Compacted(
            by="pruned",
            tokens_before=job.tokens,
            tokens_after=job.tokens - sum(found.saves for found in chosen),
            results=len(chosen),
        )

    async def _begin(self, job: _Job) -> MessageID:
        started = CompactionStarted(
            timestamp=self._clock.now_millis(),
            session_id=job.session.id,
            message_id=self._services.ids.message(),
            reason=job.reason,
            instruction=job.instruction or UNSET,
        )
        await self._store.append(
            job.session.id, [started], location=job.session.location, running=True
        )
        return started.message_id

    async def _end(
        self, job: _Job, plan: CompactionPlan, message_id: MessageID, *, summary: str
    ) -> Compacted:
        session = job.session
        ended = CompactionEnded(
            timestamp=self._clock.now_millis(),
            session_id=session.id,
            message_id=message_id,
            reason=job.reason,
            text=summary,
            recent=plan.recent,
            directives=plan.carried.directives or UNSET,
            todos=plan.carried.todos or UNSET,
        )

        async def within(tx: Transaction, seq: Seq) -> None:
            read_at = job.found.read_at
            if await event_store.has_event_since(tx, session.id, read_at, RevertCommitted):
                raise StaleReadError(session.id)
            if await event_store.has_event_since(tx, session.id, read_at, MessageExcluded):
                raise _ExcludedMeanwhileError

        await shielded(
            self._store.append(
                session.id, [ended], location=session.location, running=True, within=within
            )
        )
        after = job.fixed + plan.tokens_with(summary)
        return Compacted(by="summarised", tokens_before=job.tokens, tokens_after=after)


def _plan(job: _Job) -> CompactionPlan | None:
    return compaction.plan(
        job.found.material, compaction.divide_tokens(job.room, keep_tokens=job.keep_tokens)
    )


def _as_if_pruned(job: _Job, chosen: Sequence[Prunable]) -> _Job:
    """The job with the sizes that its messages would have afterwards."""
    material = job.found.material
    saved: dict[MessageID, int] = {}
    for found in chosen:
        saved[found.message_id] = saved.get(found.message_id, 0) + found.saves
    sized = zip(material.history, material.tokens, strict=True)
    tokens = tuple(size - saved.get(message.id, 0) for message, size in sized)
    return replace(job, found=replace(job.found, material=replace(material, tokens=tokens)))


def _is_enough(job: _Job, plan: CompactionPlan, summary: str) -> bool:
    """Whether a checkpoint with this summary has room, and is worth having."""
    after = plan.tokens_with(summary)
    before = job.found.material.size
    return (job.room is None or after <= job.room) and compaction.frees_enough(before, after)


def _refusal(job: _Job, need: Need) -> NothingToCompact | None:
    """Why nothing is done when one message that waits for its answer is too large alone."""
    largest = job.found.material.largest_input()
    if largest is None or largest[1] <= need.message_max:
        return None
    if need.message_max < limits.COMPACTION_ROOM_TOKENS_MIN:
        # Even a short message would not fit beside instructions and tools.
        return None
    reason = outcome.large_message(job.session.id, *largest, _use(job, need))
    return NothingToCompact(reason, job.tokens)


def _why_not(job: _Job, need: Need, target: int) -> str:
    use = _use(job, need)
    if target < limits.COMPACTION_ROOM_TOKENS_MIN:
        return outcome.large_fixed_part(use)
    return outcome.large_conversation(job.session.id, job.found.material.largest, use)


def _use(job: _Job, need: Need) -> WindowUse:
    model = job.chosen.model.ref
    return WindowUse(
        model=f"{model.provider_id}/{model.id}", window=need.window, fixed=need.demand.fixed
    )


def _too_short(job: _Job) -> NothingToCompact:
    reason = outcome.short_conversation(job.found.material.size, job.keep_tokens)
    return NothingToCompact(reason, job.tokens)


def _no_gain(job: _Job) -> NothingToCompact:
    return NothingToCompact(outcome.no_gain(job.found.material.size), job.tokens)


def _fixed_tokens(found: FoundHistory, location: Location, chosen: ChosenModel) -> int:
    agent = chosen.agent
    system = ("" if agent.system is UNSET else agent.system, found.baseline)
    rules, listed = location.agents.rules(agent.id), location.mcp.estimate()
    tools = location.tools.registry().materialize(rules, listed=listed)
    return token_budget.estimate_system(system) + tools.tokens


def _room(found: FoundHistory, location: Location, chosen: ChosenModel, fixed: int) -> int | None:
    model = chosen.model
    window = token_budget.window(
        model.limit,
        buffer_tokens=location.settings.compaction.buffer_tokens,
        output_tokens=model.generation.max_tokens,
    )
    if not window:
        return None
    size = ConversationSize(estimated=found.material.size)
    return token_budget.compaction_target(Demand(fixed=fixed, conversation=size), window)
