"""Recorded streams in, events out: what a Session sees of an Anthropic Messages answer."""

import pytest

from perdure.llm.error import LLMError, Reason
from perdure.llm.event import (
    Finish,
    HostedToolResult,
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
from perdure.llm.message import ToolResult
from perdure.llm.protocols.anthropic_messages import ANTHROPIC_MESSAGES
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from tests.contract.llm.anthropic_messages.recordings import (
    EVERYTHING,
    FOUND,
    HOSTED,
    PING,
    STOP,
    TEXT,
    begin,
    call,
    closed,
    error,
    opened,
    piece,
    reason,
    step_all,
    text,
    thinking,
)
from tests.requirements import requirement

READ, GLOB = "toolu_01AAAAAAAAAAAAAAAAAAAA", "toolu_01BBBBBBBBBBBBBBBBBBBB"
COUNTED = Usage(input=25, output=15)


def test_a_text_answer_is_one_part() -> None:
    assert step_all(TEXT) == [
        TextStart("text-0"),
        TextDelta("text-0", "Hel"),
        TextDelta("text-0", "lo"),
        TextEnd("text-0"),
        Finish("stop", COUNTED),
    ]


@requirement("S161", "S197")
def test_each_part_ends_before_the_next_one_starts_and_keeps_what_goes_back() -> None:
    redacted = {"anthropic": {"redactedData": "RW1JdA=="}}
    assert step_all(EVERYTHING) == [
        ReasoningStart("reasoning-0"),
        ReasoningDelta("reasoning-0", "Let me "),
        ReasoningDelta("reasoning-0", "see."),
        ReasoningEnd("reasoning-0", {"anthropic": {"signature": "RXJvQg=="}}),
        ReasoningStart("reasoning-1", redacted),
        ReasoningEnd("reasoning-1", redacted),
        TextStart("text-0"),
        TextDelta("text-0", "Grüße 🌍, "),
        TextDelta("text-0", "now the files."),
        TextEnd("text-0"),
        ToolInputStart(READ, "read"),
        ToolInputDelta(READ, '{"path":'),
        ToolInputDelta(READ, '"ä.txt"}'),
        ToolInputEnd(READ, '{"path":"ä.txt"}'),
        ToolInputStart(GLOB, "glob"),
        ToolInputDelta(GLOB, '{"pattern":"*"}'),
        ToolInputEnd(GLOB, '{"pattern":"*"}'),
        ToolCall(READ, "read", {"path": "ä.txt"}),
        ToolCall(GLOB, "glob", {"pattern": "*"}),
        Finish(
            "tool-calls",
            Usage(input=70, output=30, reasoning=20, cache_read=30, cache_write=8),
        ),
    ]


@requirement("S161")
def test_what_the_provider_runs_itself_comes_with_its_result() -> None:
    assert step_all(HOSTED) == [
        ToolInputStart("srvtoolu_01A", "web_search"),
        ToolInputDelta("srvtoolu_01A", '{"que'),
        ToolInputDelta("srvtoolu_01A", 'ry":"x"}'),
        ToolInputEnd("srvtoolu_01A", '{"query":"x"}'),
        ToolCall("srvtoolu_01A", "web_search", {"query": "x"}, provider_executed=True),
        HostedToolResult(
            "srvtoolu_01A",
            ToolResult("json", FOUND),
            {"anthropic": {"type": "web_search_tool_result"}},
        ),
        TextStart("text-0"),
        TextDelta("text-0", "Found."),
        TextEnd("text-0"),
        Finish("stop", COUNTED),
    ]


def test_a_hosted_failure_keeps_the_providers_own_words() -> None:
    said = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    result = opened(1, "web_search_tool_result", tool_use_id="srvtoolu_1", content=said)
    made = call(0, "srvtoolu_1", "web_search", "{}", type="server_tool_use")
    events = step_all([*made, result, closed(1), reason("end_turn")])
    assert events[-1] == HostedToolResult(
        "srvtoolu_1",
        ToolResult("error", "max_uses_exceeded"),
        {"anthropic": {"type": "web_search_tool_result", "content": said}},
    )


def test_a_hosted_result_counts_once_and_only_for_its_call() -> None:
    made = call(0, "srvtoolu_1", "web_fetch", type="server_tool_use")
    result = opened(1, "web_fetch_tool_result", tool_use_id="srvtoolu_1", content={"a": 1})
    stranger = opened(1, "web_fetch_tool_result", tool_use_id="srvtoolu_2", content={"a": 1})
    events = step_all([stranger, *made, result, result, stranger, reason("end_turn"), STOP])
    assert sum(isinstance(event, HostedToolResult) for event in events) == 1


def test_a_hosted_call_with_broken_input_is_never_taken_for_a_call() -> None:
    made = call(0, "srvtoolu_1", "web_search", '{"que', type="server_tool_use")
    result = opened(1, "web_search_tool_result", tool_use_id="srvtoolu_1", content=[])
    events = step_all([*made, result, reason("max_tokens"), STOP])
    kinds = {type(event) for event in events}
    assert ToolInputInvalid in kinds
    assert not kinds & {ToolCall, HostedToolResult}


def test_a_tool_input_in_single_characters_is_the_same_call() -> None:
    raw = '{"path":"ä 🌍","deep":{"list":[1,2.5,null,true,"\\"x\\""]}}'
    events = step_all([*call(0, READ, "read", *raw), reason("tool_use")])
    assert events[-2:] == [
        ToolInputEnd(READ, raw),
        ToolCall(READ, "read", codec.decode_any(raw)),
    ]


def test_calls_whose_pieces_interleave_stay_apart() -> None:
    frames = [
        opened(0, "tool_use", id="a", name="read", input={}),
        opened(1, "tool_use", id="b", name="read", input={}),
        piece(1, partial_json='{"n":'),
        piece(0, partial_json='{"n":1'),
        piece(1, partial_json="2}"),
        piece(0, partial_json="}"),
        reason("tool_use"),
    ]
    assert step_all(frames)[-2:] == [
        ToolCall("a", "read", {"n": 1}),
        ToolCall("b", "read", {"n": 2}),
    ]


def test_input_that_comes_whole_with_its_block_is_taken() -> None:
    events = step_all([*call(0, "a", "read", path="x"), reason("tool_use")])
    assert events[-1] == ToolCall("a", "read", {"path": "x"})


@pytest.mark.parametrize("ids", [("a", "a"), ("", ""), ("call_1", "call_1"), (None, None)])
def test_ids_are_unique_within_an_answer(ids: tuple[str | None, str | None]) -> None:
    blocks = [
        frame
        for index, given in enumerate(ids)
        for frame in (opened(index, "tool_use", id=given, name="read"), closed(index))
    ]
    events = step_all([*blocks, reason("tool_use")])
    made = [event.id for event in events if isinstance(event, ToolCall)]
    assert len(made) == len({*made}) == 2
    assert all(made)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("", {}),
        ("  \n", {}),
        ('{"a":1}', {"a": 1}),
        ("[1,2]", {"value": [1, 2]}),
        ('"text"', {"value": "text"}),
        ("null", {"value": None}),
    ],
)
def test_input_is_always_an_object(raw: str, expected: JsonObject) -> None:
    events = step_all([*call(0, "a", "read", raw), reason("tool_use")])
    assert events[-2:] == [ToolInputEnd("a", raw), ToolCall("a", "read", expected)]


@pytest.mark.parametrize("raw", ['{"path": ', "{'a': 1}", '{"a":1}{"a":1}', "[" * 100_000, "\x00"])
def test_input_that_is_not_json_is_kept_and_never_called(raw: str) -> None:
    events = step_all([*call(0, "a", "read", raw), reason("tool_use"), STOP])
    assert ToolInputEnd("a", raw) in events
    assert isinstance(events[-2], ToolInputInvalid)
    assert not any(isinstance(event, ToolCall) for event in events)
    assert events[-1] == Finish("tool-calls", Usage(output=15))


def test_an_empty_input_of_a_cut_answer_is_not_taken_for_a_call() -> None:
    events = step_all([*call(0, "a", "bash"), reason("max_tokens"), STOP])
    assert isinstance(events[-2], ToolInputInvalid)
    assert events[-1] == Finish("length", Usage(output=15))


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("tool_use", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content-filter"),
        ("something_new", "unknown"),
    ],
)
def test_stop_reasons_have_one_vocabulary(wire: str, expected: str) -> None:
    (finish,) = step_all([reason(wire), STOP])
    assert isinstance(finish, Finish)
    assert finish.reason == expected


def test_a_refusal_keeps_what_was_said_before_it() -> None:
    frames = [begin(), *text(0, "I ca"), reason("refusal"), STOP]
    assert step_all(frames)[-2:] == [TextEnd("text-0"), Finish("content-filter", COUNTED)]


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ({}, {}, Usage(input=25, output=15)),
        ({"input_tokens": 0}, {"input_tokens": 9}, Usage(input=9, output=15)),
        ({"input_tokens": 7}, {"input_tokens": None}, Usage(input=7, output=15)),
        ({"input_tokens": "many"}, {}, Usage(output=15)),
        ({"input_tokens": -4}, {}, Usage(output=15)),
        (
            {"cache_read_input_tokens": 3},
            {"cache_read_input_tokens": 5, "cache_creation_input_tokens": 2},
            Usage(input=25, output=15, cache_read=5, cache_write=2),
        ),
        (
            {},
            {"output_tokens_details": {"thinking_tokens": 99}},
            Usage(input=25, reasoning=15),
        ),
    ],
)
def test_later_counts_replace_earlier_ones(
    first: JsonObject, last: JsonObject, expected: Usage
) -> None:
    events = step_all([begin(**first), reason("end_turn", **last), STOP])
    assert events == [Finish("stop", expected)]


def test_counts_are_never_made_up() -> None:
    frame = codec.encode({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    assert step_all([frame, STOP]) == [Finish("stop", None)]


@pytest.mark.parametrize(
    ("type", "message", "reason"),
    [
        ("overloaded_error", "Overloaded", "overload"),
        ("api_error", "Something went wrong", "provider-internal"),
        ("rate_limit_error", "Slow down", "rate-limit"),
        ("timeout_error", "Request timeout", "provider-internal"),
        ("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", "overflow"),
        ("request_too_large", "Request exceeds the maximum size", "overflow"),
        ("authentication_error", "invalid x-api-key", "authentication"),
        ("permission_error", "no", "authentication"),
        ("billing_error", "Your credit balance is too low", "quota-exceeded"),
        ("not_found_error", "model: x", "invalid-request"),
    ],
)
def test_an_error_inside_the_stream_ends_it(type: str, message: str, reason: Reason) -> None:
    frames = [opened(0, "text", text=""), piece(0, text="half"), error(type, message)]
    assert step_all(frames)[-2:] == [
        TextEnd("text-0"),
        ProviderError(message=f"{type}: {message}", reason=reason),
    ]


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ({"error": "bad things"}, "bad things"),
        ({"type": "error"}, '{"type":"error"}'),
        ({"type": "error", "error": {"message": "x"}}, "x"),
    ],
)
def test_an_error_of_any_shape_is_an_error(frame: JsonObject, said: str) -> None:
    (event,) = step_all([codec.encode(frame)])
    assert isinstance(event, ProviderError)
    assert event.message == said


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "new_event", "index": 3, "stuff": {"a": [1]}},
        {"type": "ping", "error": None},
        {},
        {"type": "message_start"},
        {"type": "message_delta"},
        {"type": "content_block_stop", "index": 9},
    ],
)
def test_unknown_and_empty_events_say_nothing(frame: JsonObject) -> None:
    assert step_all([codec.encode(frame), *TEXT]) == step_all(TEXT)


def test_unknown_blocks_and_deltas_are_ignored() -> None:
    frames = [
        opened(0, "container_upload", file_id="f"),
        piece(0, novelty="x"),
        closed(0),
        opened(1, "text", text="a", citations=None),
        piece(1, thinking="not here"),
        piece(1, text=""),
        closed(1),
        PING,
        reason("end_turn"),
    ]
    assert step_all(frames) == [TextStart("text-0"), TextDelta("text-0", "a"), TextEnd("text-0")]


def test_a_text_without_words_is_no_part() -> None:
    assert step_all([*text(0), *text(1, ""), reason("end_turn")]) == []


def test_a_block_that_is_never_closed_ends_with_the_next_one() -> None:
    frames = [
        opened(0, "thinking", thinking="hm", signature="s"),
        opened(0, "text", text="a"),
        opened(0, "tool_use", id="a", name="read", input={}),
        opened(0, "tool_use", id="b", name="read", input={}),
        reason("tool_use"),
    ]
    metadata = {"anthropic": {"signature": "s"}}
    assert step_all(frames) == [
        ReasoningStart("reasoning-0", metadata),
        ReasoningDelta("reasoning-0", "hm"),
        ReasoningEnd("reasoning-0", metadata),
        TextStart("text-0"),
        TextDelta("text-0", "a"),
        TextEnd("text-0"),
        ToolInputStart("a", "read"),
        ToolInputEnd("a", ""),
        ToolInputStart("b", "read"),
        ToolInputEnd("b", ""),
        ToolCall("a", "read", {}),
        ToolCall("b", "read", {}),
    ]


def test_thinking_that_was_cut_off_has_no_signature_to_send_back() -> None:
    events = step_all([*thinking(0, "hm", signature=()), reason("max_tokens")])
    assert events[-1] == ReasoningEnd("reasoning-0")


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"{",
        b"[DONE]",
        b"<html>",
        b"[]",
        b"3",
        b'"\xff"',
        b'{"type":5}',
        b'{"type":"content_block_delta","index":"x"}',
        b'{"type":"content_block_delta","delta":{"text":"\xc3\x28"}}',
        b'{"type":"content_block_delta","delta":{"text":7}}',
        b"[" * 100_000,
        b'{"x":' * 100_000,
        b'{"type":"error","error":' + b"[" * 100_000,
    ],
    ids=range(14),
)
def test_junk_is_the_providers_fault(junk: bytes) -> None:
    with pytest.raises(LLMError) as failed:
        step_all([junk])
    assert failed.value.reason == "invalid-provider-output"


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (piece(3, text="x"), "block 3"),
        (opened(0, "tool_use", id="a"), "without a name"),
        (opened(0, "server_tool_use", id="a", name=""), "without a name"),
    ],
)
def test_a_broken_lifecycle_is_named(frame: bytes, said: str) -> None:
    with pytest.raises(LLMError, match=said) as failed:
        step_all([begin(), frame])
    assert failed.value.reason == "invalid-provider-output"


def test_a_stream_that_just_ends_is_incomplete() -> None:
    state = ANTHROPIC_MESSAGES.start()
    for frame in (begin(), *text(0, "half"), *call(1, "a", "bash", "{}")):
        ANTHROPIC_MESSAGES.step(state, frame)
    with pytest.raises(LLMError, match="ended before it was complete") as failed:
        ANTHROPIC_MESSAGES.finish(state)
    assert failed.value.reason == "transport"


def test_a_stop_reason_completes_a_stream_that_never_says_stop() -> None:
    state = ANTHROPIC_MESSAGES.start()
    assert ANTHROPIC_MESSAGES.step(state, reason("end_turn")) == ()
    assert ANTHROPIC_MESSAGES.finish(state) == (Finish("stop", Usage(output=15)),)


def test_a_stop_without_a_reason_completes_text_but_no_calls() -> None:
    frames = [opened(0, "text", text="a"), STOP]
    assert step_all(frames)[-2:] == [TextEnd("text-0"), Finish("unknown")]
    with pytest.raises(LLMError, match="tool calls"):
        step_all([*call(0, "a", "bash", "{}"), STOP])


def test_what_follows_the_stop_reason_changes_nothing() -> None:
    late: list[bytes] = [*text(7, "late"), *call(8, "a", "bash", "{}"), reason("tool_use")]
    expected: JsonValue = [Finish("stop", Usage(output=15))]
    assert step_all([reason("end_turn"), *late, STOP]) == expected
