"""Running local tool calls: eager, bounded in number, each settled exactly once.

A call is recorded before it runs. Once a tool has succeeded, bounding its output and recording the
one settlement cannot be interrupted. Boundary 2 of those that may catch everything: whatever a
tool raises becomes a failed call that the model sees, and the turn goes on.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from itertools import chain

from perdure.core import limits
from perdure.core.tool_output import OutputLimits
from perdure.ports import PermissionDeclinedError, QuestionRejectedError
from perdure.runtime.concurrency import shielded
from perdure.schema.session_event import ToolCalled
from perdure.schema.value import Value
from perdure.tools import output_store
from perdure.tools.output_store import BoundedOutput, ToolOutputStore
from perdure.tools.registry import Materialization, ToolError
from perdure.tools.tool import ToolCallContext

logger = logging.getLogger(__name__)


class Toolbox(Value):
    """What the calls of one turn are run with."""

    offered: Materialization
    outputs: ToolOutputStore
    limits: OutputLimits
    beside: Callable[[str], tuple[str, ...]]
    """The instruction files that lie beside a file."""


class Succeeded(Value):
    """What a call brought: its output, and the instruction files beside what it read."""

    output: BoundedOutput
    discovered: tuple[str, ...] = ()


Record = Callable[[ToolCalled, Succeeded | ToolError], Coroutine[None, None, None]]


class Settlement:
    """The calls of one turn. `declined` is set when a person said no: the run must stop."""

    def __init__(self, toolbox: Toolbox, agent: str, record: Record) -> None:
        self._toolbox = toolbox
        self._agent = agent
        self._record = record
        self._slots = asyncio.Semaphore(limits.TOOLS_PARALLEL_MAX)
        self.declined = False

    async def settle(self, call: ToolCalled) -> None:
        async with self._slots:
            if self.declined:
                return
            context = ToolCallContext(
                session_id=call.session_id,
                agent=self._agent,
                assistant_message_id=call.assistant_message_id,
                call_id=call.call_id,
            )
            try:
                settled = await self._toolbox.offered.settle(call.tool, call.input, context)
            except (PermissionDeclinedError, QuestionRejectedError):
                self.declined = True
                return
            except Exception as error:
                logger.exception("tool %s failed", call.tool)
                settled = ToolError(f"Tool execution failed: {error}")
        if isinstance(settled, ToolError):
            await shielded(self._record(call, settled))
        else:
            await shielded(self._bound_and_record(call, settled))

    async def _bound_and_record(self, call: ToolCalled, success: output_store.ToolSuccess) -> None:
        toolbox = self._toolbox
        bounded = await output_store.bound(success, toolbox.outputs, toolbox.limits)
        found = (toolbox.beside(path) for path in success.reads)
        await self._record(call, Succeeded(bounded, tuple(chain.from_iterable(found))))
