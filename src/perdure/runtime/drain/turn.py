"""One turn of a drain: observe the context, commit the boundary, build, stream, settle.

A turn that cannot be sent (no such model, no such agent, no budget left) still becomes a step, one
that failed and says why. Which turn comes next is decided by runtime.drain.drain; how an answer is
recorded while it streams, by runtime.turn.provider_turn.

Invariant: a turn that is interrupted after its boundary leaves no promoted prompt unanswered.
"""

import asyncio

from msgspec import UNSET, UnsetType, field
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.compaction.outcome import NothingToCompact
from perdure.core.context import system_context
from perdure.core.models import catalog
from perdure.core.request.token_budget import Demand
from perdure.core.session import retry, title, usage
from perdure.core.session.drain import RunTurn
from perdure.core.session.history import Cut
from perdure.core.session.repeated_calls import RepeatedCallGuard
from perdure.core.session.turn_recorder import TurnRecorder
from perdure.llm.error import LLMError
from perdure.llm.request import LLMRequest
from perdure.location.location import Location
from perdure.location.models.catalog import ResolvedModel
from perdure.ports import Transaction
from perdure.runtime.compaction import context_window
from perdure.runtime.compaction.context_window import ContextWindow
from perdure.runtime.drain.titles import Titles
from perdure.runtime.files.step_journal import StepJournal, UnjournaledStep
from perdure.runtime.tasks import shielded
from perdure.runtime.turn import boundary as boundaries
from perdure.runtime.turn import budget, failed_step, model_choice, tool_runs
from perdure.runtime.turn import request as requests
from perdure.runtime.turn import turn_input as turn_inputs
from perdure.runtime.turn.boundary import Boundary
from perdure.runtime.turn.history_cache import History, HistoryCache
from perdure.runtime.turn.media import RequestMedia
from perdure.runtime.turn.model_chain import ModelChains
from perdure.runtime.turn.model_choice import ChosenModel, NoModelChosen
from perdure.runtime.turn.provider_turn import ProviderTurn
from perdure.runtime.turn.request_marks import RequestMarks
from perdure.runtime.turn.retries import DroppedAnswers, Retries
from perdure.runtime.turn.services import RunServices
from perdure.runtime.turn.tool_execution import ToolRun
from perdure.runtime.turn.turn_end import TURN_INTERRUPTED, TurnEnd
from perdure.runtime.turn.turn_input import TurnInput
from perdure.schema.location import LocationRef
from perdure.schema.models.model import ModelRef, StepRoute
from perdure.schema.value import Confidential, State, Value
from perdure.store.tables import file_change_table
from perdure.tools.api.registry import TurnTools


class TurnServices(Value, kw_only=True):
    """What the turns of all drains work with."""

    run: RunServices
    context_window: ContextWindow
    marks: RequestMarks
    retries: Retries
    chains: ModelChains
    histories: HistoryCache
    titles: Titles
    media: RequestMedia


class DrainState(State):
    """What the turns of one drain have in common."""

    unanswered: bool = False
    """Whether a prompt that a dead process promoted may still have no answer."""
    location: LocationRef | None = None
    """Where the first turn ran; the drain ends when the Session moves elsewhere."""
    failures: int = 0
    """How often the coming turn has been sent in vain."""
    untitled: bool = False
    """Whether the Session still has a placeholder title."""
    pauses: int = 0
    """How often in a row the provider has paused in its answer."""
    waited: bool = False
    """Whether the drain waited for a retry that is still recorded in the store."""
    waited_millis: int = 0
    """How long the coming turn has waited for providers, in all."""
    plain: bool = False
    """Whether the provider refused a native part, and no step without them is recorded yet."""
    repeated_calls: RepeatedCallGuard = field(default_factory=RepeatedCallGuard)


class _Prepared(Confidential, kw_only=True):
    """A request that is ready to be sent, with the tools it offers."""

    request: LLMRequest
    demand: Demand
    tools: TurnTools | None
    snapshot: str | None
    """The newest file snapshot of the Session."""


class Turn:
    def __init__(
        self, services: TurnServices, state: DrainState, found: TurnInput, location: Location
    ) -> None:
        self._services = services
        self._store = services.run.store
        self._metrics = services.run.measures
        self._state = state
        self._found = found
        self._session = found.session
        self._location = location
        self._chosen = model_choice.choose(found.session, location)

    async def run(self, turn: RunTurn) -> TurnEnd:
        """Raises what `boundary.commit` and `boundary.plan` raise; nothing was committed then."""
        try:
            if isinstance(self._chosen, ChosenModel):
                self._chosen = await self._services.chains.select(
                    self._session, self._location, self._chosen
                )
            boundary = await self._commit_boundary(self._found, turn)
            self._state.untitled |= title.is_placeholder(self._session.title)
            if boundary.step == 1:
                # New input: calls that brought nothing new before may do so now.
                self._state.repeated_calls = RepeatedCallGuard()
            chosen = self._chosen
            if isinstance(chosen, NoModelChosen):
                return await self._fail(boundary, chosen.reason)
            if reached := await self._exceeded_budget(chosen):
                return await self._fail(boundary, reached, chosen.model.ref)
            return await self._answer(boundary, chosen)
        except asyncio.CancelledError:
            # When only this process ends, the next one sends what this one has prepared.
            if not self._services.run.closing():
                await shielded(
                    failed_step.record_unanswered(
                        self._services.run, self._session.id, reason=TURN_INTERRUPTED
                    )
                )
            raise

    async def _commit_boundary(self, found: TurnInput, turn: RunTurn) -> Boundary:
        """Observe the Context Sources, then commit what they and the inbox change."""
        run, chosen = self._services.run, self._chosen
        await self._location.mcp.prepare()
        with self._metrics.timed("boundary", session=self._session.id):
            observation = await self._location.observe(requests.subject(found, chosen))
            boundary = boundaries.plan(found, turn, observation, clock=run.clock, ids=run.ids)
            attachments = self._location.attachments
            boundary = await boundaries.with_attachments(boundary, attachments, chosen.agent_id)
            await boundaries.commit(self._store, boundary)
        self._metrics.count("boundary.unavailable", system_context.count_missing(observation))
        self._metrics.observe_baseline(boundary.epoch.baseline)
        return boundary

    async def _answer(self, boundary: Boundary, chosen: ChosenModel) -> TurnEnd:
        """Send the request. Compact before it if it is too large, and once after an overflow."""
        services, session, location = self._services, self._session, self._location
        services.marks.take_charge(session.id)
        prepared = await self._build(boundary, chosen)
        made = await services.context_window.ensure_fits(
            session, location, chosen, demand=prepared.demand
        )
        if isinstance(made, NothingToCompact):
            return await self._fail(boundary, made.reason, chosen.model.ref)
        if made is not None:
            boundary, prepared = await self._build_again(boundary, chosen)
        end = await self._stream(boundary, chosen, prepared)
        if end.failed is not None and end.failed.reason == "native-part":
            end = await self._send_plain(boundary, chosen, prepared, end)
        if end.overflow is not None:
            await services.marks.mark_refused(session.id, boundary.step)
            boundary, end = await self._after_overflow(boundary, chosen, prepared, end.overflow)
            if end.overflow is not None:
                return await self._fail(boundary, end.overflow, chosen.model.ref)
        if end.answered and self._state.untitled:
            self._state.untitled = False
            services.titles.begin(session.id, chosen.model.ref)
        if end.failed is not None and end.retry is None:
            return await self._retry_or_fail(boundary, chosen, end.failed)
        return end

    async def _send_plain(
        self, boundary: Boundary, chosen: ChosenModel, prepared: _Prepared, end: TurnEnd
    ) -> TurnEnd:
        """Send once more, without native parts, what was refused because of one.

        The step says so, and later requests leave them out too. Without any, the refusal stands.
        """
        self._state.plain = True
        plain = await self._build(boundary, chosen)
        if plain.request.segments == prepared.request.segments:
            self._state.plain = False
            return end
        await self._services.marks.mark_refused(self._session.id, boundary.step)
        return await self._stream(boundary, chosen, plain)

    async def _after_overflow(
        self, boundary: Boundary, chosen: ChosenModel, prepared: _Prepared, refusal: str
    ) -> tuple[Boundary, TurnEnd]:
        """Compact and send again. A turn that ends with an overflow once more says what to do."""
        window, session, location = self._services.context_window, self._session, self._location
        made = await window.shrink_after_overflow(
            session, location, chosen, demand=prepared.demand, refusal=refusal
        )
        if isinstance(made, NothingToCompact):
            return boundary, TurnEnd(step=boundary.step, overflow=f"{made.reason} {refusal}")
        boundary, prepared = await self._build_again(boundary, chosen)
        end = await self._stream(boundary, chosen, prepared)
        if end.overflow is None:
            return boundary, end
        reason = window.explain_refusal(session, location, chosen, demand=prepared.demand)
        return boundary, TurnEnd(step=boundary.step, overflow=f"{reason} {end.overflow}")

    async def _build(self, boundary: Boundary, chosen: ChosenModel) -> _Prepared:
        """The request of the turn, from the history that the boundary has just completed."""
        tools = await requests.offered(boundary, chosen.agent, self._location)
        cut = Cut(boundary.compaction, boundary.epoch.baseline_seq)
        histories, session_id = self._services.histories, self._session.id

        async def read(tx: Transaction) -> tuple[History, str | None]:
            history = await histories.load(
                tx,
                session_id,
                cut=cut,
                model=chosen.model.ref,
                route=chosen.model.route,
                plain=self._state.plain,
            )
            return history, await file_change_table.latest_snapshot(tx, session_id)

        history, snapshot = await self._store.database.read(read)
        history = await self._services.media.within(history, chosen.model.media)
        goes_on = self._state.pauses > 0
        request = requests.build(boundary, chosen, history, tools, goes_on=goes_on)
        return _Prepared(
            request=request,
            demand=context_window.demand(request, history, tools),
            tools=tools,
            snapshot=snapshot,
        )

    async def _build_again(
        self, boundary: Boundary, chosen: ChosenModel
    ) -> tuple[Boundary, _Prepared]:
        """After a compaction: the epoch begins anew, so the boundary is committed again.

        It observes what is true now. The configuration that the turn began with may be older than
        the compaction, or may not have been readable then. Agent and model stay as they were.
        """
        self._location = await self._services.run.locations.get(self._session.location)
        found = await self._store.database.read(lambda tx: turn_inputs.load(tx, self._session.id))
        boundary = await self._commit_boundary(found, RunTurn("none", boundary.step))
        return boundary, await self._build(boundary, chosen)

    async def _stream(
        self, boundary: Boundary, chosen: ChosenModel, prepared: _Prepared
    ) -> TurnEnd:
        run, model = self._services.run, chosen.model
        message_id = run.ids.message()
        recorder = TurnRecorder(
            session_id=self._session.id,
            message_id=message_id,
            agent=chosen.agent.id,
            model=model.ref,
            route=_route_of(model, plain=self._state.plain),
        )
        journal = tool_runs.journal(
            run, self._location, self._session.id, message_id, start=prepared.snapshot
        )
        recorder.before = journal.snapshot
        provider_turn = ProviderTurn(
            run,
            self._services.marks,
            self._session,
            step=boundary.step,
            recorder=recorder,
            tools=self._tool_run(boundary, chosen, prepared.tools, journal),
            cost=lambda spent: catalog.cost_of(model.cost, spent),
            journal=journal,
        )
        dropped = DroppedAnswers(
            self._services.retries,
            self._session.id,
            policy=self._location.settings.dropped_answers or "continue",
            form=model.prefix,
            patience=self._location.settings.patience,
            failures=self._state.failures,
            waited=self._state.waited_millis,
            step=boundary.step,
        )
        may_pause = self._state.pauses < limits.ANSWER_PAUSES_MAX
        name = f"{model.ref.provider_id}/{model.ref.id}"
        async with run.slots.take(
            model, tokens=prepared.demand.tokens, session_id=self._session.id
        ) as call:
            with self._metrics.timed("turn", session=self._session.id, model=name):
                end = await provider_turn.run(
                    call, prepared.request, may_pause=may_pause, dropped=dropped
                )
        if recorder.finish is not None and (spent := recorder.finish.usage) is not None:
            cost = catalog.cost_of(model.cost, spent)
            self._metrics.observe_usage(name, usage.tokens_of(spent), cost)
        if recorder.started:
            self._state.plain = False
        self._state.pauses = self._state.pauses + 1 if end.paused else 0
        if not (end.answered or end.declined or end.overflow):
            self._metrics.count("turn.failed")
        return end

    def _tool_run(
        self,
        boundary: Boundary,
        chosen: ChosenModel,
        tools: TurnTools | None,
        journal: StepJournal | UnjournaledStep,
    ) -> ToolRun | None:
        if tools is None:
            return None
        return tool_runs.build(
            self._services.run,
            self._location,
            tools,
            agent=chosen.agent.id,
            callers=boundary.callers,
            journal=journal,
            repeated_calls=self._state.repeated_calls,
            reads_documents=chosen.model.media.reads_documents,
        )

    async def _exceeded_budget(self, chosen: ChosenModel) -> str | None:
        """Which budget is used up, in words."""
        own = self._location.agents.options(chosen.agent.id).budget
        bounds = self._location.settings.budget.combine(own)
        return await budget.find_exceeded(self._store.database, self._session, bounds)

    async def _retry_or_fail(
        self, boundary: Boundary, chosen: ChosenModel, error: LLMError
    ) -> TurnEnd:
        """After a failure before any answer: another model, a wait, or a failed step."""
        services, patience = self._services, self._location.settings.patience
        planned = services.retries.plan(
            error,
            failed=self._state.failures + 1,
            step=boundary.step,
            waited=self._state.waited_millis,
            patience=patience,
        )
        if await services.chains.hand_over(
            self._session,
            self._location,
            chosen,
            error=error,
            planned=planned,
            step=boundary.step,
        ):
            return TurnEnd(step=boundary.step, handed_over=True)
        if planned is not None:
            return TurnEnd(step=boundary.step, failed=error, retry=planned)
        reason = retry.failure_message(error, patience)
        return await self._fail(boundary, reason, chosen.model.ref)

    async def _fail(
        self, boundary: Boundary, reason: str, model: ModelRef | UnsetType = UNSET
    ) -> TurnEnd:
        """Record a step that failed without having been sent."""
        await failed_step.record(
            self._services.run,
            self._session,
            agent=self._chosen.agent_id,
            reason=reason,
            model=model,
        )
        return TurnEnd(step=boundary.step)


def _route_of(model: ResolvedModel, *, plain: bool) -> StepRoute | UnsetType:
    if not plain:
        return UNSET if model.route is None else model.route
    return replace(model.route or StepRoute(), plain=True)
