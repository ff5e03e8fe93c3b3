"""Subagents: who may be called, what a child Session may do at most, and what its caller is told.

A child is a Session like any other; making one and waiting for it is runtime.background.subagents.

Invariant: what is denied to the agent of a calling turn is denied to everything below it. `ask` and
`allow` are not handed down: those are for the child's own agent to say.
"""

from collections.abc import Callable, Iterable
from typing import Final, Literal

from msgspec import UNSET

from perdure.core import limits
from perdure.core.approval import rules as permission
from perdure.core.approval.rules import Decision, ResourceParts
from perdure.core.text import xml_tags
from perdure.schema import ids
from perdure.schema.approval.permission import Rule, Ruleset
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.models.model import ModelRef
from perdure.schema.session.message import AssistantMessage, TextPart
from perdure.schema.settings.agent import AgentInfo
from perdure.schema.value import Value

ACTION: Final = "task"
"""The permission action; its resource is the name of the agent."""
_NO_TASK: Final[Ruleset] = (Rule(ACTION, "*", "deny"),)
_NO_TEXT: Final = "(It ended without any text.)"

Outcome = Literal["completed", "failed", "running"]


class Report(Value, kw_only=True):
    """How far a task is, for whoever asked for it."""

    state: Outcome
    text: str
    steps: int = 0
    cost: float = 0.0


def child_session_id(parent: SessionID, message: MessageID, call: ToolCallID) -> SessionID:
    """The Session that a call makes: the same, however often it is tried."""
    return ids.session_from_external(f"task\x00{parent}\x00{message}\x00{call}")


def prompt_id(parent: SessionID, message: MessageID, call: ToolCallID) -> MessageID:
    """The prompt with which a call begins or continues a child."""
    return ids.message_from_external(f"task\x00{parent}\x00{message}\x00{call}")


def notice_id(prompt: MessageID) -> MessageID:
    """The message by which a parent hears how a task ended, if its call does not wait."""
    return ids.message_from_external(f"task result\x00{prompt}")


def callable_agents(agents: Iterable[AgentInfo], caller: Ruleset) -> tuple[AgentInfo, ...]:
    """Those that may be called by an agent with these rules."""
    return tuple(
        agent
        for agent in agents
        if is_subagent(agent) and permission.evaluate(caller, ACTION, agent.id) != "deny"
    )


def is_subagent(agent: AgentInfo) -> bool:
    return agent.mode != "primary" and not agent.hidden


def choose_model(
    agent: AgentInfo, *, chosen: ModelRef | None, caller: AgentInfo | None
) -> ModelRef | None:
    """What a child runs on: its agent's model, else its parent's; None is the default one."""
    if agent.model is not UNSET:
        return agent.model
    if chosen is not None:
        return chosen
    return None if caller is None or caller.model is UNSET else caller.model


def inherited_rules(above: tuple[str, ...], rules: Callable[[str], Ruleset]) -> tuple[Ruleset, ...]:
    """What bounds a Session from above, by the agents that called it and its callers."""
    inherited = tuple(rules(agent) for agent in above)
    return inherited if len(above) < limits.TASK_DEPTH_MAX else (*inherited, _NO_TASK)


def find_denial(
    bounds: tuple[Ruleset, ...],
    *,
    action: str,
    resources: tuple[str, ...],
    parts: ResourceParts | None,
) -> Decision | None:
    """The denial that comes from above, if there is one."""
    for rules in bounds:
        decision = permission.decide(rules, (), action=action, resources=resources, parts=parts)
        if decision.effect == "deny":
            return decision
    return None


def build_report(last: AssistantMessage | None, *, steps: int, cost: float) -> Report:
    """The report of a child that rests after these steps on its prompt."""
    if last is None:
        text = "It ended before it was answered."
        return Report(state="failed", text=text, steps=steps, cost=cost)
    said = "\n".join(part.text for part in last.content if isinstance(part, TextPart)).strip()
    if last.error is UNSET:
        return Report(state="completed", text=said or _NO_TEXT, steps=steps, cost=cost)
    failure = f"It failed: {last.error.message}"
    text = f"{failure}\n\n{said}" if said else failure
    return Report(state="failed", text=text, steps=steps, cost=cost)


def render_report(child: SessionID, report: Report) -> str:
    """What the model reads of a report."""
    return (
        f"task_id: {child} (give it to the task tool to go on with this subagent)\n"
        f"state: {report.state}\n\n"
        f"<task_result>\n{xml_tags.escape(report.text)}\n</task_result>"
    )


def render_notice(child: SessionID, agent: str, report: Report) -> str:
    """The notice of a task whose call does not wait for it any more."""
    most = limits.TASK_NOTICE_CHARS_MAX
    text = report.text
    if len(text) > most:
        text = f"{text[:most]}\n(cut off; the whole text is in Session {child})"
    cut = Report(state=report.state, text=text, steps=report.steps, cost=report.cost)
    return f"The task of the subagent {agent!r} has come to its end.\n{render_report(child, cut)}"
