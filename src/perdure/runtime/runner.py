"""The Session Drain: promote, ask the model, settle its calls, until nothing immediate remains.

What comes next is decided by core.drain; this module carries it out. Before the first turn of a
drain in this process, whatever a dead process left unfinished is settled. A turn that cannot be
sent (no such model, no such agent) still becomes a step, one that failed for all to see.
"""

import asyncio
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core import catalog, drain, recovery, turn_recorder
from perdure.core.drain import Pending, RunTurn, Stop, TurnOutcome
from perdure.core.history import Cut
from perdure.core.turn_recorder import TurnRecorder
from perdure.llm.message import LLMMessage, Run, TextPart
from perdure.llm.request import LLMRequest
from perdure.location.agents import Selected
from perdure.location.catalog import ResolvedModel
from perdure.location.location_map import LocationMap
from perdure.location.services import LocationServices
from perdure.ports import Clock, IdSource, Transaction
from perdure.runtime.boundary import Boundary, Crossed
from perdure.runtime.concurrency import shielded
from perdure.runtime.history_cache import HistoryCache
from perdure.runtime.live_hub import LiveHub
from perdure.runtime.provider_turn import TURN_INTERRUPTED, ProviderTurn, TurnEnd, TurnServices
from perdure.runtime.settlement import Toolbox
from perdure.schema.agent import AgentInfo
from perdure.schema.ids import Seq, SessionID
from perdure.schema.model import ModelRef
from perdure.schema.session import SessionInfo
from perdure.schema.session_event import SessionEvent
from perdure.schema.value import Value
from perdure.store import inbox_table, message_table, wake_table
from perdure.store.event_store import EventStore
from perdure.store.lease_table import LeaseHeldError
from perdure.tools.output_store import ToolOutputStore

STEP_LIMIT: Final = (
    "The step limit of this agent is reached and tools are switched off. Answer in text now: sum up"
    " what was done, name what remains, and say what you would do next."
)


class RunnerServices(Value, kw_only=True):
    store: EventStore
    locations: LocationMap
    hub: LiveHub
    outputs: ToolOutputStore
    clock: Clock
    ids: IdSource


class SessionRunner:
    def __init__(self, services: RunnerServices) -> None:
        self._services = services
        self._store = services.store
        self._clock = services.clock
        self._boundary = Boundary(services.store, services.clock, services.ids)
        self._histories = HistoryCache()
        self._held: set[SessionID] = set()

    async def drain(self, session_id: SessionID, force: bool) -> None:
        """Run until idle. Does nothing when another process runs this Session: it is told."""
        step = drain.begin(await self._pending(session_id), force=force)
        if isinstance(step, Stop) and not await self._is_unfinished(session_id):
            return
        try:
            if session_id not in self._held:
                # Whole: once the lease is ours, nobody could tell any more that it was left behind.
                await shielded(self._take_over(session_id))
            while isinstance(step, RunTurn):
                step = await self._next(session_id, step)
        except LeaseHeldError:
            self._forget(session_id)
            await self._store.database.write(lambda tx: wake_table.request(tx, session_id))
        except BaseException:
            # Whatever went wrong, the next drain starts from what is on disk.
            self._forget(session_id)
            raise

    async def _next(self, session_id: SessionID, step: RunTurn) -> RunTurn | Stop:
        outcome, end = await self._turn(session_id, step)
        if end.declined:
            return Stop()
        return drain.after(outcome, await self._pending(session_id))

    async def _pending(self, session_id: SessionID) -> Pending:
        async def job(tx: Transaction) -> Pending:
            steers = await inbox_table.pending(tx, session_id, "steer", limit=1)
            queued = await inbox_table.pending(tx, session_id, "queue", limit=1)
            return Pending(steer=bool(steers), queue=bool(queued))

        return await self._store.database.read(job)

    async def unfinished(self) -> list[SessionID]:
        """Sessions that a dead process left in the middle of something."""
        left_behind = await self._store.left_behind()
        return [found for found in left_behind if await self._is_unfinished(found)]

    async def _is_unfinished(self, session_id: SessionID) -> bool:
        if not await self._is_left_behind(session_id):
            return False
        newest = await self._store.database.read(
            lambda tx: message_table.latest_said(tx, session_id)
        )
        return newest is not None and recovery.is_unfinished(newest.message())

    async def _is_left_behind(self, session_id: SessionID) -> bool:
        """Whether whoever ran this Session last died with it."""
        return session_id not in self._held and await self._store.is_left_behind(session_id)

    async def _take_over(self, session_id: SessionID) -> None:
        """Take the lease, then settle what whoever ran this before left open."""
        left_behind = await self._is_left_behind(session_id)
        await self._store.hold(session_id)

        async def job(tx: Transaction) -> list[message_table.MessageRow]:
            return await message_table.since(tx, session_id, await _cut_floor(tx, session_id))

        messages = [row.message() for row in await self._store.database.read(job)]
        now = self._clock.now_millis()
        facts: list[SessionEvent] = [*recovery.settle_dangling(session_id, messages, now=now)]
        if left_behind:
            facts += recovery.fail_open_step(session_id, messages, now=now)
        session = await self._boundary.sample(session_id)
        if facts:
            await self._store.append(session_id, facts, location=session.location, running=True)
        if left_behind and recovery.is_unanswered(messages):
            agent = "" if session.agent is UNSET else session.agent
            await self._refuse(session, agent, recovery.UNANSWERED)
        self._held.add(session_id)

    def _forget(self, session_id: SessionID) -> None:
        self._held.discard(session_id)
        self._histories.drop(session_id)

    # ---- one turn -------------------------------------------------------------------------------

    async def _turn(self, session_id: SessionID, turn: RunTurn) -> tuple[TurnOutcome, TurnEnd]:
        session = await self._boundary.sample(session_id)
        async with self._services.locations.hold(session.location) as location:
            observation = await location.context.observe()
            try:
                crossed = await shielded(self._boundary.cross(session, turn, observation))
            except asyncio.CancelledError:
                await shielded(self._fail_unanswered(session))
                raise
            end = await self._ask(crossed, location)
        return TurnOutcome(crossed.step, end.needs_continuation), end

    async def _fail_unanswered(self, session: SessionInfo) -> None:
        """Interrupted right after its promotion, a prompt has a failed answer, not none."""
        newest = await self._store.database.read(
            lambda tx: message_table.latest_said(tx, session.id)
        )
        if newest is not None and newest.type == "user":
            agent = "" if session.agent is UNSET else session.agent
            await self._refuse(session, agent, TURN_INTERRUPTED)

    async def _ask(self, crossed: Crossed, location: LocationServices) -> TurnEnd:
        session = crossed.session
        wanted = None if session.agent is UNSET else session.agent
        selection = location.agents.select(wanted)
        if not isinstance(selection, Selected):
            # Another agent would answer with other permissions than were asked for.
            return await self._refuse(session, wanted or "", _no_agent(wanted))
        agent = selection.agent
        model = location.catalog.resolve(_model_of(session, agent))
        if not isinstance(model, ResolvedModel):
            return await self._refuse(session, agent.id, model.message)
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
            cost=lambda usage: catalog.cost_of(model.cost, turn_recorder.tokens_of(usage)),
        )
        return await turn.run(model.call, request)

    async def _refuse(self, session: SessionInfo, agent: str, reason: str) -> TurnEnd:
        """A turn that cannot be sent is a step that failed."""
        model = session.model
        shown = ModelRef(id="none", provider_id="none") if model is UNSET else model
        recorder = self._recorder(session, agent, shown)
        facts = recorder.step_failed(reason, now=self._clock.now_millis())
        await self._store.append(session.id, facts, location=session.location, running=True)
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
        return Toolbox(offered, self._services.outputs, location.output_limits)

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
            lambda tx: self._histories.load(tx, session.id, cut=cut, model=model.ref)
        )
        system = ("" if agent.system is UNSET else agent.system, crossed.epoch.baseline)
        request = LLMRequest(
            model=model.ref,
            system=tuple(text for text in system if text),
            runs=history.runs,
            kept=history.kept,
            tools=() if toolbox is None else toolbox.offered.definitions,
            options={"openai": {"promptCacheKey": _cache_key(session.id)}},
            headers={"x-session-affinity": session.id, "x-session-id": session.id},
        )
        return _final(request) if toolbox is None else request


def _final(request: LLMRequest) -> LLMRequest:
    """The request of a last step: no tools, and a note that is not part of the history."""
    note = Run((LLMMessage("system", (TextPart(STEP_LIMIT),)),))
    # The history goes on without the note, so bytes that follow it must not be kept.
    return replace(request, runs=(*request.runs, note), kept=None, tool_choice="none")


async def _cut_floor(tx: Transaction, session_id: SessionID) -> Seq:
    """The sequence before which nothing is sent any more, so nothing can dangle."""
    compaction = await message_table.latest_compaction(tx, session_id)
    return Seq(-1) if compaction is None else Seq(compaction - 1)


def _no_agent(wanted: str | None) -> str:
    return "No agent can be selected here." if wanted is None else f"Agent not found: {wanted}"


def _model_of(session: SessionInfo, agent: AgentInfo) -> ModelRef | None:
    if session.model is not UNSET:
        return session.model
    return None if agent.model is UNSET else agent.model


def _cache_key(session_id: SessionID) -> str:
    """Providers limit the key's length; an id made from an outside key is its 64 hex digits."""
    body = session_id.removeprefix("ses_")
    return body if len(body) == 64 else session_id
