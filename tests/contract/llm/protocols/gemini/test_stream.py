"""Recorded streams in, events out: what only a Gemini answer says."""

import pytest

from perdure.llm.error import LLMError
from perdure.llm.event import (
    Finish,
    HostedToolResult,
    TextDelta,
    TextStart,
    ToolCall,
    ToolInputEnd,
    ToolInputInvalid,
    ToolInputStart,
    Usage,
)
from perdure.llm.message import ToolResult
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from tests.contract.llm.protocols.gemini.recordings import (
    CODE,
    HOSTED,
    IMAGE,
    PICTURE,
    RAN,
    RESULTS,
    SEARCHED,
    TOOLS,
    answered,
    call,
    chunk,
    said,
    step_all,
)
from tests.contract.llm.wire import spoken, thought
from tests.requirements import requirement


@requirement("S161")
def test_what_the_provider_runs_itself_comes_with_its_result() -> None:
    text = codec.encode(CODE).decode()
    assert answered(HOSTED) == [
        ToolInputStart("tool_0", "code_execution"),
        ToolInputEnd("tool_0", text),
        ToolCall("tool_0", "code_execution", CODE, True, {"google": {"part": "executableCode"}}),
        HostedToolResult(
            "tool_0", ToolResult("json", RAN), {"google": {"part": "codeExecutionResult"}}
        ),
        *spoken("text-0", "It is 4."),
        Finish("stop", Usage(input=25, output=15)),
    ]


def test_an_image_of_the_answer_is_kept_and_drafts_of_it_are_not() -> None:
    native = {"google": {"thoughtSignature": "cGljdHVyZQ==", "part": "inlineData"}}
    assert answered(IMAGE)[:-1] == [
        *spoken("text-0", "Here: "),
        ToolInputStart("tool_0", "image_generation"),
        ToolInputEnd("tool_0", "{}"),
        ToolCall("tool_0", "image_generation", {}, True, native),
        HostedToolResult("tool_0", ToolResult("json", PICTURE), native),
        *spoken("text-1", "🌍"),
    ]


def test_any_tool_of_the_provider_is_kept_with_its_response() -> None:
    called = {"google": {"thoughtSignature": "c2VhcmNo", "part": "toolCall"}}
    came = {"google": {"thoughtSignature": "Zm91bmQ=", "part": "toolResponse"}}
    assert answered(TOOLS)[1:-1] == [
        ToolInputEnd("tool_0", codec.encode(SEARCHED).decode()),
        ToolCall("tool_0", "google_search_web", SEARCHED, True, called),
        HostedToolResult("tool_0", ToolResult("json", RESULTS), came),
        *spoken("text-0", "Found."),
    ]


@pytest.mark.parametrize("part", [{"toolCall": 5}, {"toolResponse": [1]}, {"toolCall": "x"}])
def test_a_hosted_part_that_is_no_object_is_the_providers_fault(part: JsonObject) -> None:
    with pytest.raises(LLMError, match="not understood"):
        step_all([chunk(part)])


def test_a_hosted_failure_keeps_the_providers_own_words() -> None:
    failed = {"outcome": "OUTCOME_FAILED", "output": "NameError"}
    events = step_all([chunk({"executableCode": CODE}, {"codeExecutionResult": failed})])
    assert events[-1] == HostedToolResult(
        "tool_0",
        ToolResult("error", failed),
        {"google": {"part": "codeExecutionResult", "content": failed}},
    )


@requirement("S197")
def test_the_signature_of_a_text_is_kept_right_after_it() -> None:
    events = answered([chunk(said("a", thoughtSignature="s")), chunk(said("b"), why="STOP")])
    assert events[:6] == [
        *spoken("text-0", "a"),
        *thought("reasoning-0", kept={"google": {"thoughtSignature": "s"}}),
        TextStart("text-1"),
    ]


def test_a_model_that_says_in_every_chunk_why_it_stops_is_heard_to_the_end() -> None:
    events = answered([chunk(said("a"), why="STOP"), chunk(said("b"), why="STOP")])
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["a", "b"]
    assert sum(isinstance(event, TextStart) for event in events) == 1


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (None, {}),
        ({}, {}),
        ({"a": [1, 2.5, None, True, {"b": "ä 🌍"}]}, {"a": [1, 2.5, None, True, {"b": "ä 🌍"}]}),
        ([1, 2], {"value": [1, 2]}),
        ("text", {"value": "text"}),
    ],
)
def test_input_is_always_an_object(args: JsonValue, expected: JsonObject) -> None:
    events = answered([chunk(call("read", args), why="STOP")])
    assert events[-2] == ToolCall("tool_0", "read", expected)


def test_calls_that_nest_too_deep_are_kept_and_never_called() -> None:
    deep = b"[" * 900 + b"]" * 900
    frame = chunk(call("read", "X"), why="STOP").replace(b'"X"', deep)
    *_, made, finished = answered([frame])
    assert isinstance(made, ToolCall | ToolInputInvalid)
    assert finished == Finish("tool-calls", Usage(input=25, output=15))


def test_a_prompt_that_was_refused_is_an_answer_without_words() -> None:
    blocked: JsonObject = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {}}
    assert answered([codec.encode(blocked)]) == [Finish("content-filter")]
