"""task: run a subagent in a child Session and return the text of its last step.

The child is an ordinary Session below the calling one. A Context Source lists the callable agents
(location.agents.context_source), so that this description stays the same. The SubagentRunner
(runtime.background.subagents) creates the child, waits for it and bounds what it may do.

Invariant: whatever happens to the child, the model is informed.
"""

from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType, field

from perdure.core import limits
from perdure.core.session import subagent
from perdure.core.session.subagent import Report
from perdure.ports.subagents import (
    AgentLookup,
    SubagentRunner,
    TaskAsk,
    TaskRefusedError,
    TaskResult,
)
from perdure.schema.codec import JsonObject, Record
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.session.tool import TextContent, ToolContent
from perdure.schema.settings.agent import AgentInfo
from perdure.schema.value import Value
from perdure.tools.api.tool import Tool, ToolCallContext, ToolFailure
from perdure.tools.environment import ToolEnvironment, encode_text

DESCRIPTION: Final = """\
Have a subagent do a piece of work on its own, and get the text of its last step.

- The subagents that can be called are listed under "available_subagents"; choose by description.
- A subagent knows nothing of this conversation. Say in the prompt what is to be done, what it \
must know for that, and what exactly it shall answer with.
- Make several calls in one turn for work that does not depend on each other: they run at the \
same time. Do not have two subagents change the same files.
- The answer holds a task_id. Call again with it to go on with the same subagent, which remembers \
what it did.
- With background the call returns at once, and you are told the result later, by itself.
- What a subagent says is a report, not a proof. Check what matters."""


class TaskInput(Record, frozen=True):
    description: Annotated[
        str, Meta(description="What it is about, in three to five words.", min_length=1)
    ]
    prompt: Annotated[str, Meta(description="The work, with all that it needs.", min_length=1)]
    subagent_type: Annotated[
        str, Meta(description="Name of the subagent, as it is listed.", min_length=1)
    ] = field(name="subagent_type")
    task_id: Annotated[
        str | UnsetType, Meta(description="Of an earlier call, to go on with its subagent.")
    ] = field(default=UNSET, name="task_id")
    background: Annotated[
        bool | UnsetType, Meta(description="Return at once; the result is told later.")
    ] = UNSET


class TaskOutput(Record, frozen=True):
    session_id: SessionID
    prompt_id: MessageID
    state: subagent.Outcome
    steps: int
    cost: float
    text: str


class TaskAgents(Value):
    """The callable agents and their runner."""

    agents: AgentLookup
    runner: SubagentRunner


def make_task(
    environment: ToolEnvironment, agents: AgentLookup, runner: SubagentRunner
) -> Tool[TaskInput, TaskOutput]:
    async def execute(input: TaskInput, context: ToolCallContext) -> TaskOutput:
        _check_prompt(input.prompt)
        _require_subagent(agents, input.subagent_type, context)
        resources = (input.subagent_type,)
        await environment.require(context, subagent.ACTION, resources, save=resources)
        ask = TaskAsk(
            session_id=context.session_id,
            assistant_message_id=context.assistant_message_id,
            call_id=context.call_id,
            calling_agent=context.agent,
            # Looked up again: the configuration may have changed while the user was asked.
            agent=_require_subagent(agents, input.subagent_type, context),
            caller=agents.get(context.agent),
            description=input.description,
            prompt=input.prompt,
            task_id=None if not input.task_id else SessionID(input.task_id),
            background=input.background is True,
        )
        try:
            result = await runner.delegate(ask)
        except TaskRefusedError as error:
            raise ToolFailure(str(error)) from error
        return _output(result)

    return Tool(
        name="task",
        asks_first=True,
        description=DESCRIPTION,
        input=TaskInput,
        output=TaskOutput,
        execute=execute,
        to_model_output=_content,
        structured=_structured,
        delivers=_delivers,
        action=subagent.ACTION,
    )


def _check_prompt(prompt: str) -> None:
    if not prompt.strip():
        raise ToolFailure("The prompt is empty. Say what the subagent shall do.")
    if len(encode_text(prompt)) > limits.TASK_PROMPT_BYTES_MAX:
        most = limits.TASK_PROMPT_BYTES_MAX
        raise ToolFailure(f"The prompt is larger than {most} bytes. Name files to read instead.")


def _require_subagent(agents: AgentLookup, name: str, context: ToolCallContext) -> AgentInfo:
    found = agents.get(name)
    if found is not None and subagent.is_subagent(found):
        return found
    from difflib import get_close_matches

    names = [agent.id for agent in agents.callable_by(context.agent)]
    display_name = name[: limits.SKILL_NAME_CHARS_MAX]
    close = get_close_matches(display_name, names, 1)
    known = ", ".join(names) or "none"
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ToolFailure(
        f"There is no subagent {display_name!r}.{hint} Those that can be called: {known}."
    )


def _output(result: TaskResult) -> TaskOutput:
    report = result.report
    return TaskOutput(
        session_id=result.child_id,
        prompt_id=result.prompt_id,
        state=report.state,
        steps=report.steps,
        cost=report.cost,
        text=report.text,
    )


def _content(output: TaskOutput) -> tuple[ToolContent, ...]:
    report = Report(state=output.state, text=output.text, steps=output.steps, cost=output.cost)
    return (TextContent(text=subagent.render_report(output.session_id, report)),)


def _structured(output: TaskOutput) -> JsonObject:
    return {
        "sessionID": output.session_id,
        "state": output.state,
        "steps": output.steps,
        "cost": output.cost,
    }


def _delivers(output: TaskOutput) -> MessageID | None:
    """The prompt whose result this call delivers."""
    return None if output.state == "running" else output.prompt_id
