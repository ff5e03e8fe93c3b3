"""The Session Drain: promote, ask the model, settle its calls, until nothing immediate remains.

What comes next is decided by core.drain; this module carries it out. Whose Session it is, and what
a dead process left of it, is runtime.tenure. A turn that cannot be sent (no such model, no such
agent) still becomes a step, one that failed for all to see.
"""

import asyncio

from msgspec import UNSET

from perdure.core import catalog, drain, usage
from perdure.core.drain import DrainStep, Pending, RunTurn, Stop, TurnOutcome
from perdure.core.history import Cut
from perdure.core.turn_recorder import TurnRecorder
from perdure.location.services import LocationServices
from perdure.ports import Transaction
from perdure.runtime import model_choice, provider_request, refused_step
from perdure.runtime.boundary import (
    Boundary,
    Crossed,
    MovedAwayError,
    OvertakenError,
    RevertStagedError,
    Sample,
)
from perdure.runtime.concurrency import shielded
from perdure.runtime.history_cache import History
from perdure.runtime.model_choice import Chosen, NotChosen
from perdure.runtime.provider_turn import TURN_INTERRUPTED, ProviderTurn, TurnEnd, TurnServices
from perdure.runtime.run_services import RunServices
from perdure.runtime.settlement import Toolbox
from perdure.runtime.tenure import Tenures
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationRef
from perdure.schema.model import ModelRef
from perdure.schema.session import SessionInfo
from perdure.store import inbox_table, message_table, wake_table
from perdure.store.lease_table import LeaseHeldError
from perdure.tools.registry import Materialization


class SessionRunner:
    def __init__(self, services: RunServices, tenures: Tenures) -> None:
        self._services = services
        self._store = services.store
        self._clock = services.clock
        self._tenures = tenures
        self._boundary = Boundary(services.store, services.clock, services.ids)

    async def drain(self, session_id: SessionID, force: bool) -> None:
        """Run until idle. Does nothing when another process runs this Session: it is told."""
        while not await self._drained(session_id, force=force):
            # Nothing more runs here. What is pending begins anew, in the Location it is for.
            force = False

    async def _drained(self, session_id: SessionID, *, force: bool) -> bool:
        """Run until idle; False when another process has moved the Session away meanwhile."""
        step = drain.begin(await self._pending(session_id), force=force)
        if isinstance(step, Stop) and not await self._tenures.is_unfinished(session_id):
            return True
        try:
            async with self._tenures.enter(session_id):
                await self._run(session_id, step)
        except LeaseHeldError:
            await self._store.database.write(lambda tx: wake_table.request(tx, session_id))
        except MovedAwayError:
            return False
        return True

    async def _run(self, session_id: SessionID, step: DrainStep) -> None:
        home: LocationRef | None = None
        while isinstance(step, RunTurn):
            step, home = await self._next(session_id, step, home)

    async def _next(
        self, session_id: SessionID, step: RunTurn, home: LocationRef | None
    ) -> tuple[DrainStep, LocationRef]:
        """One turn, at `home` or not at all: what comes after it, and where it ran."""
        sample = await self._boundary.sample(session_id)
        here = sample.session.location
        if home is not None and here != home:
            raise MovedAwayError(session_id)
        if sample.session.revert is not UNSET:
            return Stop(), here
        try:
            outcome, end = await self._turn(sample, step)
        except RevertStagedError:
            return Stop(), here
        except OvertakenError:
            return step, here
        if end.declined:
            return Stop(), here
        return drain.after(outcome, await self._pending(session_id)), here

    async def _pending(self, session_id: SessionID) -> Pending:
        async def job(tx: Transaction) -> Pending:
            return Pending(
                steer=await inbox_table.is_pending(tx, session_id, "steer"),
                queue=await inbox_table.is_pending(tx, session_id, "queue"),
            )

        return await self._store.database.read(job)

    # ---- one turn -------------------------------------------------------------------------------

    async def _turn(self, sample: Sample, turn: RunTurn) -> tuple[TurnOutcome, TurnEnd]:
        session = sample.session
        async with self._services.locations.hold(session.location) as location:
            chosen = model_choice.choose(session, location)
            observation = await location.observe(provider_request.subject(sample, chosen))
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
        offered = provider_request.offered(crossed, agent, location)
        history = await self._history(crossed, model.ref)
        request = provider_request.build(crossed, chosen, history, offered)
        recorder = self._recorder(session, agent.id, model.ref)
        services = TurnServices(store=self._store, hub=self._services.hub, clock=self._clock)
        turn = ProviderTurn(
            services,
            session,
            recorder,
            agent=agent.id,
            toolbox=None if offered is None else self._toolbox(location, offered),
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

    def _toolbox(self, location: LocationServices, offered: Materialization) -> Toolbox:
        return Toolbox(
            offered, self._services.outputs, location.output_limits, location.instructions.beside
        )

    async def _history(self, crossed: Crossed, model: ModelRef) -> History:
        cut = Cut(crossed.compaction, crossed.epoch.baseline_seq)
        return await self._store.database.read(
            lambda tx: self._tenures.histories.load(tx, crossed.session.id, cut=cut, model=model)
        )
