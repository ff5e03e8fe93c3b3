"""Context Source of the subagents: name and description of each that the agent may call.

The task tool calls them (tools.builtin.task); its own description stays the same while this list
changes. Agents without a description are listed by name.
"""

from typing import Final

from msgspec import UNSET

from perdure.core.context import system_context
from perdure.core.context.system_context import ContextSource, Observation
from perdure.core.session import subagent
from perdure.core.text import xml_tags
from perdure.location.agents.agents import Agents
from perdure.location.context.registry import Subject
from perdure.schema.codec import Record
from perdure.schema.settings.agent import AgentInfo

KEY: Final = "core/subagents"


class SubagentSummary(Record, frozen=True):
    name: str
    description: str


SubagentSummaries = tuple[SubagentSummary, ...]


def _rendered(summaries: SubagentSummaries) -> str:
    intro = "Subagents work on their own, in Sessions below this one. Call them with `task`."
    listed = ({"name": one.name, "description": one.description} for one in summaries)
    return f"{intro}\n{xml_tags.list_available('subagent', listed)}"


SUBAGENTS: ContextSource[SubagentSummaries] = ContextSource(
    key=KEY,
    type=SubagentSummaries,
    baseline=_rendered,
    update=lambda previous, current: (
        "The available subagents have changed. This list supersedes the earlier one.\n"
        + _rendered(current)
    ),
    removed=lambda previous: (
        "Subagents cannot be called any more. The list given before no longer applies."
    ),
)


def observe(agents: Agents, subject: Subject) -> Observation:
    """Observe the subagents that the turn's agent may call; empty when there are none."""
    if subject.agent is None:
        return ()
    bounds = subagent.inherited_rules(subject.above, agents.rules)
    usable = [
        agent
        for agent in agents.callable_by(subject.agent.id)
        if not subagent.find_denial(
            bounds, action=subagent.ACTION, resources=(agent.id,), parts=None
        )
    ]
    return (system_context.make(SUBAGENTS, tuple(map(_summary, usable))),) if usable else ()


class CallableAgents:
    """Implements the task tool's AgentLookup."""

    def __init__(self, agents: Agents) -> None:
        self._agents = agents

    def get(self, name: str) -> AgentInfo | None:
        return self._agents.get(name)

    def callable_by(self, agent: str) -> tuple[AgentInfo, ...]:
        return self._agents.callable_by(agent)


def _summary(agent: AgentInfo) -> SubagentSummary:
    description = "" if agent.description is UNSET else agent.description
    return SubagentSummary(agent.id, xml_tags.one_line(description))
