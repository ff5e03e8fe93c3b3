"""The provider context of a Session: what would be told and sent if the next boundary were now.

Everything is made by what a run uses too: the boundary plans, provider_request builds. Nothing is
committed, promoted or kept, no lease is taken and no model is called; sources are looked at as they
are at any boundary. What was told so far is read by runtime.session.sessions.

Invariant: with nothing changed in between, the request shown is the request sent.
"""

from msgspec import UNSET

from perdure.core.context import system_context
from perdure.core.context.system_context import ContextEpoch, Observation, Snapshot
from perdure.core.request import history_to_llm, message_media, preview
from perdure.core.request.token_budget import ConversationSize, Demand
from perdure.core.session import drain, projection
from perdure.core.session.drain import Pending, RunTurn
from perdure.core.session.history import Cut
from perdure.llm.encoded_history import EncodedHistory
from perdure.llm.message import LLMMessage, split_segments
from perdure.location.location import Location
from perdure.ports import Transaction
from perdure.runtime.compaction import context_window
from perdure.runtime.turn import attached_prompts, history_cache, model_choice, request
from perdure.runtime.turn.boundary import Boundary, BoundaryPlan, ContextBlockedError
from perdure.runtime.turn.history_cache import History, MediaSent
from perdure.runtime.turn.media import RequestMedia
from perdure.runtime.turn.model_choice import ChosenModel, NoModelChosen
from perdure.runtime.turn.services import RunServices
from perdure.schema.codec import JsonObject
from perdure.schema.errors import InvalidRequestError
from perdure.schema.ids import Seq, SessionID
from perdure.schema.models.model import ModelRef
from perdure.schema.session.event import ContextUpdated
from perdure.schema.session.request_preview import EpochInfo, PendingContext, WindowInfo
from perdure.schema.value import Value
from perdure.store.log.event_store import NO_EVENTS
from perdure.store.tables import inbox_table, message_table, notice_table


class _Waiting(Value):
    prompts: int
    turn: RunTurn


class RequestPreviews:
    def __init__(self, services: RunServices) -> None:
        self._store = services.store
        self._locations = services.locations
        self._boundary = Boundary(services.store, services.clock, services.ids)

    async def outlook(self, session_id: SessionID, epoch: ContextEpoch | None) -> JsonObject:
        """The fields of schema.session.request_preview.ProviderContext that look ahead."""
        snapshot = {} if epoch is None else system_context.decode_snapshot(epoch.snapshot)
        waiting = await self._store.database.read(lambda tx: _waiting(tx, session_id))
        shown: JsonObject = {"pendingPrompts": waiting.prompts}
        if epoch is not None:
            shown["epoch"] = await self._epoch(session_id, epoch)
        sample = await self._boundary.sample(session_id)
        try:
            async with self._locations.hold(sample.session.location) as location:
                chosen = model_choice.choose(sample.session, location)
                subject = request.subject(sample, chosen)
                observation = await location.observe(subject)
                try:
                    plan = await self._boundary.plan(sample.session, waiting.turn, observation)
                except ContextBlockedError as blocked:
                    return shown | _blocked(blocked, observation, snapshot)
                agent = chosen.agent.id if isinstance(chosen, ChosenModel) else chosen.agent
                looking = location.attachments.without_tracking()
                plan = await attached_prompts.with_content(plan, looking, agent)
                shown |= _planned(plan, observation, snapshot)
                return shown | await self._request(plan, chosen, location)
        except InvalidRequestError as unusable:
            details = preview.describe_snapshot(snapshot)
            return shown | {"sourceDetails": details, "refusal": unusable.message}

    async def _epoch(self, session_id: SessionID, epoch: ContextEpoch) -> EpochInfo:
        before = Seq(epoch.baseline_seq - 1)
        ((_, _, event),) = await self._store.read(session_id, after=before, limit=1)
        return EpochInfo(baseline_seq=epoch.baseline_seq, began=event.timestamp)

    async def _request(
        self, plan: BoundaryPlan, chosen: ChosenModel | NoModelChosen, location: Location
    ) -> JsonObject:
        if isinstance(chosen, NoModelChosen):
            return {"refusal": chosen.reason}
        history = await self._history(plan, chosen.model.ref)
        history = await RequestMedia().within(history, chosen.model.media)
        offered = request.offered(plan.crossed, chosen.agent, location)
        built = request.build(plan.crossed, chosen, history, offered)
        return {
            "request": preview.preview_request(built, agent=chosen.agent.id),
            "window": _window(context_window.demand(built, history), chosen, location),
        }

    async def _history(self, plan: BoundaryPlan, model: ModelRef) -> History:
        """Session History as it would be then. The one that runs keep is left alone."""
        crossed = plan.crossed
        cut = Cut(crossed.compaction, crossed.epoch.baseline_seq)
        rows = await self._store.database.read(
            lambda tx: message_table.list_after(tx, crossed.session.id, NO_EVENTS)
        )
        messages = [row.message() for row in rows if cut.shows(seq=row.seq, type=row.type)]
        created = (projection.message_created(fact) for fact in plan.facts)
        messages.extend(message for message in created if message is not None)
        lowered: list[LLMMessage] = []
        size = ConversationSize()
        for message in messages:
            said = history_to_llm.lower(message, model)
            size = history_cache.measured(size, message, said, model=model)
            lowered.extend(said)
        media = MediaSent(there=message_media.has_media(lowered))
        return History(split_segments(tuple(lowered)), EncodedHistory(), size, media)


def _window(demand: Demand, chosen: ChosenModel, location: Location) -> WindowInfo:
    request_max = context_window.window(chosen, location)
    return WindowInfo(
        tokens=demand.tokens,
        compacts=context_window.due(demand, chosen, location) is not None,
        context=chosen.model.limit.context or UNSET,
        request_max=request_max or UNSET,
    )


async def _waiting(tx: Transaction, session_id: SessionID) -> _Waiting:
    pending = Pending(
        steer=await inbox_table.has_pending(tx, session_id, "steer"),
        queue=await inbox_table.has_pending(tx, session_id, "queue"),
        notice=await notice_table.has_pending(tx, session_id),
    )
    step = drain.first_step(pending, force=True)
    assert isinstance(step, RunTurn)
    return _Waiting(await inbox_table.count_pending(tx, session_id), step)


def _planned(plan: BoundaryPlan, observation: Observation, snapshot: Snapshot) -> JsonObject:
    pending = _pending(plan)
    details = preview.describe_sources(observation, snapshot, all_told=pending.type == "baseline")
    return {"pending": pending, "sourceDetails": details}


def _pending(plan: BoundaryPlan) -> PendingContext:
    texts = [fact.text for fact in plan.facts if isinstance(fact, ContextUpdated)]
    if texts:
        return PendingContext(type="message", text=texts[0])
    if plan.waits_for:
        return PendingContext(type="blocked", keys=plan.waits_for)
    if plan.stores_epoch:
        return PendingContext(type="baseline", text=plan.crossed.epoch.baseline)
    return PendingContext(type="nothing")


def _blocked(
    blocked: ContextBlockedError, observation: Observation, snapshot: Snapshot
) -> JsonObject:
    return {
        "pending": PendingContext(type="blocked", keys=blocked.keys),
        "sourceDetails": preview.describe_sources(observation, snapshot, all_told=False),
        "refusal": str(blocked),
    }
