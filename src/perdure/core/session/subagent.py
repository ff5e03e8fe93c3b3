"""Subagents: which agents may be called, the permissions of a child, and its report.

A child is an ordinary Session; creating one and waiting for it is runtime.background.subagents.

Invariant: a child may do nothing that the agent of a calling turn may not do, and nothing unasked
that needs a question there. `allow` is not inherited.
"""

from collections.abc import Callable, Iterable
from typing import Final, Literal

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.approval import rules as permission
from perdure.core.approval.rules import Decision, ResourceParts, Rules
from perdure.llm.encoding.shared import escape_markup
from perdure.schema import ids
from perdure.schema.approval.permission import Rule, Ruleset
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.models.model import ModelRef
from perdure.schema.session.message import AssistantMessage, TextPart
from perdure.schema.settings.agent import AgentInfo
from perdure.schema.value import Value

ACTION: Final = "task"
"""The permission action; its resource is the name of the agent."""
_NO_TASK: Final[Ruleset] = (Rule("*", "*", "allow"), Rule(ACTION, "*", "deny"))
_NO_TEXT: Final = "(It ended without any text.)"

Outcome = Literal["completed", "failed", "running"]


class Report(Value, kw_only=True):
    """The state of a task, reported to its caller."""

    state: Outcome
    text: str
    steps: int = 0
    cost: float = 0.0


def child_session_id(parent: SessionID, message: MessageID, call: ToolCallID) -> SessionID:
    """The id of the Session that a call creates; the same for every attempt."""
    return ids.session_from_external(f"task\x00{parent}\x00{message}\x00{call}")


def prompt_id(parent: SessionID, message: MessageID, call: ToolCallID) -> MessageID:
    """The id of the prompt with which a call starts or continues a child."""
    return ids.message_from_external(f"task\x00{parent}\x00{message}\x00{call}")


def notice_id(prompt: MessageID) -> MessageID:
    """The id of the notice with a task's result, if its call did not wait for it."""
    return ids.message_from_external(f"task result\x00{prompt}")


def callable_agents(agents: Iterable[AgentInfo], caller: Rules) -> tuple[AgentInfo, ...]:
    """The agents that an agent with these rules may call."""
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
    """The model of a child: its agent's, else its parent's; None means the default."""
    if agent.model is not UNSET:
        return agent.model
    if chosen is not None:
        return chosen
    return None if caller is None or caller.model is UNSET else caller.model


def inherited_rules(above: tuple[str, ...], rules: Callable[[str], Rules]) -> tuple[Rules, ...]:
    """The rules that bound a Session: those of the agents that called it, up to the root."""
    inherited = tuple(rules(agent) for agent in above)
    return inherited if len(above) < limits.TASK_DEPTH_MAX else (*inherited, _NO_TASK)


def find_denial(
    bounds: tuple[Rules, ...],
    *,
    action: str,
    resources: tuple[str, ...],
    parts: ResourceParts | None,
) -> Decision | None:
    """The denial by one of the bounds, if any. A command that may do what one denies is denied."""
    for rules in bounds:
        decision = permission.decide(rules, (), action=action, resources=resources, parts=parts)
        suspected = decision.rule is not None and decision.rule.effect == "deny"
        if decision.effect == "deny" or suspected:
            return replace(decision, effect="deny")
    return None


def build_report(last: AssistantMessage | None, *, steps: int, cost: float) -> Report:
    """The report of a child that is idle after these steps on its prompt."""
    if last is None:
        text = "It ended before it was answered."
        return Report(state="failed", text=text, steps=steps, cost=cost)
    answer_text = "\n".join(
        part.text for part in last.content if isinstance(part, TextPart)
    ).strip()
    if last.error is UNSET:
        return Report(state="completed", text=answer_text or _NO_TEXT, steps=steps, cost=cost)
    failure = f"It failed: {last.error.message}"
    text = f"{failure}\n\n{answer_text}" if answer_text else failure
    return Report(state="failed", text=text, steps=steps, cost=cost)


def render_report(child: SessionID, report: Report) -> str:
    """The report as text for the model."""
    return (
        f"task_id: {child} (give it to the task tool to go on with this subagent)\n"
        f"state: {report.state}\n\n"
        f"<task_result>\n{escape_markup(report.text)}\n</task_result>"
    )


def render_notice(child: SessionID, agent: str, report: Report) -> str:
    """The notice of a task whose call no longer waits for it."""
    most = limits.TASK_NOTICE_CHARS_MAX
    text = report.text
    if len(text) > most:
        text = f"{text[:most]}\n(cut off; the whole text is in Session {child})"
    cut = Report(state=report.state, text=text, steps=report.steps, cost=report.cost)
    return f"The task of the subagent {agent!r} has come to its end.\n{render_report(child, cut)}"
