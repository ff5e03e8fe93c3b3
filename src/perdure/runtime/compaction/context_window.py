"""Keeping a request within the model's context: compact before it is sent, or once after overflow.

What is too large, and how large it may become, is decided by core.request.token_budget. A model
whose context is unknown gets the whole request and says itself when that is too much. A limit that
a provider names when it refuses a request holds from then on, for this Session and model, until
the process ends.

Invariant: at most one compaction before a turn and one after its overflow.
"""

from collections import OrderedDict

from perdure.core import limits
from perdure.core.compaction import outcome
from perdure.core.compaction.outcome import Compacted, NothingToCompact, WindowUse
from perdure.core.request import provider_limit, token_budget
from perdure.core.request.token_budget import Demand
from perdure.llm.request import LLMRequest
from perdure.location.location import Location
from perdure.runtime.compaction.compactor import Compactor, Need
from perdure.runtime.turn.history_cache import History
from perdure.runtime.turn.model_choice import ChosenModel
from perdure.schema.ids import SessionID
from perdure.schema.session.session import SessionInfo
from perdure.tools.api.registry import TurnTools

_LEARNED_MAX = 1_000


class LearnedLimits:
    """Limits that providers named when they refused a request, by Session and model."""

    def __init__(self) -> None:
        self._limits: OrderedDict[tuple[SessionID, str, str], int] = OrderedDict()

    def learn(self, session_id: SessionID, chosen: ChosenModel, tokens: int) -> None:
        self._limits[_key(session_id, chosen)] = tokens
        while len(self._limits) > _LEARNED_MAX:
            self._limits.popitem(last=False)

    def window(self, session_id: SessionID, chosen: ChosenModel, location: Location) -> int:
        """How large a request may be; 0 is unknown."""
        model = chosen.model
        known = token_budget.window(
            model.limit,
            buffer_tokens=location.settings.compaction.buffer_tokens,
            output_tokens=model.generation.max_tokens,
        )
        learned = self._limits.get(_key(session_id, chosen), 0)
        return min(known or learned, learned or known)

    def due(
        self, demand: Demand, session_id: SessionID, chosen: ChosenModel, location: Location
    ) -> bool:
        """Whether a compaction comes before the turn."""
        window = self.window(session_id, chosen, location)
        return (
            location.settings.compaction.auto
            and token_budget.due_compaction_target(demand, window) is not None
        )


def demand(request: LLMRequest, history: History, tools: TurnTools | None) -> Demand:
    """How large the request is; `tools` are those that it offers."""
    fixed = token_budget.estimate_system(request.system) + (0 if tools is None else tools.tokens)
    return Demand(fixed=fixed, conversation=history.tokens)


class ContextWindow:
    def __init__(self, compactor: Compactor, learned: LearnedLimits) -> None:
        self._compactor = compactor
        self._learned = learned

    async def ensure_fits(
        self, session: SessionInfo, location: Location, chosen: ChosenModel, *, demand: Demand
    ) -> Compacted | NothingToCompact | None:
        """Compact if the request is too large; None if it is not.

        Compacted: build the request again. NothingToCompact: it cannot be sent, for this reason.
        """
        if not self._learned.due(demand, session.id, chosen, location):
            return None
        window = self._learned.window(session.id, chosen, location)
        need = Need(
            demand=demand,
            window=window,
            message_max=token_budget.conversation_max(demand, window),
        )
        return await self._compactor.make_room(session, location, chosen, need)

    async def shrink_after_overflow(
        self,
        session: SessionInfo,
        location: Location,
        chosen: ChosenModel,
        *,
        demand: Demand,
        refusal: str,
    ) -> Compacted | NothingToCompact:
        """Compact after the provider refused the request as too large, whatever was estimated."""
        believed = demand.tokens
        said = provider_limit.find_limit(refusal, believed)
        if said is not None:
            self._learned.learn(session.id, chosen, said)
        known = self._learned.window(session.id, chosen, location) or believed
        # Without a number, less than a message that is nearly all of what was refused is hopeless.
        alone = said or believed * limits.REFUSED_MESSAGE_PERCENT // 100
        need = Need(
            demand=demand,
            window=min(known, said or believed * 3 // 4),
            message_max=token_budget.conversation_max(demand, min(known, alone)),
            believed=said or believed,
        )
        return await self._compactor.make_room(session, location, chosen, need)

    def explain_refusal(
        self, session: SessionInfo, location: Location, chosen: ChosenModel, *, demand: Demand
    ) -> str:
        """Why a request was refused again after a compaction, and what to do."""
        window = self._learned.window(session.id, chosen, location) or demand.tokens
        model = chosen.model.ref
        use = WindowUse(model=f"{model.provider_id}/{model.id}", window=window, fixed=demand.fixed)
        left = token_budget.compaction_target(demand, window)
        if left < limits.COMPACTION_ROOM_TOKENS_MIN:
            return outcome.large_fixed_part(use)
        return outcome.large_conversation(session.id, None, use)


def _key(session_id: SessionID, chosen: ChosenModel) -> tuple[SessionID, str, str]:
    model = chosen.model.ref
    return session_id, model.provider_id, model.id
