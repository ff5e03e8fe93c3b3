"""Answers with more facts than one transaction takes: committed in pieces, settled in any case."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.core import limits
from perdure.host import log_context
from perdure.llm import event as llm
from perdure.llm.event import LLMEvent
from perdure.llm.request import LLMRequest
from perdure.schema.codec import JSON_DEPTH_MAX, JsonObject
from perdure.schema.ids import Seq, SessionID
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.message import AssistantMessage, SessionMessage
from perdure.schema.session.prompt import PromptInput
from perdure.store.tables import message_table
from tests.contract.harness.faulty_runtime import MODEL, Stage, settlements, staged
from tests.harness.faults.database import DatabaseFault, DatabasePlan, Moment

SESSION: Final = SessionID("ses_pieces")
Batches = tuple[tuple[LLMEvent, ...], ...]
STOP: Final = (llm.Finish("stop"),)


class Answers:
    """A model that gives these batches, and after them a short text to every other request."""

    def __init__(self, *batches: tuple[LLMEvent, ...]) -> None:
        self._batches: Batches = batches
        self.asked = 0

    async def __call__(self, request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        batches, self._batches = self._batches, ()
        self.asked += 1
        for batch in batches or ((*text(0), *STOP),):
            yield batch


def text(number: int, said: str = "so") -> tuple[LLMEvent, ...]:
    part = f"text-{number}"
    return llm.TextStart(part), llm.TextDelta(part, said), llm.TextEnd(part)


def reasoning(number: int, said: str) -> tuple[LLMEvent, ...]:
    part = f"reasoning-{number}"
    return llm.ReasoningStart(part), llm.ReasoningDelta(part, said), llm.ReasoningEnd(part)


def call(number: int, *, hosted: bool = False, input: JsonObject | None = None) -> llm.ToolCall:
    given = {"number": number} if input is None else input
    return llm.ToolCall(f"call_{number}", "nothing", given, provider_executed=hosted)


def together(count: int, *, hosted: bool = False) -> tuple[LLMEvent, ...]:
    return tuple(call(number, hosted=hosted) for number in range(count))


LARGE: Final[dict[str, Batches]] = {
    "330 calls at once": ((*together(330), llm.Finish("tool-calls")),),
    "400 calls at once": ((*together(400), llm.Finish("tool-calls")),),
    "1,100 calls, one by one": (
        *((one,) for one in together(1_100)),
        (llm.Finish("tool-calls"),),
    ),
    "1,100 hosted calls without a result": ((*together(1_100, hosted=True), *STOP),),
    "1,100 calls and no end": (together(1_100),),
    "2,500 texts at once": (
        (*(event for number in range(2_500) for event in text(number)), *STOP),
    ),
    "1,200 texts that do not end": (
        (*(llm.TextStart(f"text-{number}") for number in range(1_200)), *STOP),
    ),
    "reasoning of 8 MB": ((*reasoning(0, "x" * 8_000_000), *text(0), *STOP),),
}


async def ask(stage: Stage, words: str = "go") -> list[SessionEvent]:
    await stage.runtime.sessions.prompt(SESSION, PromptInput(text=words))
    return await stage.at_rest(SESSION)


async def begin(stage: Stage) -> None:
    await stage.runtime.sessions.create(id=SESSION, model=MODEL)


async def messages(stage: Stage) -> list[SessionMessage]:
    rows = await stage.runtime.store.database.read(
        lambda tx: message_table.list_after(tx, SESSION, Seq(-1))
    )
    return [row.message() for row in rows]


@pytest.mark.parametrize("batches", LARGE.values(), ids=LARGE.keys())
async def test_an_answer_of_any_size_is_one_settled_step(tmp_path: Path, batches: Batches) -> None:
    async with staged(tmp_path, answers=Answers(*batches)) as stage:
        await begin(stage)
        log = await ask(stage)
        begun, ended = settlements(log)
        assert begun == ended >= 1
        (answer, *_) = [m for m in await messages(stage) if isinstance(m, AssistantMessage)]
        started = (events.TextStarted, events.ReasoningStarted, events.ToolInputStarted)
        first = [
            event
            for event in log
            if isinstance(event, started) and event.assistant_message_id == answer.id
        ]
        assert len(answer.content) == len(first)


async def test_the_next_prompt_is_answered_after_a_very_large_answer(tmp_path: Path) -> None:
    model = Answers((*together(700), llm.Finish("tool-calls")))
    async with staged(tmp_path, answers=model) as stage:
        await begin(stage)
        await ask(stage)
        log = await ask(stage, "and now?")
        assert isinstance(log[-1], events.StepEnded)
        assert model.asked == 3


async def test_parts_beyond_the_limit_of_live_ones_are_told_whole(tmp_path: Path) -> None:
    count = limits.LIVE_PARTS_MAX + 50
    batch = (*(event for number in range(count) for event in text(number)), *STOP)
    async with staged(tmp_path, answers=Answers(batch)) as stage:
        await begin(stage)
        with stage.runtime.hub.subscribe() as reader:
            log = await ask(stage)
            heard = b""
            while b"step.ended" not in heard:
                heard += await reader.next() or b""
        assert heard.count(b'"session.next.text.delta"') == limits.LIVE_PARTS_MAX
        assert heard.count(b'"session.next.text.ended"') == count
        assert sum(isinstance(event, events.TextEnded) for event in log) == count


@pytest.mark.parametrize("depth", [JSON_DEPTH_MAX - 1, 400, 800, 960])
async def test_an_input_of_any_depth_settles_its_call(
    tmp_path: Path, depth: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Deeper than a wire protocol lets through: the store cannot encode the deepest."""
    caplog.set_level(logging.CRITICAL, logger="perdure")
    deep: JsonObject = {}
    for _ in range(depth):
        deep = {"a": deep}
    answers = Answers((call(0, input=deep), call(1), llm.Finish("tool-calls")))
    async with staged(tmp_path, answers=answers) as stage:
        await begin(stage)
        log = await ask(stage)
        assert settlements(log)[0] == settlements(log)[1]
        again = await ask(stage, "and now?")
        assert isinstance(again[-1], events.StepEnded | events.StepFailed)


MOMENTS: Final[tuple[Moment, ...]] = ("before", "at-commit", "after-commit")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    failing=st.integers(1, 24),
    moment=st.sampled_from(MOMENTS),
    piece=st.integers(1, 7),
    interrupted=st.booleans(),
)
async def test_wherever_a_piece_is_lost_the_log_stays_in_order(
    tmp_path_factory: pytest.TempPathFactory,
    failing: int,
    moment: Moment,
    piece: int,
    interrupted: bool,
) -> None:
    """An interrupt may arrive while the write that will fail is under way."""
    batches = (text(0)[:2], (*text(0)[2:], *together(4)), together(9)[4:], (llm.Finish("stop"),))
    root = tmp_path_factory.mktemp("pieces")
    async with staged(root, answers=Answers(*batches), piece_events_max=piece) as stage:
        await begin(stage)
        await stage.runtime.sessions.prompt(SESSION, PromptInput(text="go"))
        fault = DatabaseFault(fails=moment, delay_seconds=30 if interrupted else 0)
        seen = 0

        def writes(_: int) -> DatabaseFault | None:
            nonlocal seen
            # Of the run: what an interrupt writes itself fails in tests of its own.
            seen += log_context.SESSION.get() == SESSION
            return fault if seen == failing and log_context.SESSION.get() == SESSION else None

        stage.database.plan = DatabasePlan(writes=writes)
        async with asyncio.TaskGroup() as group:
            idle = group.create_task(stage.runtime.sessions.wait(SESSION))
            if interrupted:
                held = group.create_task(stage.clock.until_sleeps(1))
                await asyncio.wait({idle, held}, return_when=asyncio.FIRST_COMPLETED)
                stopping = group.create_task(stage.runtime.sessions.interrupt(SESSION))
                while not stopping.done():
                    # An interrupt writes too, and the write that fails may be one of its own run's.
                    stage.clock.advance(30)
                    await asyncio.wait({stopping}, timeout=0.01)
                held.cancel()
        stage.database.plan = DatabasePlan()
        log = await ask(stage, "and now?")
        begun, ended = settlements(log)
        assert begun == ended
