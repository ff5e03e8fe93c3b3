"""Ports for subagents: which agents can be called, and having one do a task.

`AgentLookup` is implemented by location.agents.context_source, `SubagentRunner` by
runtime.background.subagents.
"""

from typing import Protocol

from perdure.core.session.subagent import Report
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.settings.agent import AgentInfo
from perdure.schema.value import Value


class TaskAsk(Value, kw_only=True):
    """One call of a subagent."""

    session_id: SessionID
    assistant_message_id: MessageID
    call_id: ToolCallID
    calling_agent: str
    """Name of the agent of the calling turn, whatever is selected by now."""
    caller: AgentInfo | None
    """The same agent, as it is now; None if it does not exist any more."""
    agent: AgentInfo
    """The subagent."""
    description: str
    prompt: str
    task_id: SessionID | None
    """The child to continue; None starts a new one."""
    background: bool


class TaskRefusedError(Exception):
    """No subagent was started, for a reason that the model can act on."""


class TaskResult(Value):
    child_id: SessionID
    prompt_id: MessageID
    report: Report


class SubagentRunner(Protocol):
    async def delegate(self, ask: TaskAsk) -> TaskResult:
        """Start or continue a child Session; wait for its end unless `background` is set.

        Raises TaskRefusedError. Cancelling it stops the child.
        """
        ...


class AgentLookup(Protocol):
    def get(self, name: str) -> AgentInfo | None:
        """Return the agent of that name, as it is now."""
        ...

    def callable_by(self, agent: str) -> tuple[AgentInfo, ...]:
        """Return the agents that the agent may call."""
        ...
