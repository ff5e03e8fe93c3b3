"""Room for a turn in the model's context: made before it is sent, or once after it overflowed.

What is too large, and how large it may become, is decided by core.request.token_budget. A model
whose context is unknown is given what there is; it says itself when that is too much.

Invariant: at most one compaction before a turn and one after its overflow, so nothing spins.
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
from perdure.schema.value import Confidential

STILL_TOO_LARGE: Final = (
    "The conversation is too large for this model, and condensing it does not help any more."
    " Choose a model with a larger context, or go on in a new Session."
)


class Prepared(Confidential, kw_only=True):
    """A request that is ready to be sent, and who it is for."""

    session: SessionInfo
    location: Location
    chosen: ChosenModel
    request: LLMRequest
    demand: Demand
    above: tuple[str, ...] = ()
    """The agents of those who called this Session."""

    @property
    def window(self) -> int:
        return window(self.chosen, self.location)


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


def demand(request: LLMRequest, history: History) -> Demand:
    fixed = token_budget.estimate_fixed(request.system, request.tools)
    return Demand(fixed=fixed, conversation=history.tokens)


class ContextWindow:
    def __init__(self, compactor: Compactor) -> None:
        self._compactor = compactor

    async def ensure_fits(self, turn: Prepared) -> bool:
        """Whether the Session was compacted, so that the turn must be prepared anew."""
        room = due(turn.demand, turn.chosen, turn.location)
        if room is None:
            return False
        return await self._compactor.make_room(turn.session, turn.location, turn.chosen, room=room)

    async def make_after_overflow(self, turn: Prepared) -> bool:
        """The same for a request that was refused, whatever is configured or was estimated."""
        believed = turn.demand.tokens
        window = min(turn.window or believed, believed * 3 // 4)
        return await self._compactor.make_room(
            turn.session,
            turn.location,
            turn.chosen,
            room=token_budget.compaction_target(turn.demand, window),
            believed=believed,
        )
