"""Recorded streams in, events out: what a Session sees of an OpenAI Chat answer."""

import pytest

from perdure.llm.error import LLMError, Reason
from perdure.llm.event import (
    Finish,
    ProviderError,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputInvalid,
    ToolInputStart,
    Usage,
)
from perdure.llm.protocols.openai_chat import OPENAI_CHAT
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.llm.openai_chat.recordings import EVERYTHING, USAGE, call, chunk, step_all
from tests.requirements import requirement

DONE = b"[DONE]"
STOP = chunk({}, "stop")
CALLS = chunk({}, "tool_calls")


@requirement("S197")
def test_each_part_ends_before_the_next_one_starts() -> None:
    assert step_all(EVERYTHING) == [
        ReasoningStart("reasoning-0"),
        ReasoningDelta("reasoning-0", "Let me "),
        ReasoningDelta("reasoning-0", "see."),
        ReasoningEnd("reasoning-0"),
        TextStart("text-0"),
        TextDelta("text-0", "Grüße 🌍, "),
        TextDelta("text-0", "now the files."),
        TextEnd("text-0"),
        ToolInputStart("call_a", "read"),
        ToolInputDelta("call_a", '{"path":'),
        ToolInputStart("call_b", "glob"),
        ToolInputDelta("call_b", '{"pattern":"*"}'),
        ToolInputDelta("call_a", '"ä.txt"}'),
        ToolInputEnd("call_a", '{"path":"ä.txt"}'),
        ToolCall("call_a", "read", {"path": "ä.txt"}),
        ToolInputEnd("call_b", '{"pattern":"*"}'),
        ToolCall("call_b", "glob", {"pattern": "*"}),
        Finish("tool-calls", Usage(input=70, output=30, reasoning=20, cache_read=30)),
    ]


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


def test_usage_may_come_with_the_finish_reason() -> None:
    assert step_all([chunk({}, "stop", usage=USAGE), DONE])[-1] == Finish(
        "stop", Usage(input=70, output=30, reasoning=20, cache_read=30)
    )


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({}, None),
        ({"prompt_tokens": "many"}, None),
        ({"prompt_tokens": 5, "completion_tokens": 3}, Usage(input=5, output=3)),
        (
            {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}},
            Usage(input=0, cache_read=5),
        ),
        ({"prompt_tokens": -4, "completion_tokens": 2}, Usage(output=2)),
        (
            {"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4},
            Usage(input=5, output=1, cache_read=4),
        ),
    ],
)
def test_counts_never_overlap_and_are_never_made_up(
    usage: JsonObject | None, expected: Usage | None
) -> None:
    assert step_all([chunk({}, "stop", usage=usage), DONE])[-1] == Finish("stop", expected)


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content-filter"),
        ("tool_calls", "stop"),
        ("function_call", "stop"),
        ("something_new", "unknown"),
    ],
)
def test_finish_reasons_have_one_vocabulary(wire: str, reason: str) -> None:
    (finish,) = step_all([chunk({}, wire), DONE])
    assert isinstance(finish, Finish)
    assert finish.reason == reason


@pytest.mark.parametrize("wire", ["stop", "tool_calls", "function_call", "something_new"])
def test_an_answer_with_calls_finishes_for_its_calls(wire: str) -> None:
    events = step_all([chunk(call(0, id="a", name="read", arguments="{}")), chunk({}, wire), DONE])
    assert events[-2:] == [ToolCall("a", "read", {}), Finish("tool-calls")]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("", {}),
        ("  \n", {}),
        ("{}", {}),
        ('{"a":1}', {"a": 1}),
        ("[1,2]", {"value": [1, 2]}),
        ('"text"', {"value": "text"}),
        ("null", {"value": None}),
        ("7", {"value": 7}),
    ],
)
def test_input_is_always_an_object(raw: str, expected: JsonObject) -> None:
    events = step_all([chunk(call(0, id="a", name="read", arguments=raw)), CALLS])
    assert events[-2:] == [ToolInputEnd("a", raw), ToolCall("a", "read", expected)]


@pytest.mark.parametrize("raw", ['{"path": ', "{'a': 1}", '{"a":1}{"a":1}', "[" * 100_000, "\x00"])
def test_input_that_is_not_json_is_kept_and_never_called(raw: str) -> None:
    events = step_all([chunk(call(0, id="a", name="read", arguments=raw)), CALLS, DONE])
    assert ToolInputEnd("a", raw) in events
    assert isinstance(events[-2], ToolInputInvalid)
    assert not any(isinstance(event, ToolCall) for event in events)
    assert events[-1] == Finish("tool-calls")


def test_an_empty_input_of_a_cut_answer_is_not_taken_for_a_call() -> None:
    events = step_all([chunk(call(0, id="a", name="bash")), chunk({}, "length"), DONE])
    assert isinstance(events[-2], ToolInputInvalid)
    assert events[-1] == Finish("length")


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


def test_legacy_function_calls_and_unknown_fields_are_ignored() -> None:
    legacy: JsonObject = {"function_call": {"name": "x", "arguments": "{}"}, "audio": {"a": [1]}}
    assert step_all([chunk(legacy, None, new=True), STOP, DONE]) == [Finish("stop")]


def test_content_in_pieces_and_refusals_are_text() -> None:
    pieces = [{"type": "text", "text": "a"}, {"type": "x"}]
    events = step_all([chunk({"content": pieces}), chunk({"refusal": "no"}), STOP])
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["a", "no"]


@pytest.mark.parametrize(
    ("frame", "message", "reason"),
    [
        ({"error": {"message": "Overloaded", "code": 503}}, "Overloaded", "overload"),
        ({"error": "bad things"}, "bad things", "unknown"),
        (
            {"error": {"message": "too long", "code": "context_length_exceeded"}},
            "too long",
            "overflow",
        ),
        ({"object": "error", "message": "rate limit"}, "rate limit", "rate-limit"),
    ],
)
def test_an_error_inside_the_stream_ends_it(
    frame: JsonObject, message: str, reason: Reason
) -> None:
    events = step_all([chunk({"content": "half"}), codec.encode(frame)])
    assert events[-2:] == [
        TextEnd("text-0"),
        ProviderError(message=message, reason=reason),
    ]


def test_a_null_error_is_no_error() -> None:
    assert step_all([chunk({}, "stop", error=None), DONE]) == [Finish("stop")]


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"{",
        b"<html>",
        b"[]",
        b"3",
        b'"\xff"',
        b'{"choices": 5}',
        b'{"choices":[{"delta":{"content":"\xc3\x28"}}]}',
        b"[" * 100_000,
        b'{"x":' * 100_000,
    ],
    ids=range(10),
)
def test_junk_is_the_providers_fault(junk: bytes) -> None:
    with pytest.raises(LLMError) as failed:
        step_all([junk])
    assert failed.value.reason == "invalid-provider-output"


def test_a_stream_that_just_ends_is_incomplete() -> None:
    state = OPENAI_CHAT.start()
    OPENAI_CHAT.step(state, chunk({"content": "half"}))
    with pytest.raises(LLMError, match="ended before it was complete") as failed:
        OPENAI_CHAT.finish(state)
    assert failed.value.reason == "transport"


def test_a_finish_reason_completes_a_stream_that_never_says_done() -> None:
    state = OPENAI_CHAT.start()
    assert OPENAI_CHAT.step(state, STOP) == ()
    assert OPENAI_CHAT.finish(state) == (Finish("stop"),)


def test_done_without_a_finish_reason_completes_text_but_no_calls() -> None:
    assert step_all([chunk({"content": "a"}), DONE])[-2:] == [TextEnd("text-0"), Finish("unknown")]
    with pytest.raises(LLMError, match="tool calls"):
        step_all([chunk(call(0, id="a", name="bash", arguments="{}")), DONE])


def test_a_call_without_a_name_is_the_providers_fault() -> None:
    with pytest.raises(LLMError, match="without a name"):
        step_all([chunk(call(0, id="a", arguments="{}")), CALLS])


def test_what_follows_the_finish_reason_changes_nothing() -> None:
    late = [chunk({"content": "late"}), chunk(call(0, id="a", name="bash", arguments="{}")), STOP]
    assert step_all([STOP, *late, DONE]) == [Finish("stop")]
