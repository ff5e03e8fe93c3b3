"""An answer as a run holds it: what was said, which calls are ours, and what came of them."""

from perdure.llm.message import (
    LLMMessage,
    Segment,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)

SAID = TextPart("a")
OURS = ToolCallPart("call_0", "read", {})
HOSTED = ToolCallPart("ws_1", "web_search", {}, provider_executed=True)
FOUND = ToolResultPart("ws_1", "web_search", ToolResult("json", []), provider_executed=True)
CAME = ToolResultPart("call_0", "read", ToolResult("text", "x"))
ANSWER = Segment(
    (LLMMessage("assistant", (SAID, HOSTED, FOUND, OURS)), LLMMessage("tool", (CAME,)))
)


def test_results_are_not_what_the_model_said() -> None:
    assert [*ANSWER.answer_parts()] == [SAID, HOSTED, OURS]


def test_calls_that_the_provider_made_itself_are_not_ours() -> None:
    assert ANSWER.calls() == [OURS]


def test_results_are_found_by_the_ids_of_their_calls() -> None:
    assert ANSWER.results() == {"ws_1": FOUND, "call_0": CAME}


def test_a_prompt_has_none_of_them() -> None:
    prompt = Segment(
        (LLMMessage("user", (TextPart("hi"),)), LLMMessage("system", (TextPart("x"),)))
    )
    assert ([*prompt.answer_parts()], prompt.calls(), prompt.results()) == ([], [], {})
