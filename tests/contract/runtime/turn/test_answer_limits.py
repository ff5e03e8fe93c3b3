"""Turns whose answer is larger than allowed, or for which no memory is left: each is settled."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from pathlib import Path
from typing import Final

import pytest

from perdure.core import limits
from perdure.llm import event as llm
from perdure.llm.event import LLMEvent
from perdure.llm.message import ToolResult
from perdure.llm.request import LLMRequest
from perdure.runtime.turn.provider_turn import TURN_OUT_OF_MEMORY
from perdure.schema.ids import SessionID
from perdure.schema.models.model import ModelRef
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.prompt import PromptInput
from perdure.testing import text
from tests.contract.harness.faulty_runtime import Stage, settlements, staged

SESSION: Final = SessionID("ses_large")
ENDLESS: Final = ModelRef(id="endless", provider_id="test")
SCRIPTED: Final = ModelRef(id="scripted", provider_id="test")
PIECE: Final = 64 * 1024


class EndlessModel:
    """A model that says what a test wrote, and counts its requests."""

    def __init__(self) -> None:
        self.requests = 0
        self.pieces: Iterable[LLMEvent | MemoryError] = ()

    async def __call__(self, request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        del request
        self.requests += 1
        for piece in self.pieces:
            await asyncio.sleep(0)
            if isinstance(piece, MemoryError):
                raise piece
            yield (piece,)


@pytest.fixture
def model() -> EndlessModel:
    return EndlessModel()


@pytest.fixture
async def stage(tmp_path: Path, model: EndlessModel) -> AsyncIterator[Stage]:
    async with staged(tmp_path, calls={ENDLESS.id: model}) as stage:
        await stage.runtime.sessions.create(id=SESSION, model=ENDLESS)
        yield stage


async def prompted(stage: Stage) -> list[SessionEvent]:
    """The log after a prompt, and after another one that a good model answers."""
    await stage.runtime.sessions.prompt(SESSION, PromptInput(text="go"))
    log = await stage.at_rest(SESSION)
    begun, ended = settlements(log)
    assert (begun, ended) == (1, 1), [type(event).__name__ for event in log]
    await stage.runtime.sessions.switch_model(SESSION, SCRIPTED)
    for _ in range(3):
        stage.model.turn(text("still here"))
    await stage.runtime.sessions.prompt(SESSION, PromptInput(text="and now?"))
    assert isinstance((await stage.at_rest(SESSION))[-1], events.StepEnded)
    return log


def failure(log: list[SessionEvent]) -> str:
    (failed,) = [event for event in log if isinstance(event, events.StepFailed)]
    return failed.error.message


def endless(first: LLMEvent, delta: LLMEvent) -> Iterable[LLMEvent]:
    yield first
    for _ in range(10_000):
        yield delta


CASES: Final[dict[str, tuple[LLMEvent, LLMEvent, str]]] = {
    "text": (
        llm.TextStart("a"),
        llm.TextDelta("a", "x" * PIECE),
        f"{limits.ANSWER_TEXT_CHARS_MAX:,} characters of text",
    ),
    "reasoning": (
        llm.ReasoningStart("a"),
        llm.ReasoningDelta("a", "x" * PIECE),
        f"{limits.ANSWER_REASONING_CHARS_MAX:,} characters of reasoning",
    ),
    "input": (
        llm.ToolInputStart("a", "read"),
        llm.ToolInputDelta("a", "x" * PIECE),
        f"{limits.ANSWER_INPUT_CHARS_MAX:,} characters of tool input",
    ),
    "hosted": (
        llm.ToolCall("a", "web_search", {}, provider_executed=True),
        llm.HostedToolResult("a", ToolResult("json", "x" * limits.ANSWER_HOSTED_BYTES_MAX)),
        f"{limits.ANSWER_HOSTED_BYTES_MAX:,} bytes of hosted results",
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_an_answer_without_end_is_stopped_with_its_limit_as_the_reason(
    stage: Stage, model: EndlessModel, case: str
) -> None:
    first, delta, told = CASES[case]
    model.pieces = endless(first, delta)
    log = await prompted(stage)
    assert told in failure(log)
    assert model.requests == 1


async def test_what_was_said_before_the_limit_is_kept(stage: Stage, model: EndlessModel) -> None:
    model.pieces = endless(llm.TextStart("a"), llm.TextDelta("a", "x" * (PIECE - 1)))
    log = await prompted(stage)
    (said,) = [event for event in log if isinstance(event, events.TextEnded)]
    assert said.text == "x" * limits.ANSWER_TEXT_CHARS_MAX


def small_parts() -> Iterable[LLMEvent]:
    for number in range(10_000):
        part = str(number)
        if number % 100 == 99:
            yield llm.ToolCall(part, "read", {"path": f"gone-{number}.txt"})
        else:
            yield from (llm.TextStart(part), llm.TextDelta(part, "x"), llm.TextEnd(part))


async def test_an_answer_of_many_small_parts_is_stopped(stage: Stage, model: EndlessModel) -> None:
    model.pieces = small_parts()
    await stage.runtime.sessions.prompt(SESSION, PromptInput(text="go"))
    async with asyncio.timeout(30):
        await stage.runtime.sessions.wait(SESSION)
    log = [event for _, _, event in await stage.runtime.store.read(SESSION, limit=10_000)]
    assert f"{limits.ANSWER_PARTS_MAX:,} parts" in failure(log)
    begun = [e for e in log if isinstance(e, events.TextStarted | events.ToolInputStarted)]
    assert len(begun) == limits.ANSWER_PARTS_MAX
    assert settlements(log) == (1, 1)


ANSWER: Final[tuple[LLMEvent, ...]] = (
    llm.ReasoningStart("r"),
    llm.ReasoningDelta("r", "hm"),
    llm.ReasoningEnd("r"),
    llm.TextStart("t"),
    llm.TextDelta("t", "so"),
    llm.TextEnd("t"),
    llm.ToolInputStart("c", "read"),
    llm.ToolInputDelta("c", '{"path": "gone.txt"}'),
    llm.ToolInputEnd("c", '{"path": "gone.txt"}'),
    llm.ToolCall("c", "read", {"path": "gone.txt"}),
)


@pytest.mark.parametrize("heard", range(len(ANSWER) + 1))
async def test_wherever_memory_ends_in_an_answer_its_step_is_settled(
    stage: Stage, model: EndlessModel, heard: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, logger="perdure")
    model.pieces = (*ANSWER[:heard], MemoryError())
    log = await prompted(stage)
    assert failure(log) == TURN_OUT_OF_MEMORY
    opened = {event.call_id for event in log if isinstance(event, events.ToolInputStarted)}
    settled = [e.call_id for e in log if isinstance(e, events.ToolSucceeded | events.ToolFailed)]
    assert sorted(opened) == sorted(settled)
    assert model.requests == 1
    assert caplog.text == ""
