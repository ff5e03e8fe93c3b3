"""Carries out core.compaction.plan: condense Session History and record it as the new checkpoint.

Asked for by a person, a compaction that fails says why and leaves everything as it was. One that a
turn needs tries the model once and then cuts without it, so that the Session always goes on.
Nothing else runs for the Session meanwhile; see runtime.turn.ownership.

Invariant: only the end of a compaction changes what the model is shown, and none ends that was made
of messages which a revert has taken away.
"""

from msgspec import UNSET

from perdure.core import limits
from perdure.core.compaction import plan as compaction
from perdure.core.compaction.plan import (
    Compacted,
    CompactionFailed,
    CompactionOutcome,
    CompactionPlan,
    Material,
    NothingToCompact,
)
from perdure.core.request import history_to_llm, token_budget
from perdure.core.request.token_budget import ConversationSize, Demand
from perdure.core.session.history import Cut
from perdure.location.location import Location
from perdure.ports import Transaction
from perdure.runtime.compaction import summarizer
from perdure.runtime.compaction.summarizer import Summarizer
from perdure.runtime.tasks import shielded
from perdure.runtime.turn import model_choice, ownership
from perdure.runtime.turn.boundary import StaleReadError
from perdure.runtime.turn.model_choice import ChosenModel, NoModelChosen
from perdure.runtime.turn.ownership import SessionOwnership
from perdure.runtime.turn.services import RunServices
from perdure.schema.errors import InvalidRequestError
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.session.event import (
    CompactionEnded,
    CompactionReason,
    CompactionStarted,
    RevertCommitted,
)
from perdure.schema.session.message import UserMessage
from perdure.schema.session.session import SessionInfo
from perdure.schema.value import Confidential, Value
from perdure.store.log import event_store
from perdure.store.processes.lease_table import LeaseHeldError
from perdure.store.tables import epoch_table, message_table, session_table, todo_table


class _Found(Value, kw_only=True):
    material: Material
    baseline: str
    read_at: Seq
    """The end of the log when all this was looked at."""


class _Job(Confidential, kw_only=True):
    session: SessionInfo
    location: Location
    chosen: ChosenModel
    found: _Found
    reason: CompactionReason
    instruction: str = ""
    room: int | None = None
    """For the conversation afterwards; None: unknown."""
    believed: int = 0


class Compactor:
    def __init__(self, services: RunServices, ownership: SessionOwnership) -> None:
        self._services = services
        self._store = services.store
        self._clock = services.clock
        self._ownership = ownership
        self._summarizer = Summarizer(services)

    async def compact(self, session_id: SessionID, *, instruction: str = "") -> CompactionOutcome:
        """By hand. Raises CancelledError when interrupted; the old checkpoint then still holds."""
        try:
            async with self._ownership.own(session_id):
                session = await self._store.database.read(
                    lambda tx: session_table.require(tx, session_id)
                )
                return await self._by_hand(session, instruction)
        except LeaseHeldError:
            return CompactionFailed("Another process is running this Session")
        except InvalidRequestError as unusable:
            return CompactionFailed(unusable.message)
        except StaleReadError:
            return CompactionFailed("The Session was reverted meanwhile")

    async def make_room(
        self,
        session: SessionInfo,
        location: Location,
        chosen: ChosenModel,
        *,
        room: int,
        believed: int = 0,
    ) -> bool:
        """For a turn that is about to be sent; False when a compaction would gain nothing.

        `believed`: a request as large as this has just been too large.
        """
        job = _Job(
            session=session,
            location=location,
            chosen=chosen,
            found=await self._found(session),
            reason="auto",
            room=max(room, limits.COMPACTION_ROOM_TOKENS_MIN),
            believed=believed,
        )
        plan = _plan(job)
        if plan is None or not _is_enough(job, plan, plan.mechanical_summary("")):
            return False
        message_id = await self._begin(job)
        summary = await self._summary(job, plan, message_id)
        if not isinstance(summary, CompactionFailed) and not _is_enough(job, plan, summary):
            summary = CompactionFailed("the summary was hardly shorter")
        if isinstance(summary, CompactionFailed):
            summary = plan.mechanical_summary(summary.reason)
        await shielded(self._end(job, plan, message_id, summary=summary))
        return True

    async def _by_hand(self, session: SessionInfo, instruction: str) -> CompactionOutcome:
        found = await self._found(session)
        async with self._services.locations.hold(session.location) as location:
            chosen = model_choice.choose(session, location)
            if isinstance(chosen, NoModelChosen):
                return CompactionFailed(chosen.reason)
            job = _Job(
                session=session,
                location=location,
                chosen=chosen,
                found=found,
                reason="manual",
                instruction=instruction,
                room=_room(found, location, chosen),
            )
            plan = _plan(job)
            if plan is None:
                return NothingToCompact()
            message_id = await self._begin(job)
            summary = await self._summary(job, plan, message_id)
        if isinstance(summary, CompactionFailed):
            return summary
        await shielded(self._end(job, plan, message_id, summary=summary))
        return Compacted()

    async def _summary(
        self, job: _Job, plan: CompactionPlan, message_id: MessageID
    ) -> str | CompactionFailed:
        by = summarizer.condenser(
            job.chosen, job.location, instruction=job.instruction, believed=job.believed
        )
        if isinstance(by, CompactionFailed):
            return by
        return await self._summarizer.summarize(job.session, message_id, plan, by)

    async def _found(self, session: SessionInfo) -> _Found:
        return await self._store.database.read(lambda tx: _look(tx, session.id))

    # ---- what is recorded -----------------------------------------------------------------------

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
    ) -> None:
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

        await self._store.append(
            session.id, [ended], location=session.location, running=True, within=within
        )


def _plan(job: _Job) -> CompactionPlan | None:
    keep_tokens = job.location.settings.compaction.keep_tokens
    return compaction.plan(
        job.found.material, compaction.divide_tokens(job.room, keep_tokens=keep_tokens)
    )


def _is_enough(job: _Job, plan: CompactionPlan, summary: str) -> bool:
    """Whether a checkpoint with this summary has room, and is worth having."""
    after = plan.tokens_with(summary)
    before = _tokens(job.found.material, job.chosen)
    return (job.room is None or after <= job.room) and compaction.frees_enough(before, after)


def _tokens(material: Material, chosen: ChosenModel) -> int:
    model = chosen.model.ref
    return sum(
        token_budget.estimate_messages(history_to_llm.lower(message, model))
        for message in material.history
    )


def _room(found: _Found, location: Location, chosen: ChosenModel) -> int | None:
    model, agent = chosen.model, chosen.agent
    window = token_budget.window(
        model.limit,
        buffer_tokens=location.settings.compaction.buffer_tokens,
        output_tokens=model.generation.max_tokens,
    )
    if not window:
        return None
    system = ("" if agent.system is UNSET else agent.system, found.baseline)
    tools = location.tools.registry().materialize(agent.permissions)
    demand = Demand(
        fixed=token_budget.estimate_system(system) + tools.tokens,
        conversation=ConversationSize(estimated=_tokens(found.material, chosen)),
    )
    return token_budget.compaction_target(demand, window)


async def _look(tx: Transaction, session_id: SessionID) -> _Found:
    epoch = await epoch_table.get(tx, session_id)
    cut = Cut(
        await message_table.latest_compaction(tx, session_id),
        None if epoch is None else epoch.baseline_seq,
    )
    rows = await message_table.list_after(tx, session_id, await ownership.cut_floor(tx, session_id))
    said = await message_table.newest_prompts(tx, session_id, limit=limits.DIRECTIVES_READ_MAX)
    prompts = (row.message() for row in said)
    return _Found(
        material=Material(
            history=tuple(row.message() for row in rows if cut.shows(seq=row.seq, type=row.type)),
            prompts=tuple(prompt for prompt in prompts if isinstance(prompt, UserMessage)),
            todos=await todo_table.load_todos(tx, session_id),
        ),
        baseline="" if epoch is None else epoch.baseline,
        read_at=await event_store.latest_seq(tx, session_id),
    )
