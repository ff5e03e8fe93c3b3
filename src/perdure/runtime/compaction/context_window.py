"""Keeping a request within the model's context: compact before it is sent, or once after overflow.

What is too large, and how large it may become, is decided by core.request.token_budget. A model
whose context is unknown gets the whole request and says itself when that is too much.

Invariant: at most one compaction before a turn and one after its overflow.
"""

from typing import Final

from perdure.core.request import token_budget
from perdure.core.request.token_budget import Demand
from perdure.llm.request import LLMRequest
from perdure.location.location import Location
from perdure.runtime.compaction.compactor import Compactor
from perdure.runtime.turn.history_cache import History
from perdure.runtime.turn.model_choice import ChosenModel
from perdure.schema.session.session import SessionInfo
from perdure.tools.api.registry import TurnTools

STILL_TOO_LARGE: Final = (
    "The conversation is too large for this model, and condensing it does not help any more."
    " Choose a model with a larger context, or go on in a new Session."
)


def window(chosen: ChosenModel, location: Location) -> int:
    """How large a request may be; 0 is unknown."""
    model = chosen.model
    return token_budget.window(
        model.limit,
        buffer_tokens=location.settings.compaction.buffer_tokens,
        output_tokens=model.generation.max_tokens,
    )


def due(demand: Demand, chosen: ChosenModel, location: Location) -> int | None:
    """The room that a compaction before the turn is to make; None where none is due."""
    if not location.settings.compaction.auto:
        return None
    return token_budget.due_compaction_target(demand, window(chosen, location))


def demand(request: LLMRequest, history: History, tools: TurnTools | None) -> Demand:
    """How large the request is; `tools` are those that it offers."""
    fixed = token_budget.estimate_system(request.system) + (0 if tools is None else tools.tokens)
    return Demand(fixed=fixed, conversation=history.tokens)


class ContextWindow:
    def __init__(self, compactor: Compactor) -> None:
        self._compactor = compactor

    async def ensure_fits(
        self, session: SessionInfo, location: Location, chosen: ChosenModel, *, demand: Demand
    ) -> bool:
        """Compact if the request is too large. True: it was, so build the request again."""
        room = due(demand, chosen, location)
        if room is None:
            return False
        return await self._compactor.make_room(session, location, chosen, room=room)

    async def shrink_after_overflow(
        self, session: SessionInfo, location: Location, chosen: ChosenModel, *, demand: Demand
    ) -> bool:
        """Compact after the provider refused the request as too large, whatever was estimated."""
        believed = demand.tokens
        limit = min(window(chosen, location) or believed, believed * 3 // 4)
        return await self._compactor.make_room(
            session,
            location,
            chosen,
            room=token_budget.compaction_target(demand, limit),
            believed=believed,
        )
