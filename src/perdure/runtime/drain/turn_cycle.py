"""One turn of a drain, from the boundary to its end: crossed, asked with room for it, and settled.

A turn that cannot be sent (no such model, no such agent, no budget left) still becomes a step, one
that failed for all to see. Which turn comes next is the runner's concern; how an answer is recorded
as it streams in, provider_turn's.

Invariant: a turn that is interrupted after it crossed leaves no promoted prompt without an answer.
"""

import asyncio

from msgspec import UNSET, UnsetType, field

from perdure.core.context import system_context
from perdure.core.models import catalog
from perdure.core.session import retry, title, usage
from perdure.core.session.drain import RunTurn, TurnOutcome
from perdure.core.session.history import Cut
from perdure.core.session.repeated_calls import RepeatedCallGuard
from perdure.core.session.turn_recorder import TurnRecorder
from perdure.llm.error import LLMError
from perdure.location.location import Location
from perdure.ports.file_journal import Journal
from perdure.runtime.compaction import context_window
from perdure.runtime.compaction.compactor import Compactor
from perdure.runtime.compaction.context_window import STILL_TOO_LARGE, ContextWindow, Prepared
from perdure.runtime.files import step_journal
from perdure.runtime.files.step_journal import StepJournal, UnjournaledStep
from perdure.runtime.tasks import shielded
from perdure.runtime.turn import attached_prompts, budget, failed_step, model_choice
from perdure.runtime.turn import request as provider_request
from perdure.runtime.turn.boundary import Boundary, BoundaryResult, TurnInput
from perdure.runtime.turn.history_cache import History, HistoryCache
from perdure.runtime.turn.media import RequestMedia
from perdure.runtime.turn.model_choice import ChosenModel, NoModelChosen
from perdure.runtime.turn.provider_turn import TURN_INTERRUPTED, ProviderTurn, TurnEnd, TurnServices
from perdure.runtime.turn.request_marks import RequestMark, RequestMarks
from perdure.runtime.turn.retries import Retries
from perdure.runtime.turn.services import RunServices
from perdure.runtime.turn.titles import Titles
from perdure.runtime.turn.tool_execution import ToolRun
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.models.model import ModelRef
from perdure.schema.session.session import SessionInfo
from perdure.schema.value import State
from perdure.tools.api.registry import TurnTools


class DrainState(State):
    """What the turns of one drain have in common."""

    home: LocationRef | None = None
    failed: int = 0
    """How often the coming turn has been sent in vain."""
    untitled: bool = False
    """Whether the first prompt of the Session was promoted by this run."""
    waited: bool = False
    """Whether it has been waited for, with an entry in the store that is still there."""
    discipline: RepeatedCallGuard = field(default_factory=RepeatedCallGuard)


class TurnCycle:
    def __init__(
        self,
        services: RunServices,
        boundary: Boundary,
        compactor: Compactor,
        *,
        attempts: RequestMarks,
        retries: Retries,
        histories: HistoryCache,
        titles: Titles,
    ) -> None:
        self._services = services
        self._store = services.store
        self._measures = services.measures
        self._recording = TurnServices(store=services.store, hub=services.hub, clock=services.clock)
        self._boundary = boundary
        self._context_window = ContextWindow(compactor)
        self._attempts = attempts
        self._retries = retries
        self._histories = histories
        self._titles = titles
        self._media = RequestMedia()

    async def take(
        self, sample: TurnInput, turn: RunTurn, run: DrainState
    ) -> tuple[TurnOutcome, TurnEnd]:
        session = sample.session
        async with self._services.locations.hold(session.location) as location:
            chosen = model_choice.choose(session, location)
            try:
                crossed = await self._cross(sample, turn, chosen, location)
                run.untitled = run.untitled or title.is_placeholder(session.title)
                if crossed.step == 1:
                    # Somebody said something: whatever is tried now is tried for a new reason.
                    run.discipline = RepeatedCallGuard()
                end = await self._ended(sample, crossed, chosen, location=location, run=run)
            except asyncio.CancelledError:
                await shielded(self.stopped(session.id))
                raise
        return TurnOutcome(crossed.step, end.needs_continuation), end

    async def stopped(self, session_id: SessionID) -> None:
        """Whatever was promoted and has no answer gets one: it was interrupted."""
        await failed_step.record_unanswered(self._services, session_id, reason=TURN_INTERRUPTED)

    async def _ended(
        self,
        sample: TurnInput,
        crossed: BoundaryResult,
        chosen: ChosenModel | NoModelChosen,
        *,
        location: Location,
        run: DrainState,
    ) -> TurnEnd:
        session = sample.session
        if isinstance(chosen, NoModelChosen):
            return await self._refuse(session, chosen.agent, chosen.reason)
        if reached := await self._spent(session, chosen, location):
            return await self._refuse(session, chosen.agent.id, reached, chosen.model.ref)
        self._attempts.owe(session.id)
        end = await self._answered(
            sample, crossed, chosen, location=location, discipline=run.discipline
        )
        if run.untitled and end.answered:
            run.untitled = False
            self._titles.begin(session.id, chosen.model.ref)
        if end.failed is not None:
            return await self._failed(crossed, chosen, end.failed, run.failed + 1)
        return end

    async def _spent(
        self, session: SessionInfo, chosen: ChosenModel, location: Location
    ) -> str | None:
        """Which budget is used up, in words."""
        own = location.agents.options(chosen.agent.id).budget
        bounds = location.settings.budget.narrowed(own)
        return await budget.reached(self._store.database, session, bounds)

    async def _cross(
        self,
        sample: TurnInput,
        turn: RunTurn,
        chosen: ChosenModel | NoModelChosen,
        location: Location,
    ) -> BoundaryResult:
        with self._measures.timed("boundary", session=sample.session.id):
            observation = await location.observe(provider_request.subject(sample, chosen))
            plan = await self._boundary.plan(sample.session, turn, observation)
            agent = chosen.agent.id if isinstance(chosen, ChosenModel) else chosen.agent
            plan = await attached_prompts.with_content(plan, location.attachments, agent)
            crossed = await shielded(self._boundary.commit(plan))
        self._measures.count("boundary.unavailable", system_context.count_missing(observation))
        self._measures.told(crossed.epoch.baseline)
        return crossed

    async def _answered(
        self,
        sample: TurnInput,
        crossed: BoundaryResult,
        chosen: ChosenModel,
        *,
        location: Location,
        discipline: RepeatedCallGuard,
    ) -> TurnEnd:
        """One logical turn: with room made before it, and sent again once if it overflowed."""
        again = RunTurn("none", crossed.step)
        turn, offered = await self._prepare(crossed, chosen, location)
        if await self._context_window.ensure_fits(turn):
            crossed = await self._cross(sample, again, chosen, location)
            turn, offered = await self._prepare(crossed, chosen, location)
        attempt = self._attempts.of_turn(crossed.session.id, crossed.step)
        end = await self._ask(turn, offered, discipline, attempt)
        if end.overflow is None:
            return end
        await self._attempts.refused(crossed.session.id, crossed.step)
        if await self._context_window.make_after_overflow(turn):
            crossed = await self._cross(sample, again, chosen, location)
            turn, offered = await self._prepare(crossed, chosen, location)
            end = await self._ask(turn, offered, discipline, attempt)
            if end.overflow is None:
                return end
        reason = f"{STILL_TOO_LARGE} {end.overflow}"
        return await self._refuse(turn.session, chosen.agent.id, reason, chosen.model.ref)

    async def _failed(
        self, crossed: BoundaryResult, chosen: ChosenModel, error: LLMError, failed: int
    ) -> TurnEnd:
        """Sent again later, or given up for all to see."""
        waits = self._retries.plan(error, failed=failed, step=crossed.step)
        if waits is not None:
            return TurnEnd(needs_continuation=False, failed=error, retry=waits)
        reason = retry.failure_message(error)
        return await self._refuse(crossed.session, chosen.agent.id, reason, chosen.model.ref)

    async def _prepare(
        self, crossed: BoundaryResult, chosen: ChosenModel, location: Location
    ) -> tuple[Prepared, TurnTools | None]:
        """The request of the turn, and the tools that it offers."""
        offered = provider_request.offered(crossed, chosen.agent, location)
        history = await self._history(crossed, chosen.model.ref)
        history = await self._media.within(history, chosen.model.media)
        request = provider_request.build(crossed, chosen, history, offered)
        turn = Prepared(
            session=crossed.session,
            location=location,
            chosen=chosen,
            request=request,
            demand=context_window.demand(request, history),
            above=crossed.above,
        )
        return turn, offered

    async def _ask(
        self,
        turn: Prepared,
        offered: TurnTools | None,
        discipline: RepeatedCallGuard,
        attempt: RequestMark,
    ) -> TurnEnd:
        agent, model = turn.chosen.agent, turn.chosen.model
        message_id = self._services.ids.message()
        journal = await self._journal(turn, message_id)
        recorder = TurnRecorder(
            session_id=turn.session.id,
            message_id=message_id,
            agent=agent.id,
            model=model.ref,
        )
        recorder.before = journal.snapshot
        toolbox = None if offered is None else self._toolbox(turn, offered, discipline, journal)
        asked = ProviderTurn(
            self._recording,
            turn.session,
            recorder,
            agent=agent.id,
            toolbox=toolbox,
            cost=lambda spent: catalog.cost_of(model.cost, usage.tokens_of(spent)),
            attempt=attempt,
            journal=journal,
        )
        model_name = f"{model.ref.provider_id}/{model.ref.id}"
        with self._measures.timed("turn", session=turn.session.id, model=model_name):
            end = await asked.run(model.call, turn.request)
        if not (end.answered or end.declined or end.overflow):
            self._measures.count("turn.failed")
        return end

    async def _refuse(
        self,
        session: SessionInfo,
        agent: str,
        reason: str,
        model: ModelRef | UnsetType = UNSET,
    ) -> TurnEnd:
        await failed_step.record(self._services, session, agent=agent, reason=reason, model=model)
        return TurnEnd(needs_continuation=False)

    async def _journal(
        self, turn: Prepared, message_id: MessageID
    ) -> StepJournal | UnjournaledStep:
        if not turn.location.settings.snapshots:
            return UnjournaledStep()
        session = turn.session
        return await step_journal.begin(
            self._services.snapshots,
            session.id,
            message_id,
            directory=session.location.directory,
        )

    def _toolbox(
        self,
        turn: Prepared,
        offered: TurnTools,
        discipline: RepeatedCallGuard,
        journal: Journal,
    ) -> ToolRun:
        location = turn.location
        return ToolRun(
            offered,
            self._services.outputs,
            location.output_limits,
            location.instructions.find_for_file,
            location.permissions,
            discipline,
            turn.above,
            journal,
            self._measures,
            reads_documents=turn.chosen.model.media.reads_documents,
        )

    async def _history(self, crossed: BoundaryResult, model: ModelRef) -> History:
        cut = Cut(crossed.compaction, crossed.epoch.baseline_seq)
        return await self._store.database.read(
            lambda tx: self._histories.load(tx, crossed.session.id, cut=cut, model=model)
        )
