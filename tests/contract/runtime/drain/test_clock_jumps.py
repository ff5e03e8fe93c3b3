"""Clocks that jump, stand still and disagree change no order, lose no prompt and repeat none.

Two processes share a database and are five minutes apart. Between two prompts, and in the middle of
an answer, the clock is set. Waiting goes by the loop, as it does on a real machine.
`PERDURE_JUMPS` asks for more.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

import pytest

from perdure.core.models.catalog import host_provider
from perdure.host import environment
from perdure.host.ids import SystemIds
from perdure.host.process_locks import ProcessLocks
from perdure.llm.error import LLMError
from perdure.llm.event import Finish, LLMEvent, TextDelta, TextEnd, TextStart
from perdure.llm.message import TextPart
from perdure.llm.request import LLMRequest
from perdure.runtime.app.runtime import Platform, Runtime, RuntimeSettings, compose
from perdure.schema.ids import Seq, SessionID
from perdure.schema.session import event as events
from perdure.schema.session.prompt import PromptInput
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from tests.figures import Figure
from tests.harness.simulation.virtual_clock import VirtualClock
from tests.harness.simulation.virtual_loop import VirtualLoop
from tests.state_machine import reading
from tests.support import database_check

JUMPS: Final = int(os.environ.get("PERDURE_JUMPS", "40"))
SEEDS: Final = 3
HOUR: Final = 3_600.0
YEAR: Final = 365 * 24 * HOUR
DISTANCES: Final = (-HOUR, HOUR, -10 * YEAR, YEAR, -1.0, 1.0, -300.0)
"""Set back and forth, by years, by summer time, by a leap second."""
APART_SECONDS: Final = 300
PATIENCE_SECONDS: Final = 60.0
"""Of the loop: longer than a refused request is tried again, shorter than any jump but two."""
SESSIONS: Final = 4


class WaywardClock(VirtualClock):
    """It may also stand still."""

    stands_at: int | None = None

    def now_millis(self) -> int:
        return super().now_millis() if self.stands_at is None else self.stands_at


@dataclass
class Clocks:
    chance: Random
    all: list[WaywardClock] = field(default_factory=list[WaywardClock])
    jumps: int = 0

    def disturb(self) -> None:
        self.jumps += 1
        clock = self.chance.choice(self.all)
        if self.chance.random() < 0.2:
            clock.stands_at = None if clock.stands_at is not None else clock.now_millis()
        else:
            clock.jump(self.chance.choice(DISTANCES))


@dataclass
class Model:
    """Implements llm.model_call.ModelCall: busy now and then, and never answers in peace."""

    clocks: Clocks
    answered: Counter[str] = field(default_factory=Counter[str])

    async def __call__(self, request: LLMRequest) -> AsyncIterator[tuple[LLMEvent, ...]]:
        if self.clocks.chance.random() < 0.2:
            self.clocks.disturb()
            raise LLMError("rate-limit", "busy", retry_after_ms=2_000)
        yield (TextStart("t"), TextDelta("t", "half "))
        self.clocks.disturb()
        await asyncio.sleep(0.5)
        self.answered[_prompt(request)] += 1
        yield (TextDelta("t", "whole"), TextEnd("t"), Finish("stop", None))


def _prompt(request: LLMRequest) -> str:
    """The last one; a new date may be told after it."""
    parts = [
        part
        for segment in request.segments
        for message in segment.messages
        for part in message.content
    ]
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    return [text for text in texts if text.startswith("prompt ")][-1]


@asynccontextmanager
async def process(
    root: Path, name: str, clock: WaywardClock, model: Model
) -> AsyncGenerator[Runtime]:
    path = str(root / "perdure.db")
    settings = RuntimeSettings(
        environment=environment.from_variables(
            {"HOME": str(root), "TMPDIR": str(root), "PERDURE_TRUSTED": "*"}
        ),
        data_dir=str(root),
        default_directory=str(root),
        providers=(host_provider("wayward", {"one": model}),),
    )
    async with AsyncExitStack() as stack:
        foundations = Platform(
            database=await stack.enter_async_context(SqliteDatabase(path, inline=True)),
            processes=stack.enter_context(ProcessLocks(str(root / "processes"), name)),
            clock=clock,
            ids=SystemIds(clock),
        )
        yield await stack.enter_async_context(compose(settings, foundations, path))


async def converse(runtimes: list[Runtime], clocks: Clocks) -> dict[SessionID, list[str]]:
    """Each prompt is answered in time by any process; what was said where, in order."""
    chance = clocks.chance
    said: dict[SessionID, list[str]] = {}
    while clocks.jumps < JUMPS:
        clocks.disturb()
        if len(said) < SESSIONS:
            said[(await chance.choice(runtimes).sessions.create()).id] = []
        session_id = chance.choice([*said])
        text = f"prompt {clocks.jumps}"
        said[session_id].append(text)
        sessions = chance.choice(runtimes).sessions
        async with asyncio.timeout(PATIENCE_SECONDS):
            await sessions.prompt(session_id, PromptInput(text=text))
            await sessions.wait(session_id)
    return said


async def check_reading(runtime: Runtime, said: dict[SessionID, list[str]]) -> None:
    """Every prompt in its place and answered, every cursor good, every id its own."""
    ids: list[str] = []
    for session_id, texts in said.items():
        log = await runtime.store.read(session_id, after=Seq(-1), limit=100_000)
        assert [seq for seq, _, _ in log] == list(range(len(log)))
        facts = [event for _, _, event in log]
        promoted = [e for e in facts if isinstance(e, events.PromptPromoted)]
        assert [event.prompt.text for event in promoted] == texts
        assert sum(isinstance(e, events.StepEnded) for e in facts) == len(texts)
        paged = await reading.history(runtime, session_id, after=0, limit=3)
        assert [seq for seq, _ in paged] == list(range(1, len(log)))
        last = Seq(len(log) - 1)
        assert await reading.streamed(runtime, session_id, after=0, until=last) == paged
        messages = await reading.message_pages(runtime, session_id, limit=3, order="asc")
        # Besides prompts and answers there is what the model was told of a new date.
        prompts = [event.message_id for event in promoted]
        assert [message_id for message_id in messages if message_id in prompts] == prompts
        ids += messages
    assert len(set(ids)) == len(ids)
    assert {*await reading.session_pages(runtime, limit=2, order="desc")} == said.keys()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_clocks_that_jump_and_disagree_change_no_order_and_lose_nothing(
    tmp_path: Path, seed: int, figure: Figure
) -> None:
    migrate.migrate(str(tmp_path / "perdure.db"))
    loop = VirtualLoop(Random(f"loop {seed}"))
    clocks = Clocks(Random(f"clocks {seed}"), [WaywardClock(loop), WaywardClock(loop)])
    clocks.all[1].jump(APART_SECONDS)
    model = Model(clocks)

    async def run() -> dict[SessionID, list[str]]:
        async with AsyncExitStack() as stack:
            runtimes = [
                await stack.enter_async_context(process(tmp_path, f"prc_{number}", clock, model))
                for number, clock in enumerate(clocks.all)
            ]
            said = await converse(runtimes, clocks)
            for runtime in runtimes:
                await check_reading(runtime, said)
            return said

    try:
        said = loop.run_until_complete(run())
    finally:
        loop.end_killed_tasks()
        loop.close()
    assert loop.complaints == []
    assert model.answered == Counter(text for texts in said.values() for text in texts)
    asyncio.run(database_check.check(tmp_path / "perdure.db"))
    figure("clock jumps", clocks.jumps)
