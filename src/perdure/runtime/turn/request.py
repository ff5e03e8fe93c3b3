"""The next request to a model, built from what the boundary fixed.

A turn sends what is made here and runtime.drain.request_preview shows it, so that what is shown
is what would be sent. What the Catalog adds on the way out (address, headers, key, fields of the
body) belongs to the model's route and is not part of it.
"""

from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core.session import drain, subagent
from perdure.llm.message import LLMMessage, TextPart, split_segments
from perdure.llm.request import LLMRequest
from perdure.location.context.registry import Subject
from perdure.location.location import Location
from perdure.runtime.turn import model_choice
from perdure.runtime.turn.boundary import Boundary
from perdure.runtime.turn.history_cache import History
from perdure.runtime.turn.model_choice import ChosenModel, NoModelChosen
from perdure.runtime.turn.turn_input import TurnInput
from perdure.schema.ids import SessionID
from perdure.schema.settings.agent import AgentInfo
from perdure.tools.api.registry import TurnTools

STEP_LIMIT: Final = (
    "The step limit of this agent is reached and tools are switched off. Answer in text now: sum up"
    " what was done, name what remains, and say what you would do next."
)


def subject(found: TurnInput, chosen: ChosenModel | NoModelChosen) -> Subject:
    """For whom the Context Sources are observed."""
    known = isinstance(chosen, ChosenModel)
    return Subject(
        session_id=found.session.id,
        agent=chosen.agent if known else None,
        model=chosen.model.ref if known else None,
        discovered=found.discovered,
        admitted=found.admitted,
        above=found.callers,
        rules=found.session.permissions or (),
    )


async def offered(boundary: Boundary, agent: AgentInfo, location: Location) -> TurnTools | None:
    """The tools of the turn; None at the last step that the agent may take."""
    if drain.is_last(boundary.step, None if agent.steps is UNSET else agent.steps):
        return None
    bounds = subagent.inherited_rules(boundary.callers, location.agents.rules)
    listed = await location.mcp.listed(boundary.epoch.snapshot)
    own = location.permissions.session_bounds(boundary.session.permissions)
    rules = location.agents.rules(agent.id)
    return location.tools.registry().materialize(rules, *bounds, *own, listed=listed)


def build(
    boundary: Boundary,
    chosen: ChosenModel,
    history: History,
    tools: TurnTools | None,
    *,
    goes_on: bool = False,
) -> LLMRequest:
    """`goes_on`: the provider paused in the newest answer."""
    session_id = boundary.session.id
    system = ("" if chosen.agent.system is UNSET else chosen.agent.system, boundary.epoch.baseline)
    request = LLMRequest(
        model=chosen.model.ref,
        system=tuple(text for text in system if text),
        segments=history.runs,
        encoded_history=history.kept,
        tools=() if tools is None else tools.definitions,
        generation=chosen.model.generation,
        options={"openai": {"promptCacheKey": _cache_key(session_id)}},
        headers=model_choice.correlation(session_id),
        goes_on=goes_on and bool(history.runs) and history.runs[-1].is_answer,
    )
    return _final(request) if tools is None else request


def _final(request: LLMRequest) -> LLMRequest:
    """The request of a last step: no tools, and a note that is not part of the history."""
    note = LLMMessage("system", (TextPart(STEP_LIMIT),))
    closed, last = request.segments[:-1], request.segments[-1:]
    ending = split_segments((*(said for run in last for said in run.messages), note))
    # The history goes on without the note, so bytes that follow it must not be kept.
    return replace(request, segments=(*closed, *ending), encoded_history=None, tool_choice="none")


def _cache_key(session_id: SessionID) -> str:
    """Providers limit the key's length; an id made from an outside key is its 64 hex digits."""
    body = session_id.removeprefix("ses_")
    return body if len(body) == 64 else session_id
