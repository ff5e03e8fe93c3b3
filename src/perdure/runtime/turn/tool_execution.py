"""Running local tool calls: eager, bounded in number, each settled exactly once.

A call is recorded before it runs. Once a tool has succeeded, bounding its output and recording the
one settlement cannot be interrupted. A call that brings nothing new any more is not run before a
person was asked (core.session.repeated_calls). Boundary 2 of those that may catch everything:
whatever a tool raises becomes a failed call that the model sees, and the turn goes on.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from itertools import chain

from msgspec import field
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.request import tool_output
from perdure.core.request.tool_output import OutputLimits
from perdure.core.session import repeated_calls
from perdure.core.session.repeated_calls import RepeatedCallGuard
from perdure.ports import (
    PermissionAsk,
    PermissionBlockedError,
    PermissionCorrectedError,
    PermissionDeclinedError,
    PermissionGate,
    PermissionUnattendedError,
    QuestionRejectedError,
    QuestionUnattendedError,
)
from perdure.ports.file_journal import NO_JOURNAL, Journal
from perdure.runtime.ops.metrics import Metrics
from perdure.runtime.tasks import shielded
from perdure.runtime.turn.tool_progress import ToolProgress
from perdure.schema import redaction
from perdure.schema.approval.permission import PermissionSource
from perdure.schema.ids import MessageID
from perdure.schema.session.event import SessionEvent, TodosUpdated, ToolCalled
from perdure.schema.session.todo import Todos
from perdure.schema.session.tool import TextContent
from perdure.schema.value import Value
from perdure.tools.api import output_store
from perdure.tools.api.output_store import BoundedOutput, ToolOutputStore
from perdure.tools.api.registry import Settled, ToolError, ToolSuccess, TurnTools
from perdure.tools.api.tool import ToolCallContext

logger = logging.getLogger(__name__)


class ToolRun(Value, kw_only=True):
    """What the tool calls of one turn are run with."""

    tools: TurnTools
    agent: str
    outputs: ToolOutputStore
    limits: OutputLimits
    instructions_beside: Callable[[str], tuple[str, ...]]
    """The instruction files that lie beside a file."""
    permissions: PermissionGate
    repeated_calls: RepeatedCallGuard
    """Shared by the turns of a drain, until new input is promoted."""
    callers: tuple[str, ...] = ()
    """The agents that called this Session as a subagent."""
    journal: Journal = NO_JOURNAL
    """Records what the calls do to files."""
    metrics: Metrics = field(default_factory=Metrics)
    reads_documents: bool = False
    """Whether the model can be shown a PDF."""


class Succeeded(Value):
    """What a call brought: its output, the instruction files beside what it read, and the list."""

    output: BoundedOutput
    discovered: tuple[str, ...] = ()
    todos: Todos | None = None
    delivers: MessageID | None = None
    """The prompt of a child Session whose result this is."""


Record = Callable[[ToolCalled, Succeeded | ToolError], Coroutine[None, None, None]]


class ToolExecutor:
    """The calls of one turn. `declined` is set when a person said no: the run must stop."""

    def __init__(
        self,
        tool_run: ToolRun,
        record: Record,
        progress: Callable[[ToolCalled], ToolProgress],
    ) -> None:
        self._with = tool_run
        self._record = record
        self._progress = progress
        self._slots = asyncio.Semaphore(limits.TOOLS_PARALLEL_MAX)
        self.declined = False
        self.failure: str | None = None
        """Why the run fails, if a person was needed and none is there."""

    async def settle(self, call: ToolCalled) -> None:
        async with self._slots:
            if self.declined:
                return
            try:
                settled = await self._not_again(call) or await self._run(call)
            except (PermissionDeclinedError, QuestionRejectedError) as error:
                self.declined = True
                if isinstance(error, (PermissionUnattendedError, QuestionUnattendedError)):
                    self.failure = str(error)
                return
        if isinstance(settled, ToolError):
            await shielded(self._record(call, settled))
        else:
            await shielded(self._bound_and_record(call, settled))

    async def _not_again(self, call: ToolCalled) -> ToolError | None:
        """Why a call that brings nothing new is not made once more; None when it is."""
        guard = self._with.repeated_calls
        verdict = guard.verdict(call.tool, call.input)
        if verdict == "run":
            return None
        if verdict == "stop":
            raise PermissionDeclinedError("The call was refused too often.")
        try:
            await self._with.permissions.require(self._ask_to_repeat(call))
        except (PermissionBlockedError, PermissionCorrectedError) as error:
            guard.record_refusal(call.tool, call.input)
            return ToolError(repeated_calls.refusal_text(str(error)))
        return None

    async def _run(self, call: ToolCalled) -> Settled:
        progress = self._progress(call)
        context = self._context(call, progress)
        try:
            with self._with.metrics.timed("tool", session=call.session_id, tool=call.tool):
                settled = await self._with.tools.settle(call.tool, call.input, context)
        except (PermissionDeclinedError, QuestionRejectedError):
            raise
        except asyncio.CancelledError:
            await shielded(progress.last())
            raise
        except Exception as error:
            logger.exception("tool %s failed", call.tool)
            settled = ToolError(f"Tool execution failed: {redaction.redact(str(error))}")
        finally:
            progress.close()
        nudge = self._with.repeated_calls.record_outcome(call.tool, call.input, settled)
        return settled if nudge is None else _nudged(settled, nudge)

    async def _bound_and_record(self, call: ToolCalled, success: ToolSuccess) -> None:
        run = self._with
        bounded = await output_store.bound(success, run.outputs, run.limits)
        found = (run.instructions_beside(path) for path in success.reads)
        discovered = tuple(chain.from_iterable(found))
        await self._record(call, Succeeded(bounded, discovered, success.todos, success.delivers))

    def _context(self, call: ToolCalled, progress: ToolProgress) -> ToolCallContext:
        return ToolCallContext(
            session_id=call.session_id,
            agent=self._with.agent,
            above=self._with.callers,
            assistant_message_id=call.assistant_message_id,
            call_id=call.call_id,
            report=progress.report,
            journal=self._with.journal,
            require=self._with.permissions.require,
            reads_documents=self._with.reads_documents,
        )

    def _ask_to_repeat(self, call: ToolCalled) -> PermissionAsk:
        return PermissionAsk(
            session_id=call.session_id,
            agent=self._with.agent,
            above=self._with.callers,
            action=repeated_calls.ACTION,
            resources=(call.tool,),
            save=(call.tool,),
            metadata={"tool": call.tool, "input": call.input},
            source=PermissionSource(
                type="tool", message_id=call.assistant_message_id, call_id=call.call_id
            ),
        )


def todos_updated(call: ToolCalled, outcome: Succeeded, now: int) -> list[SessionEvent]:
    """The todo list that a call wrote, if it did."""
    if outcome.todos is None:
        return []
    stamp = (now, call.session_id, call.assistant_message_id)
    return [TodosUpdated(*stamp, call_id=call.call_id, todos=outcome.todos)]


def _nudged(settled: Settled, nudge: str) -> Settled:
    """The same outcome, and after it a word to the model."""
    if isinstance(settled, ToolError):
        return ToolError(f"{settled.message}\n\n{nudge}")
    shown = settled.content
    if not shown:
        # Without parts the model is shown the structured result: it must not be hidden by ours.
        text = tool_output.measured_text(settled.structured, ())
        shown = (TextContent(text=text),)
    return replace(settled, content=(*shown, TextContent(text=f"\n{nudge}")))
