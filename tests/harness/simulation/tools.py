"""Tools whose behaviour is drawn from the seed: slow, failing, buggy, huge, talkative or silent.

Each tells the witness when it starts and when it succeeds, so that what the runtime records can be
compared with what really happened.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Final

from perdure.ports import PermissionDeclinedError
from perdure.schema.codec import Record
from perdure.tools.api.registry import ToolRegistry
from perdure.tools.api.tool import Tool, ToolCallContext, ToolFailure
from tests.harness.checkers.witness import Witness
from tests.harness.simulation.provider import Conditions, SimulatedDefect

_HUGE_CHARS: Final = 300_000


class SimulatedInput(Record):
    note: str


class SimulatedOutput(Record):
    note: str


class SimulatedTools:
    """The tools of one process."""

    def __init__(
        self, process: str, chance: Random, witness: Witness, conditions: Conditions
    ) -> None:
        self._process = process
        self._chance = chance
        self._witness = witness
        self._conditions = conditions

    @contextmanager
    def registered(self, registry: ToolRegistry) -> Generator[None]:
        behaviours = (
            ("sim_work", self._work),
            ("sim_fail", self._fail),
            ("sim_defect", self._defect),
            ("sim_huge", self._huge),
            ("sim_decline", self._decline),
            ("sim_stall", self._stall),
            ("sim_report", self._report),
        )
        with ExitStack() as scope:
            for name, behave in behaviours:
                scope.enter_context(registry.register(self._tool(name, behave)))
            yield

    def _tool(
        self, name: str, behave: Callable[[ToolCallContext], Awaitable[str]]
    ) -> Tool[SimulatedInput, SimulatedOutput]:
        async def execute(input: SimulatedInput, context: ToolCallContext) -> SimulatedOutput:
            effect = self._witness.started(self._process, context)
            await asyncio.sleep(self._chance.choice((0.0, 0.002, 0.05, 0.6)))
            note = await behave(context)
            self._witness.finished(effect)
            return SimulatedOutput(f"{input.note} {note}")

        return Tool(
            name=name,
            description="Part of a simulation.",
            input=SimulatedInput,
            output=SimulatedOutput,
            execute=execute,
        )

    async def _work(self, context: ToolCallContext) -> str:
        return "done"

    async def _fail(self, context: ToolCallContext) -> str:
        raise ToolFailure("simulated failure of a tool")

    async def _defect(self, context: ToolCallContext) -> str:
        raise SimulatedDefect("simulated defect of a tool")

    async def _huge(self, context: ToolCallContext) -> str:
        return "x" * _HUGE_CHARS

    async def _decline(self, context: ToolCallContext) -> str:
        if self._conditions.calm or self._chance.random() < 0.5:
            return "allowed"
        self._witness.excuse(context.session_id)
        raise PermissionDeclinedError("simulated refusal")

    async def _report(self, context: ToolCallContext) -> str:
        """Reports progress often."""
        for number in range(self._chance.randint(1, 6)):
            context.progress(f"{number} done", structured={"done": number})
            await asyncio.sleep(self._chance.choice((0.0, 0.01, 0.3)))
        return "reported"

    async def _stall(self, context: ToolCallContext) -> str:
        if self._conditions.calm or self._chance.random() < 0.5:
            return "short"
        self._witness.stalls_begin(self._process, context.session_id)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._witness.stalls_end(self._process, context.session_id)
        return "never"
