"""Preview of the next request of a Session: what it would be told and sent if it ran now.

Uses the same code as a turn: runtime.turn.boundary plans, runtime.turn.request builds. Nothing is
committed or promoted, no lease is taken and no model is called. What was told so far is read by
runtime.session.sessions.

Invariant: with nothing changed in between, the request shown is the request sent.
"""

from msgspec import UNSET

from perdure.core.context import system_context
from perdure.core.context.system_context import ContextEpoch, Observation, Snapshot
from perdure.core.request import message_media, preview
from perdure.core.request.conversation import Conversation
from perdure.core.request.token_budget import ConversationSize, Demand
from perdure.core.session import drain, projection
from perdure.core.session.drain import RunTurn
from perdure.core.session.history import Cut
from perdure.llm.encoded_history import EncodedHistory
from perdure.llm.message import LLMMessage, split_segments
from perdure.location.location import Location
from perdure.ports import Transaction
from perdure.runtime.compaction import context_window
from perdure.runtime.compaction.context_window import LearnedLimits
from perdure.runtime.turn import boundary as boundaries
from perdure.runtime.turn import history_cache, model_choice, request, turn_input
from perdure.runtime.turn.boundary import Boundary, ContextBlockedError
from perdure.runtime.turn.history_cache import History, MediaSent
from perdure.runtime.turn.media import RequestMedia
from perdure.runtime.turn.model_choice import ChosenModel, NoModelChosen
from perdure.runtime.turn.services import RunServices
from perdure.runtime.turn.turn_input import TurnInput
from perdure.schema.codec import JsonObject
from perdure.schema.errors import InvalidRequestError
from perdure.schema.ids import Seq, SessionID
from perdure.schema.session.event import ContextUpdated, MessageEvent
from perdure.schema.session.request_preview import EpochInfo, PendingContext, WindowInfo
from perdure.schema.value import Value
from perdure.store.log.event_store import NO_EVENTS
from perdure.store.tables import inbox_table, message_table


class _Found(Value):
    input: TurnInput
    pending_prompts: int


class RequestPreviews:
    def __init__(self, services: RunServices, learned: LearnedLimits) -> None:
        self._learned = learned
        self._store = services.store
        self._locations = services.locations
        self._clock = services.clock
        self._ids = services.ids

    async def outlook(self, session_id: SessionID, epoch: ContextEpoch | None) -> JsonObject:
        """The fields of schema.session.request_preview.ProviderContext that look ahead."""
        snapshot: Snapshot = {} if epoch is None else system_context.decode_snapshot(epoch.snapshot)
        found = await self._store.database.read(lambda tx: _look(tx, session_id))
        session = found.input.session
        shown: JsonObject = {"pendingPrompts": found.pending_prompts}
        if epoch is not None:
            shown["epoch"] = await self._epoch(session_id, epoch)
        try:
            async with self._locations.hold(session.location, session=session_id) as location:
                chosen = model_choice.choose(session, location)
                observation = await location.observe(request.subject(found.input, chosen))
                try:
                    boundary = self._plan(found.input, observation)
                except ContextBlockedError as blocked:
                    return shown | _blocked(blocked, observation, snapshot)
                looking = location.attachments.without_tracking()
                boundary = await boundaries.with_attachments(boundary, looking, chosen.agent_id)
                shown |= _planned(boundary, observation, snapshot)
                return shown | await self._request(boundary, chosen, location)
        except InvalidRequestError as unusable:
            details = preview.describe_snapshot(snapshot)
            return shown | {"sourceDetails": details, "refusal": unusable.message}

    def _plan(self, found: TurnInput, observation: Observation) -> Boundary:
        step = drain.first_step(found.inbox.pending)
        turn = step if isinstance(step, RunTurn) else RunTurn("none", 1)
        return boundaries.plan(found, turn, observation, clock=self._clock, ids=self._ids)

    async def _epoch(self, session_id: SessionID, epoch: ContextEpoch) -> EpochInfo:
        before = Seq(epoch.baseline_seq - 1)
        ((_, _, event),) = await self._store.read(session_id, after=before, limit=1)
        return EpochInfo(baseline_seq=epoch.baseline_seq, began=event.timestamp)

    async def _request(
        self, boundary: Boundary, chosen: ChosenModel | NoModelChosen, location: Location
    ) -> JsonObject:
        if isinstance(chosen, NoModelChosen):
            return {"refusal": chosen.reason}
        history = await self._history(boundary, chosen)
        history = await RequestMedia().within(history, chosen.model.media)
        offered = await request.offered(boundary, chosen.agent, location)
        built = request.build(boundary, chosen, history, offered)
        demand = context_window.demand(built, history, offered)
        return {
            "request": preview.preview_request(built, agent=chosen.agent.id),
            "window": self._window(demand, boundary.session.id, chosen, location),
        }

    def _window(
        self, demand: Demand, session_id: SessionID, chosen: ChosenModel, location: Location
    ) -> WindowInfo:
        request_max = self._learned.window(session_id, chosen, location)
        return WindowInfo(
            tokens=demand.tokens,
            compacts=self._learned.due(demand, session_id, chosen, location),
            context=chosen.model.limit.context or UNSET,
            request_max=request_max or UNSET,
        )

    async def _history(self, boundary: Boundary, chosen: ChosenModel) -> History:
        """Session History as it would be then. The one that runs keep is left alone."""
        cut = Cut(boundary.compaction, boundary.epoch.baseline_seq)
        rows = await self._store.database.read(
            lambda tx: message_table.list_after(tx, boundary.session.id, NO_EVENTS)
        )
        plain_until = history_cache.plain_until(rows)
        messages = [
            (row.message(), row.seq > plain_until)
            for row in rows
            if cut.shows(seq=row.seq, type=row.type)
        ]
        created = (fact for fact in boundary.facts if isinstance(fact, MessageEvent))
        messages.extend((projection.message_created(fact), True) for fact in created)
        model = chosen.model.ref
        conversation = Conversation(model, chosen.model.route)
        lowered: list[LLMMessage] = []
        size = ConversationSize()
        for message, native in messages:
            said = conversation.lower(message, native=native)
            size = history_cache.measured(size, message, said, model=model)
            lowered.extend(said)
        media = MediaSent(there=message_media.has_media(lowered))
        return History(split_segments(tuple(lowered)), EncodedHistory(), size, media)


async def _look(tx: Transaction, session_id: SessionID) -> _Found:
    found = await turn_input.load(tx, session_id)
    return _Found(found, await inbox_table.count_pending(tx, session_id))


def _planned(boundary: Boundary, observation: Observation, snapshot: Snapshot) -> JsonObject:
    pending = _pending(boundary)
    details = preview.describe_sources(
        observation, snapshot, new_baseline=pending.type == "baseline"
    )
    return {"pending": pending, "sourceDetails": details}


def _pending(boundary: Boundary) -> PendingContext:
    texts = [fact.text for fact in boundary.facts if isinstance(fact, ContextUpdated)]
    if texts:
        return PendingContext(type="message", text=texts[0])
    if boundary.blocked_by:
        return PendingContext(type="blocked", keys=boundary.blocked_by)
    if boundary.stores_epoch:
        return PendingContext(type="baseline", text=boundary.epoch.baseline)
    return PendingContext(type="nothing")


def _blocked(
    blocked: ContextBlockedError, observation: Observation, snapshot: Snapshot
) -> JsonObject:
    return {
        "pending": PendingContext(type="blocked", keys=blocked.keys),
        "sourceDetails": preview.describe_sources(observation, snapshot, new_baseline=False),
        "refusal": str(blocked),
    }
