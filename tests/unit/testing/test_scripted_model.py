"""The model that tests script: it answers in order, holds where told, and remembers."""

import asyncio
from contextlib import aclosing

import pytest

from perdure import testing
from perdure.llm.error import LLMError
from perdure.llm.event import Finish, LLMEvent, TextDelta, TextEnd, ToolCall, ToolInputInvalid
from perdure.llm.message import LLMMessage, TextPart, split_segments
from perdure.llm.request import LLMRequest
from perdure.schema.models.model import ModelRef
from perdure.testing import (
    ManualClock,
    ScriptedModel,
    SeededIds,
    StreamError,
    failure,
    invalid_call,
    pause,
    reasoning,
    text,
    texts_of,
    tool_call,
)

REQUEST = LLMRequest(
    model=ModelRef(id="m", provider_id="p"),
    system=(),
    runs=split_segments((LLMMessage("user", (TextPart("hi"),)),)),
)


async def collect(model: ScriptedModel) -> list[LLMEvent]:
    return [event async for batch in model(REQUEST) for event in batch]


async def test_turns_are_answered_in_order() -> None:
    model = ScriptedModel()
    model.turn(reasoning("hm"), tool_call("read", {"path": "a"}), tool_call("read", {"path": "b"}))
    model.turn(text("all done"))
    first, second = await collect(model), await collect(model)
    assert [event.id for event in first if isinstance(event, ToolCall)] == ["call_1", "call_2"]
    assert first[-1] == Finish("tool-calls")
    assert [event.text for event in second if isinstance(event, TextDelta)] == ["all ", "done"]
    assert second[-1] == Finish("stop")
    assert texts_of(model.requests[0]) == ["hi"]


async def test_a_turn_is_held_where_the_test_says() -> None:
    middle = pause()
    model = ScriptedModel().turn(text("one two", hold=middle))
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        answer = group.create_task(collect(model))
        await model.until_asked(1)
        await middle.reached.wait()
        assert not answer.done()
        middle.release()
    assert TextEnd("text-0") in answer.result()


async def test_failures_are_raised_and_reported() -> None:
    model = ScriptedModel()
    model.turn(text("half"), failure(LLMError("transport", "gone")))
    model.turn(StreamError("too long", "overflow"), text("never"))
    model.turn(invalid_call("read", "{"))
    with pytest.raises(LLMError, match="gone"):
        await collect(model)
    assert len(await collect(model)) == 1
    assert isinstance((await collect(model))[-2], ToolInputInvalid)
    assert model.abandoned == 0


async def test_a_turn_closed_early_is_counted() -> None:
    model = ScriptedModel().turn(text("a"), pause())
    async with aclosing(model(REQUEST)) as batches:
        await anext(batches)
    assert model.abandoned == 1


async def test_a_turn_nobody_scripted_fails() -> None:
    with pytest.raises(AssertionError, match="not scripted"):
        await collect(ScriptedModel())


async def test_the_clock_wakes_sleepers_in_their_order() -> None:
    clock = ManualClock(1_000)
    woken: list[int] = []

    async def sleeper(seconds: int) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        for seconds in (3, 1, 2):
            group.create_task(sleeper(seconds))
        await clock.until_sleeps(3)
        clock.advance(2.5)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert woken == [1, 2]
        clock.advance(1)
    assert woken == [1, 2, 3]
    assert clock.now_millis() == 4_500


def test_equal_seeds_give_equal_ids() -> None:
    one, other, different = SeededIds(1), SeededIds(1), SeededIds(2)
    assert [one.message() for _ in range(9)] == [other.message() for _ in range(9)]
    assert one.event() != different.event()


def test_the_package_exports_exactly_its_public_names() -> None:
    assert list(testing.__all__) == sorted(testing.__all__)
    assert all(hasattr(testing, name) for name in testing.__all__)
