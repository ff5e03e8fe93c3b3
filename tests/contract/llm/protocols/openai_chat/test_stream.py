"""Recorded streams in, events out: what only an OpenAI Chat answer says."""

import pytest

from perdure.llm.error import LLMError
from perdure.llm.event import (
    Finish,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
)
from perdure.schema.codec import JsonObject, JsonValue
from tests.contract.llm.protocols.openai_chat.recordings import DETAILED, call, chunk, step_all

DONE = b"[DONE]"
STOP = chunk({}, "stop")
CALLS = chunk({}, "tool_calls")


def test_text_after_reasoning_after_text_keeps_three_parts() -> None:
    events = step_all(
        [
            chunk({"content": "a"}),
            chunk({"reasoning": "b"}),
            chunk({"content": "c", "reasoning_content": "d"}),
            STOP,
            DONE,
        ]
    )
    assert [event for event in events if isinstance(event, TextStart | ReasoningStart)] == [
        TextStart("text-0"),
        ReasoningStart("reasoning-0"),
        TextStart("text-1"),
    ]
    assert events[-2:] == [TextEnd("text-1"), Finish("stop")]


def test_reasoning_details_are_joined_from_their_pieces_and_kept_whole() -> None:
    ends = [event for event in step_all(DETAILED) if isinstance(event, ReasoningEnd)]
    signed = {
        "type": "reasoning.text",
        "text": "Let me.",
        "index": 0,
        "signature": "c2ln",
        "format": "anthropic-claude-v1",
    }
    sealed = {"type": "reasoning.encrypted", "data": "RW1", "id": "call_a", "index": 1}
    assert [end.metadata for end in ends] == [
        {"openai_compatible": {"field": "reasoning", "reasoning_details": [signed]}},
        {"openai_compatible": {"reasoning_details": [sealed]}},
    ]


@pytest.mark.parametrize("details", ["x", [5, None], {"a": 1}, [[]], 0])
def test_reasoning_details_of_another_shape_fail_no_answer(details: JsonValue) -> None:
    events = step_all([chunk({"content": "a", "reasoning_details": details}), STOP, DONE])
    assert events[-2:] == [TextEnd("text-0"), Finish("stop")]


def test_details_without_an_index_are_one_text_and_several_sealed_parts() -> None:
    pieces = [
        {"type": "reasoning.text", "text": "a"},
        {"type": "reasoning.text", "text": "b"},
        {"type": "reasoning.encrypted", "data": "x"},
        {"type": "reasoning.encrypted", "data": "y"},
    ]
    events = step_all([*(chunk({"reasoning_details": [piece]}) for piece in pieces), STOP, DONE])
    (end,) = (event for event in events if isinstance(event, ReasoningEnd))
    kept = (end.metadata or {})["openai_compatible"]["reasoning_details"]
    assert kept == [{"type": "reasoning.text", "text": "ab"}, *pieces[2:]]


@pytest.mark.parametrize("wire", ["stop", "tool_calls", "function_call", "something_new"])
def test_an_answer_with_calls_finishes_for_its_calls(wire: str) -> None:
    events = step_all([chunk(call(0, id="a", name="read", arguments="{}")), chunk({}, wire), DONE])
    assert events[-2:] == [ToolCall("a", "read", {}), Finish("tool-calls")]


ONE, TWO = '{"n":1}', '{"n":2}'


@pytest.mark.parametrize(
    "frames",
    [
        [call(0, name="read", arguments=ONE), call(1, name="read", arguments=TWO)],
        [call(None, name="read", arguments=ONE), call(None, name="read", arguments=TWO)],
        [
            call(0, id="", name="read"),
            call(0, arguments=ONE),
            call(1, name="read"),
            call(1, arguments={"n": 2}),
        ],
        [
            call(0, arguments='{"n"'),
            call(0, name="read", arguments=":1}"),
            call(1, id="call_0", name="read", arguments=TWO),
        ],
    ],
    ids=["indexed", "bare", "in-pieces", "name-late"],
)
def test_calls_without_ids_get_their_own(frames: list[JsonObject]) -> None:
    events = step_all([*map(chunk, frames), CALLS])
    assert [event for event in events if isinstance(event, ToolCall)] == [
        ToolCall("call_0", "read", {"n": 1}),
        ToolCall("call_1", "read", {"n": 2}),
    ]


def test_parallel_calls_that_all_have_index_zero_stay_apart() -> None:
    events = step_all(
        [
            chunk(call(0, id="x", name="read", arguments='{"n":1}')),
            chunk(call(0, id="y", name="read", arguments='{"n":2}')),
            CALLS,
        ]
    )
    assert [event.id for event in events if isinstance(event, ToolCall)] == ["x", "y"]


def test_an_id_and_name_repeated_with_every_piece_is_one_call() -> None:
    pieces = ['{"pa', 'th":"', 'a"}']
    events = step_all([*(chunk(call(0, id="x", name="read", arguments=p)) for p in pieces), CALLS])
    assert events[-1] == ToolCall("x", "read", {"path": "a"})


def test_content_in_pieces_and_refusals_are_text() -> None:
    pieces = [{"type": "text", "text": "a"}, {"type": "x"}]
    events = step_all([chunk({"content": pieces}), chunk({"refusal": "no"}), STOP])
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["a", "no"]


def test_a_null_error_is_no_error() -> None:
    assert step_all([chunk({}, "stop", error=None), DONE]) == [Finish("stop")]


def test_a_call_without_a_name_is_the_providers_fault() -> None:
    with pytest.raises(LLMError, match="without a name") as failed:
        step_all([chunk(call(0, id="a", arguments="{}")), CALLS])
    assert failed.value.reason == "invalid-provider-output"
