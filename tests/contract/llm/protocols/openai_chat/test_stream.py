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
    ToolInputEnd,
    ToolInputInvalid,
    ToolInputStart,
)
from perdure.llm.protocols.openai_chat.request import OPENAI_CHAT
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from tests.contract.llm.protocols.openai_chat.recordings import (
    DETAILED,
    THINKING,
    WITHOUT_REASON,
    call,
    chunk,
    step_all,
)
from tests.contract.llm.protocols.openai_chat.wire import TOKENS, WIRE
from tests.contract.llm.wire import spoken, thought

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


def test_thinking_in_pieces_of_the_content_is_reasoning() -> None:
    assert step_all(THINKING)[:-1] == [
        *thought("reasoning-0", "Ein ", "Gruß?"),
        *spoken("text-0", "Grüße", " 🌍"),
    ]


def test_a_stream_without_a_finish_reason_runs_its_whole_calls() -> None:
    told = [ToolCall("tooluse_1", "read", {"path": "ä.txt"}), Finish("tool-calls", TOKENS)]
    assert step_all(WITHOUT_REASON)[-2:] == told
    # The counts are the end as well, if they come once and last.
    assert WIRE.answered(WITHOUT_REASON[:-1])[-2:] == told


def test_counts_with_every_chunk_are_no_end() -> None:
    frames = [
        chunk({"content": "half"}, usage={"prompt_tokens": 9, "completion_tokens": n})
        for n in (1, 2)
    ]
    with pytest.raises(LLMError, match="before it was complete"):
        WIRE.answered(frames)


def test_counts_that_content_follows_are_no_end() -> None:
    counted = codec.encode({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}})
    with pytest.raises(LLMError, match="before it was complete"):
        WIRE.answered([counted, chunk({"content": "half"})])


FAILED = "Failed to call a function. Please adjust your prompt. See 'failed_generation'."


@pytest.mark.parametrize(
    ("error", "name", "wrote"),
    [
        (
            {"message": FAILED, "failed_generation": '<function=read={"path": "a"}</function>'},
            "read",
            '<function=read={"path": "a"}</function>',
        ),
        (
            {"message": FAILED, "failed_generation": '{"name": "glob", "arguments": {'},
            "glob",
            '{"name": "glob", "arguments": {',
        ),
        (
            {
                "message": "tool call validation failed: parameters for tool edit did not match"
                " schema: errors: [`/path`: expected string, but got array]"
            },
            "edit",
            "",
        ),
        ({"message": FAILED, "failed_generation": ""}, "unknown", ""),
    ],
)
def test_a_call_that_the_server_could_not_read_goes_back_to_the_model(
    error: JsonObject, name: str, wrote: str
) -> None:
    body = codec.encode(
        {"error": {"type": "invalid_request_error", "code": "tool_use_failed", **error}}
    )
    assert OPENAI_CHAT.recover is not None
    for events in (OPENAI_CHAT.recover(body), step_all([body])):
        begun, ended, invalid, finish = events
        assert begun == ToolInputStart("call_0", name)
        assert ended == ToolInputEnd("call_0", wrote)
        assert isinstance(invalid, ToolInputInvalid)
        assert error["message"] in invalid.message
        assert finish == Finish("tool-calls")
    said = step_all([chunk({"content": "Well."}), body])
    assert [type(event) for event in said[2:4]] == [TextEnd, ToolInputStart]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"error":"x"}',
        b'{"error":{"code":"other"}}',
        b'{"choices":[]}',
        b"[" * 9000,
    ],
)
def test_any_other_refusal_is_only_a_refusal(body: bytes) -> None:
    assert OPENAI_CHAT.recover is not None
    assert OPENAI_CHAT.recover(body) == ()


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
