"""Recorded streams in, events out: what a Session sees of a Bedrock answer."""

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
from perdure.llm.protocols.bedrock_converse import BEDROCK_CONVERSE
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.llm.bedrock_converse.recordings import (
    EVERYTHING,
    FOUND,
    GLOB,
    HOSTED,
    READ,
    SEARCH,
    TEXT,
    begin,
    call,
    closed,
    counts,
    event,
    exception,
    framed,
    opened,
    piece,
    read,
    reason,
    reasoning,
    step_all,
    text,
    unmodelled,
)
from tests.requirements import requirement

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
    assert step_all(EVERYTHING) == [
        ReasoningStart("reasoning-0"),
        ReasoningDelta("reasoning-0", "Let me "),
        ReasoningDelta("reasoning-0", "see."),
        ReasoningEnd("reasoning-0", {"bedrock": {"signature": "RXJvQg=="}}),
        ReasoningStart("reasoning-1"),
        ReasoningEnd("reasoning-1", {"bedrock": {"redactedData": "RW1JdA=="}}),
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
        Finish("tool-calls", Usage(input=70, output=50, cache_read=30, cache_write=8)),
    ]


@requirement("S161")
def test_what_the_provider_runs_itself_comes_with_its_result() -> None:
    assert step_all(HOSTED)[3:6] == [
        ToolInputEnd(SEARCH, '{"query":"x"}'),
        ToolCall(SEARCH, "nova_grounding", {"query": "x"}, provider_executed=True),
        HostedToolResult(
            SEARCH, ToolResult("json", FOUND), {"bedrock": {"type": "nova_grounding_result"}}
        ),
    ]
    assert step_all(HOSTED)[-1] == Finish("stop", COUNTED)


def test_a_hosted_failure_keeps_the_providers_own_words() -> None:
    result: JsonObject = {"toolUseId": SEARCH, "type": "x_result", "status": "error"}
    frames = [
        *call(0, SEARCH, "x", type="server_tool_use"),
        opened(1, toolResult=result),
        piece(1, toolResult=[{"text": "no"}]),
        closed(1),
    ]
    kept = {"type": "x_result", "status": "error", "content": [{"text": "no"}]}
    assert step_all(frames)[-1] == HostedToolResult(
        SEARCH, ToolResult("error", [{"text": "no"}]), {"bedrock": kept}
    )


def test_a_hosted_result_counts_once_and_only_for_its_call() -> None:
    known, stranger = opened(1, toolResult={"toolUseId": SEARCH}), opened(1, toolResult={})
    made = call(0, SEARCH, "x", type="server_tool_use")
    frames = [stranger, closed(1), *made, known, closed(1), known, closed(1), stranger]
    events = step_all([*frames, reason("end_turn"), counts()])
    assert sum(isinstance(event, HostedToolResult) for event in events) == 1


def test_a_tool_input_in_single_characters_is_the_same_call() -> None:
    raw = '{"path":"ä 🌍","deep":{"list":[1,2.5,null,true,"\\"x\\""]}}'
    events = step_all([*call(0, READ, "read", *raw), reason("tool_use")])
    assert events[-2:] == [
        ToolInputEnd(READ, raw),
        ToolCall(READ, "read", codec.decode_any(raw)),
    ]


def test_calls_whose_pieces_interleave_stay_apart() -> None:
    frames = [
        opened(0, toolUse={"toolUseId": "a", "name": "read"}),
        opened(1, toolUse={"toolUseId": "b", "name": "read"}),
        piece(1, toolUse={"input": '{"n":'}),
        piece(0, toolUse={"input": '{"n":1'}),
        piece(1, toolUse={"input": "2}"}),
        piece(0, toolUse={"input": "}"}),
        reason("tool_use"),
    ]
    assert step_all(frames)[-2:] == [
        ToolCall("a", "read", {"n": 1}),
        ToolCall("b", "read", {"n": 2}),
    ]


@pytest.mark.parametrize("ids", [("a", "a"), ("", ""), ("call_1", "call_1")])
def test_ids_are_unique_within_an_answer(ids: tuple[str, str]) -> None:
    blocks = [frame for index, given in enumerate(ids) for frame in call(index, given, "read")]
    events = step_all([*blocks, reason("tool_use")])
    made = [event.id for event in events if isinstance(event, ToolCall)]
    assert len(made) == len({*made}) == 2
    assert all(made)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [("", {}), ("  \n", {}), ('{"a":1}', {"a": 1}), ("[1,2]", {"value": [1, 2]})],
)
def test_input_is_always_an_object(raw: str, expected: JsonObject) -> None:
    events = step_all([*call(0, "a", "read", raw), reason("tool_use")])
    assert events[-1] == ToolCall("a", "read", expected)


@pytest.mark.parametrize("raw", ['{"path": ', "{'a': 1}", '{"a":1}{"a":1}', "[" * 100_000, "\x00"])
def test_input_that_is_not_json_is_kept_and_never_called(raw: str) -> None:
    events = step_all([*call(0, "a", "read", raw), reason("tool_use"), counts()])
    assert ToolInputEnd("a", raw) in events
    assert isinstance(events[-2], ToolInputInvalid)
    assert events[-1] == Finish("tool-calls", COUNTED)


def test_an_empty_input_of_a_cut_answer_is_not_taken_for_a_call() -> None:
    events = step_all([*call(0, "a", "bash"), reason("max_tokens"), counts()])
    assert isinstance(events[-2], ToolInputInvalid)
    assert events[-1] == Finish("length", COUNTED)


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("content_filtered", "content-filter"),
        ("guardrail_intervened", "content-filter"),
        ("malformed_model_output", "error"),
        ("malformed_tool_use", "error"),
        ("something_new", "unknown"),
    ],
)
def test_stop_reasons_have_one_vocabulary(wire: str, expected: str) -> None:
    (finish,) = step_all([reason(wire), counts()])
    assert isinstance(finish, Finish)
    assert finish.reason == expected


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({}, COUNTED),
        ({"cacheReadInputTokens": 3}, Usage(input=25, output=15, cache_read=3)),
        ({"inputTokens": -4}, Usage(output=15)),
        ({"inputTokens": None}, Usage(output=15)),
        ({"inputTokens": "many"}, None),
        ({"inputTokens": None, "outputTokens": None}, None),
    ],
)
def test_counts_do_not_overlap_and_are_never_made_up(
    usage: JsonObject, expected: Usage | None
) -> None:
    assert step_all([reason("end_turn"), counts(**usage)]) == [Finish("stop", expected)]


def test_counts_may_come_before_the_reason() -> None:
    assert step_all([counts(), reason("end_turn")]) == [Finish("stop", COUNTED)]


@requirement("S161")
@pytest.mark.parametrize(
    ("kind", "message", "reason"),
    [
        ("throttlingException", "Too many tokens, please wait before trying again.", "rate-limit"),
        ("internalServerException", "The system encountered an error.", "provider-internal"),
        ("serviceUnavailableException", "Try again later.", "overload"),
        ("modelStreamErrorException", "The model went away.", "unknown"),
        ("validationException", "Input is too long for requested model.", "overflow"),
        ("validationException", "The format of the value is not right.", "invalid-request"),
    ],
)
def test_an_exception_inside_the_stream_ends_it(kind: str, message: str, reason: Reason) -> None:
    assert step_all([begin(), piece(0, text="half"), exception(kind, message)])[-2:] == [
        TextEnd("text-0"),
        ProviderError(message=f"{kind}: {message}", reason=reason),
    ]


def test_an_error_that_no_model_knows_is_an_error_too() -> None:
    (failed,) = step_all([unmodelled("InternalFailure", "An internal server error occurred")])
    assert failed == ProviderError(
        message="InternalFailure: An internal server error occurred", reason="provider-internal"
    )


@pytest.mark.parametrize(
    "frame",
    [
        begin(),
        event("somethingNew", stuff=[1]),
        event("contentBlockStart", contentBlockIndex=0),
        event("contentBlockStart", contentBlockIndex=0, start={"novelty": {}}),
        event("contentBlockDelta", contentBlockIndex=0),
        piece(0, novelty="x"),
        piece(0, text=""),
        piece(0, reasoningContent={}),
        piece(0, toolResult=[{"text": "x"}]),
        closed(9),
        framed({":message-type": "event"}, b"{}"),
        framed({}, b"\xff"),
    ],
    ids=range(12),
)
def test_unknown_and_empty_events_say_nothing(frame: bytes) -> None:
    assert step_all([frame, *TEXT]) == step_all(TEXT)


def test_a_block_that_is_never_closed_ends_with_the_next_one() -> None:
    frames = [
        piece(0, reasoningContent={"text": "hm", "signature": "s"}),
        piece(0, text="a"),
        opened(0, toolUse={"toolUseId": "a", "name": "read"}),
        opened(0, toolUse={"toolUseId": "b", "name": "read"}),
        reason("tool_use"),
    ]
    assert step_all(frames) == [
        ReasoningStart("reasoning-0"),
        ReasoningDelta("reasoning-0", "hm"),
        ReasoningEnd("reasoning-0", {"bedrock": {"signature": "s"}}),
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


def test_reasoning_that_was_cut_off_has_no_signature_to_send_back() -> None:
    events = step_all([*reasoning(0, "hm", signature=()), reason("max_tokens")])
    assert events[-1] == ReasoningEnd("reasoning-0")


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"{",
        b"<html>",
        b"[]",
        b"3",
        b'"\xff"',
        b'{"contentBlockDelta":5}',
        b'{"contentBlockDelta":{"contentBlockIndex":"x"}}',
        b'{"contentBlockDelta":{"delta":{"text":7}}}',
        b'{"contentBlockDelta":{"delta":{"text":"\xc3\x28"}}}',
        b"[" * 100_000,
        b'{"x":' * 100_000,
    ],
    ids=range(12),
)
def test_junk_is_the_providers_fault(junk: bytes) -> None:
    with pytest.raises(LLMError) as failed:
        BEDROCK_CONVERSE.step(BEDROCK_CONVERSE.start(), junk)
    assert failed.value.reason == "invalid-provider-output"


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (piece(3, toolUse={"input": "x"}), "block 3"),
        (opened(0, toolUse={"toolUseId": "a"}), "without a name"),
    ],
)
def test_a_broken_lifecycle_is_named(frame: bytes, said: str) -> None:
    with pytest.raises(LLMError, match=said) as failed:
        step_all([begin(), frame])
    assert failed.value.reason == "invalid-provider-output"


def test_a_stream_that_just_ends_is_incomplete() -> None:
    with pytest.raises(LLMError, match="ended before it was complete") as failed:
        read(begin(), *text(0, "half"), *call(1, "a", "bash", "{}"))
    assert failed.value.reason == "transport"


def test_a_stop_reason_completes_a_stream_without_counts() -> None:
    assert read(reason("end_turn")) == [Finish("stop")]


def test_what_follows_the_stop_reason_changes_nothing() -> None:
    late = [*text(7, "late"), *call(8, "a", "bash", "{}"), reason("tool_use")]
    assert step_all([reason("end_turn"), *late, counts()]) == [Finish("stop", COUNTED)]
