"""The model of the sweep answers a request that was cut, again and again, as it did at first."""

import pytest

from perdure.core.session import recovery
from perdure.llm.event import LLMEvent
from perdure.llm.message import (
    LLMMessage,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
    split_segments,
)
from perdure.llm.request import LLMRequest, ToolDefinition
from tests.crash import script

TOOL = ToolDefinition(name="write", description="", input_schema={})
CUT_TEXT = (LLMMessage("assistant", (TextPart("you sa"),)),)
CUT_CALL = (
    LLMMessage("assistant", (ReasoningPart("may I"), ToolCallPart(script.WRITE_CALL, "write", {}))),
    LLMMessage(
        "tool",
        (ToolResultPart(script.WRITE_CALL, "write", ToolResult("error", recovery.INTERRUPTED)),),
    ),
)


def said(text: str) -> LLMMessage:
    return LLMMessage("user", (TextPart(text),))


async def answer(*messages: LLMMessage) -> list[LLMEvent]:
    request = LLMRequest(
        model=script.MODEL_FIRST, system=(), segments=split_segments(messages), tools=(TOOL,)
    )
    answered = script.Model(lambda asked: None)(request)
    return [event async for events in answered for event in events]


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("cut", [(), CUT_TEXT, CUT_CALL], ids=["nothing", "text", "call"])
async def test_an_answer_that_was_cut_is_given_again(
    cut: tuple[LLMMessage, ...], times: int
) -> None:
    asked = (said(script.HELLO.text), LLMMessage("assistant", (TextPart("you said hello"),)))
    asked = (*asked, said(script.WRITE.text))
    again = (*cut, said(recovery.GO_ON)) * times
    assert await answer(*asked, *again) == await answer(*asked)
