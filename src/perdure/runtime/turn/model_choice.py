"""Who answers: the agent and the model that a Session's next request goes to.

What was chosen is used or refused, never replaced: another agent would answer with other
permissions than were asked for, another model at another price. The exception is a chain of models
that the agent names itself (runtime.turn.model_chain).
"""

import shlex

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core.models import model_chain
from perdure.location.location import Location
from perdure.location.models.catalog import Catalog, ResolvedModel
from perdure.schema.ids import SessionID
from perdure.schema.models.model import ModelRef
from perdure.schema.session.session import SessionInfo
from perdure.schema.settings.agent import AgentInfo
from perdure.schema.value import Confidential, Value


class ChosenModel(Confidential, kw_only=True):
    agent: AgentInfo
    model: ResolvedModel
    chain: tuple[ModelRef, ...]
    """The models that may answer, the chosen one first; core.models.model_chain."""

    @property
    def wanted(self) -> ModelRef:
        """The model that was chosen, also while another one stands in."""
        return self.chain[0]

    @property
    def has_others(self) -> bool:
        return len(self.chain) > 1

    @property
    def agent_id(self) -> str:
        return self.agent.id


class NoModelChosen(Value, kw_only=True):
    agent_id: str
    """The agent that was asked for; empty if none was."""
    reason: str


def choose(session: SessionInfo, location: Location) -> ChosenModel | NoModelChosen:
    wanted = None if session.agent is UNSET else session.agent
    agent = location.agents.select(wanted)
    if agent is None:
        return NoModelChosen(agent_id=wanted or "", reason=_no_agent(wanted) + _untrusted(location))
    options = location.agents.options(agent.id)
    wanted_model = _model_of(session, agent) or _default(location.catalog, options.variant)
    model = location.catalog.resolve(wanted_model, options.request)
    if not isinstance(model, ResolvedModel):
        return NoModelChosen(agent_id=agent.id, reason=model.message + _untrusted(location))
    chain = model_chain.chain_of(model.ref, options.models)
    if session.substitute and any(map(session.substitute.model.same_selection, chain)):
        substitute = location.catalog.resolve(session.substitute.model, options.request)
        model = substitute if isinstance(substitute, ResolvedModel) else model
    return ChosenModel(agent=agent, model=model, chain=chain)


def correlation(session_id: SessionID) -> dict[str, str]:
    """Headers by which a provider or a proxy can tell the requests of a Session."""
    return {"x-session-affinity": session_id, "x-session-id": session_id}


def _no_agent(wanted: str | None) -> str:
    return "No agent can be selected here." if wanted is None else f"Agent not found: {wanted}"


def _untrusted(location: Location) -> str:
    """A hint for a person whose project names an agent or a model that does not count yet."""
    if location.settings.is_trusted:
        return ""
    return (
        " Settings of this project are off until you trust it:"
        f" perdure trust {shlex.quote(location.ref.directory)}"
    )


def _model_of(session: SessionInfo, agent: AgentInfo) -> ModelRef | None:
    if session.model is not UNSET:
        return session.model
    return None if agent.model is UNSET else agent.model


def _default(catalog: Catalog, variant: str | None) -> ModelRef | None:
    """The default model, in the variant that the agent asks for."""
    model = catalog.default()
    return model if model is None or variant is None else replace(model, variant=variant)
