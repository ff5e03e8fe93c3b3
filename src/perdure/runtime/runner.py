"""The Session Drain: promote, ask the model, settle its calls, until nothing immediate remains.

What comes next is decided by core.drain; this module carries it out. Whose Session it is, and what
a dead process left of it, is runtime.tenure. A turn that cannot be sent (no such model, no such
agent) still becomes a step, one that failed for all to see.
"""

import asyncio
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core import catalog, drain, usage
from perdure.core.drain import Pending, RunTurn, Stop, TurnOutcome
from perdure.core.history import Cut
from perdure.core.turn_recorder import TurnRecorder
from perdure.llm.message import LLMMessage, Run, TextPart
from perdure.llm.request import LLMRequest
from perdure.location.catalog import ResolvedModel
from perdure.location.context_registry import Subject
from perdure.location.services import LocationServices
from perdure.ports import Transaction
from perdure.runtime import model_choice, refused_step
from perdure.runtime.boundary import Boundary, Crossed, Sample
from perdure.runtime.concurrency import shielded
from perdure.runtime.model_choice import Chosen, NotChosen
from perdure.runtime.provider_turn import TURN_INTERRUPTED, ProviderTurn, TurnEnd, TurnServices
from perdure.runtime.run_services import RunServices
from perdure.runtime.settlement import Toolbox
from perdure.runtime.tenure import Tenures
from perdure.schema.agent import AgentInfo
from perdure.schema.ids import SessionID
from perdure.schema.model import ModelRef
from perdure.schema.session import SessionInfo
from perdure.store import inbox_table, message_table, wake_table
from perdure.store.lease_table import LeaseHeldError

STEP_LIMIT: Final = (
    "The step limit of this agent is reached and tools are switched off. Answer in text now: sum up"
    " what was done, name what remains, and say what you would do next."
)


class SessionRunner:
    def __init__(self, services: RunServices, tenures: Tenures) -> None:
        self._services = services
        self._store = services.store
        self._clock = services.clock
        self._tenures = tenures
        self._boundary = Boundary(services.store, services.clock, services.ids)

    async def drain(self, session_id: SessionID, force: bool) -> None:
        """Run until idle. Does nothing when another process runs this Session: it is told."""
        step = drain.begin(await self._pending(session_id), force=force)
        if isinstance(step, Stop) and not await self._tenures.is_unfinished(session_id):
            return
        try:
            async with self._tenures.enter(session_id):
                while isinstance(step, RunTurn):
                    step = await self._next(session_id, step)
        except LeaseHeldError:
            await self._store.database.write(lambda tx: wake_table.request(tx, session_id))

    async def _next(self, session_id: SessionID, step: RunTurn) -> RunTurn | Stop:
        outcome, end = await self._turn(session_id, step)
        if end.declined:
            return Stop()
        return drain.after(outcome, await self._pending(session_id))

    async def _pending(self, session_id: SessionID) -> Pending:
        async def job(tx: Transaction) -> Pending:
            return Pending(
                steer=await inbox_table.is_pending(tx, session_id, "steer"),
                queue=await inbox_table.is_pending(tx, session_id, "queue"),
            )

        return await self._store.database.read(job)

    # ---- one turn -------------------------------------------------------------------------------

    async def _turn(self, session_id: SessionID, turn: RunTurn) -> tuple[TurnOutcome, TurnEnd]:
        sample = await self._boundary.sample(session_id)
        session = sample.session
        async with self._services.locations.hold(session.location) as location:
            chosen = model_choice.choose(session, location)
            observation = await location.observe(_subject(sample, chosen))
            try:
                crossed = await shielded(self._boundary.cross(session, turn, observation))
            except asyncio.CancelledError:
                await shielded(self._fail_unanswered(session))
                raise
            end = await self._ask(crossed, chosen, location)
        return TurnOutcome(crossed.step, end.needs_continuation), end

    async def _fail_unanswered(self, session: SessionInfo) -> None:
        """Interrupted right after its promotion, a prompt has a failed answer, not none."""
        newest = await self._store.database.read(
            lambda tx: message_table.latest_said(tx, session.id)
        )
        if newest is not None and newest.type == "user":
            agent = "" if session.agent is UNSET else session.agent
            await self._refuse(session, agent, TURN_INTERRUPTED)

    async def _ask(
        self, crossed: Crossed, chosen: Chosen | NotChosen, location: LocationServices
    ) -> TurnEnd:
        session = crossed.session
        if isinstance(chosen, NotChosen):
            return await self._refuse(session, chosen.agent, chosen.reason)
        agent, model = chosen.agent, chosen.model
        last = drain.is_last(crossed.step, None if agent.steps is UNSET else agent.steps)
        toolbox = None if last else self._toolbox(location, agent)
        request = await self._request(crossed, agent, model, toolbox)
        recorder = self._recorder(session, agent.id, model.ref)
        services = TurnServices(store=self._store, hub=self._services.hub, clock=self._clock)
        turn = ProviderTurn(
            services,
            session,
            recorder,
            agent=agent.id,
            toolbox=toolbox,
            cost=lambda spent: catalog.cost_of(model.cost, usage.tokens_of(spent)),
        )
        return await turn.run(model.call, request)

    async def _refuse(self, session: SessionInfo, agent: str, reason: str) -> TurnEnd:
        await refused_step.record(self._services, session, agent=agent, reason=reason)
        return TurnEnd(needs_continuation=False)

    def _recorder(self, session: SessionInfo, agent: str, model: ModelRef) -> TurnRecorder:
        return TurnRecorder(
            session_id=session.id,
            message_id=self._services.ids.message(),
            agent=agent,
            model=model,
        )

    def _toolbox(self, location: LocationServices, agent: AgentInfo) -> Toolbox:
        offered = location.tools.registry().materialize(agent.permissions)
        return Toolbox(
            offered, self._services.outputs, location.output_limits, location.instructions.beside
        )

    async def _request(
        self,
        crossed: Crossed,
        agent: AgentInfo,
        model: ResolvedModel,
        toolbox: Toolbox | None,
    ) -> LLMRequest:
        session = crossed.session
        cut = Cut(crossed.compaction, crossed.epoch.baseline_seq)
        history = await self._store.database.read(
            lambda tx: self._tenures.histories.load(tx, session.id, cut=cut, model=model.ref)
        )
        system = ("" if agent.system is UNSET else agent.system, crossed.epoch.baseline)
        request = LLMRequest(
            model=model.ref,
            system=tuple(text for text in system if text),
            runs=history.runs,
            kept=history.kept,
            tools=() if toolbox is None else toolbox.offered.definitions,
            options={"openai": {"promptCacheKey": _cache_key(session.id)}},
            headers=model_choice.correlation(session.id),
        )
        return _final(request) if toolbox is None else request


def _subject(sample: Sample, chosen: Chosen | NotChosen) -> Subject:
    known = isinstance(chosen, Chosen)
    return Subject(
        session_id=sample.session.id,
        agent=chosen.agent if known else None,
        model=chosen.model.ref if known else None,
        discovered=sample.discovered,
        admitted=sample.admitted,
    )


def _final(request: LLMRequest) -> LLMRequest:
    """The request of a last step: no tools, and a note that is not part of the history."""
    note = Run((LLMMessage("system", (TextPart(STEP_LIMIT),)),))
    # The history goes on without the note, so bytes that follow it must not be kept.
    return replace(request, runs=(*request.runs, note), kept=None, tool_choice="none")


def _cache_key(session_id: SessionID) -> str:
    """Providers limit the key's length; an id made from an outside key is its 64 hex digits."""
    body = session_id.removeprefix("ses_")
    return body if len(body) == 64 else session_id
