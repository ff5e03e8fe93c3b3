"""Recorded streams in, events out: what a Session sees of an OpenAI Responses answer."""

import pytest

from perdure.llm.error import LLMError, Reason
from perdure.llm.event import (
    Finish,
    HostedToolResult,
    LLMEvent,
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
from perdure.llm.protocols.openai_responses import OPENAI_RESPONSES
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from tests.contract.llm.openai_responses.recordings import (
    EVERYTHING,
    RECORDINGS,
    SEARCH,
    added,
    call,
    completed,
    created,
    done,
    event,
    hosted,
    incomplete,
    message,
    reasoning,
    response,
    step_all,
)
from tests.requirements import requirement

TOKENS = Usage(input=70, output=30, reasoning=20, cache_read=30)
DONE = completed(None)


def native(id: str, **more: JsonValue) -> dict[str, JsonObject]:
    return {"openai": {"itemId": id} | more}


def kept(events: list[LLMEvent], *kinds: type[LLMEvent]) -> list[LLMEvent]:
    return [made for made in events if isinstance(made, kinds)]


@requirement("S161")
def test_each_part_ends_before_the_next_one_starts() -> None:
    sealed = native("rs_1", reasoningEncryptedContent="sealed")
    assert step_all(EVERYTHING) == [
        ReasoningStart("rs_1:0", native("rs_1")),
        ReasoningDelta("rs_1:0", "Let me "),
        ReasoningDelta("rs_1:0", "see."),
        ReasoningEnd("rs_1:0", native("rs_1")),
        ReasoningStart("rs_1:1", native("rs_1")),
        ReasoningDelta("rs_1:1", "Files"),
        ReasoningEnd("rs_1:1", sealed),
        TextStart("msg_1"),
        TextDelta("msg_1", "Grüße 🌍, "),
        TextDelta("msg_1", "now the files."),
        TextEnd("msg_1"),
        ToolCall("ws_1", "web_search", SEARCH["action"], True, native("ws_1")),
        HostedToolResult("ws_1", ToolResult("json", SEARCH), native("ws_1")),
        ToolInputStart("call_a", "read"),
        ToolInputDelta("call_a", '{"path":'),
        ToolInputDelta("call_a", '"ä.txt"}'),
        ToolInputEnd("call_a", '{"path":"ä.txt"}'),
        ToolCall("call_a", "read", {"path": "ä.txt"}, metadata=native("fc_a")),
        ToolInputStart("call_b", "glob"),
        ToolInputDelta("call_b", '{"pattern":"*"}'),
        ToolInputEnd("call_b", '{"pattern":"*"}'),
        ToolCall("call_b", "glob", {"pattern": "*"}, metadata=native("fc_b")),
        Finish("tool-calls", TOKENS),
    ]


def test_text_that_was_never_streamed_is_said_when_its_item_is_done() -> None:
    content = [{"type": "output_text", "text": "whole"}]
    events = step_all([done(0, "message", "msg_1", content=content), completed()])
    assert events == [
        TextStart("msg_1"),
        TextDelta("msg_1", "whole"),
        TextEnd("msg_1"),
        Finish("stop", TOKENS),
    ]


def test_a_refusal_is_told_as_text_and_ends_the_answer_as_filtered() -> None:
    assert step_all(RECORDINGS["refusal"])[1:] == [
        TextDelta("msg_1", "I can"),
        TextDelta("msg_1", "not."),
        TextEnd("msg_1"),
        Finish("content-filter", TOKENS),
    ]


@requirement("S161")
def test_reasoning_that_is_not_shown_can_still_be_sent_back() -> None:
    events = step_all([created(), *reasoning(0), *message(1, "a"), DONE])
    sealed = native("rs_1", reasoningEncryptedContent="sealed")
    assert events[:2] == [ReasoningStart("rs_1:0", sealed), ReasoningEnd("rs_1:0", sealed)]


def test_what_the_provider_stored_is_marked_as_stored() -> None:
    frames = [created(store=True), *reasoning(0, ("a",)), *hosted(1, SEARCH), *call(2, "x"), DONE]
    ends = [
        made.metadata
        for made in step_all(frames)
        if isinstance(made, ReasoningEnd | ToolCall | HostedToolResult)
    ]
    sealed = native("rs_1", stored=True, reasoningEncryptedContent="sealed")
    search, read = native("ws_1", stored=True), native("fc_a", stored=True)
    assert ends == [sealed, search, search, read]


def test_open_reasoning_text_is_reasoning() -> None:
    frames = [event("reasoning_text.delta", output_index=0, content_index=0, delta="hm"), DONE]
    assert step_all(frames) == [
        ReasoningStart("reasoning-0:0"),
        ReasoningDelta("reasoning-0:0", "hm"),
        ReasoningEnd("reasoning-0:0"),
        Finish("stop"),
    ]


def test_final_arguments_win_over_streamed_ones() -> None:
    events = step_all([*call(0, "read", '{"n":1', final='{"n":2}'), DONE])
    assert kept(events, ToolInputEnd, ToolCall) == [
        ToolInputEnd("call_a", '{"n":2}'),
        ToolCall("call_a", "read", {"n": 2}, metadata=native("fc_a")),
    ]


@pytest.mark.parametrize("size", range(1, 12))
def test_arguments_may_come_in_pieces_of_any_size(size: int) -> None:
    whole = '{"path":"äöü 🌍","n":[1,2]}'
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    events = step_all([*call(0, "read", *pieces), DONE])
    assert kept(events, ToolCall) == [
        ToolCall("call_a", "read", codec.decode_any(whole), metadata=native("fc_a"))
    ]


def test_parallel_calls_whose_pieces_interleave_stay_apart() -> None:
    one, two = call(0, "read", '{"n":', "1}"), call(1, "read", '{"n":', "2}", id="b")
    mixed = [frame for pair in zip(one, two, strict=True) for frame in pair]
    events = step_all([*mixed, DONE])
    assert [made.input for made in events if isinstance(made, ToolCall)] == [{"n": 1}, {"n": 2}]


def test_ids_are_unique_within_an_answer() -> None:
    frames = [*call(0, "read", "{}"), *call(1, "read", "{}"), *message(2, "x"), *message(3, "y")]
    events = step_all([*frames, DONE])
    calls = [made.id for made in events if isinstance(made, ToolCall)]
    texts = [made.id for made in events if isinstance(made, TextStart)]
    assert (len({*calls}), len({*texts})) == (2, 2)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [("", {}), (" \n", {}), ("{}", {}), ("[1]", {"value": [1]}), ("null", {"value": None})],
)
def test_input_is_always_an_object(raw: str, expected: JsonObject) -> None:
    events = step_all([*call(0, "read", raw), DONE])
    assert kept(events, ToolCall) == [ToolCall("call_a", "read", expected, metadata=native("fc_a"))]


@pytest.mark.parametrize("raw", ['{"path": ', "{'a': 1}", '{"a":1}{"a":1}', "[" * 100_000, "\x00"])
def test_input_that_is_not_json_is_kept_and_never_called(raw: str) -> None:
    events = step_all([*call(0, "read", raw), DONE])
    assert ToolInputEnd("call_a", raw) in events
    assert len(kept(events, ToolInputInvalid)) == 1
    assert not kept(events, ToolCall)
    assert events[-1] == Finish("tool-calls")


def test_a_call_of_a_cut_answer_without_input_is_never_called() -> None:
    events = step_all(RECORDINGS["cut by length"])
    assert len(kept(events, ToolInputInvalid)) == 1
    assert events[-1] == Finish("length", TOKENS)


def test_a_call_that_never_ends_is_settled_with_the_answer() -> None:
    events = step_all([*call(0, "read", '{"n":1}')[:-2], DONE])
    assert events[-2:] == [
        ToolCall("call_a", "read", {"n": 1}, metadata=native("fc_a")),
        Finish("tool-calls"),
    ]


@pytest.mark.parametrize(
    ("item", "name", "asked"),
    [
        (
            {"type": "file_search_call", "id": "fs_1", "queries": ["a"], "results": [{"x": 1}]},
            "file_search",
            {"queries": ["a"]},
        ),
        (
            {"type": "code_interpreter_call", "id": "ci_1", "code": "1", "container_id": "c"},
            "code_interpreter",
            {"code": "1", "container_id": "c"},
        ),
        ({"type": "image_generation_call", "id": "ig_1", "result": "AA"}, "image_generation", {}),
        (
            {"type": "mcp_call", "id": "mcp_1", "name": "roll", "arguments": '{"d":6}'},
            "roll",
            {"d": 6},
        ),
        ({"type": "mcp_call", "id": "mcp_1", "arguments": "{"}, "mcp", {"value": "{"}),
    ],
)
def test_what_the_provider_ran_is_a_call_with_its_whole_item_as_result(
    item: JsonObject, name: str, asked: JsonObject
) -> None:
    made, result, end = step_all([*hosted(0, item), DONE])
    assert made == ToolCall(item["id"], name, asked, True, native(item["id"]))
    assert result == HostedToolResult(item["id"], ToolResult("json", item), native(item["id"]))
    assert end == Finish("stop")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"status": "failed"}, "The provider's web_search failed"),
        ({"error": {"message": "no luck"}}, "no luck"),
    ],
)
def test_a_hosted_tool_that_failed_has_an_error(fields: JsonObject, message: str) -> None:
    _, result, _ = step_all([*hosted(0, SEARCH | fields), DONE])
    assert result == HostedToolResult("ws_1", ToolResult("error", message), native("ws_1"))


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("max_output_tokens", "length"),
        ("content_filter", "content-filter"),
        ("something_new", "unknown"),
    ],
)
def test_an_incomplete_answer_says_why(reason: str, finish: str) -> None:
    *_, end = step_all([*message(0, "half"), incomplete(reason)])
    assert isinstance(end, Finish)
    assert (end.reason, end.usage) == (finish, TOKENS)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({}, None),
        ({"input_tokens": "many"}, None),
        ({"input_tokens": 5, "output_tokens": 3}, Usage(input=5, output=3)),
        (
            {"input_tokens": 5, "input_tokens_details": {"cached_tokens": 9}},
            Usage(input=0, cache_read=5),
        ),
        ({"input_tokens": -4, "output_tokens": 2}, Usage(output=2)),
    ],
)
def test_counts_never_overlap_and_are_never_made_up(
    usage: JsonObject | None, expected: Usage | None
) -> None:
    assert step_all([completed(usage)]) == [Finish("stop", expected)]


@pytest.mark.parametrize(
    ("frame", "said", "reason"),
    [
        (
            event("error", code="server_error", message="Oops", param=None),
            "server_error: Oops",
            "provider-internal",
        ),
        (
            event("error", error={"type": "invalid_request_error", "code": None, "message": "No"}),
            "invalid_request_error: No",
            "invalid-request",
        ),
        (
            event("error", code="context_length_exceeded", message="Too long"),
            "context_length_exceeded: Too long",
            "overflow",
        ),
        (
            event(
                "failed",
                response=response(
                    "failed", error={"code": "rate_limit_exceeded", "message": "Slow"}
                ),
            ),
            "rate_limit_exceeded: Slow",
            "rate-limit",
        ),
        (
            event("failed", response=response("failed")),
            "The provider failed and did not say why",
            "unknown",
        ),
        (b'{"error":{"message":"gateway"}}', "gateway", "unknown"),
        (b'{"type":"error","response":null,"message":"odd"}', "odd", "unknown"),
    ],
)
def test_an_error_inside_the_stream_ends_it(frame: bytes, said: str, reason: Reason) -> None:
    half = message(0, "half")[:3]
    assert step_all([*half, frame, *message(1, "late")])[-2:] == [
        TextEnd("msg_1"),
        ProviderError(message=said, reason=reason),
    ]


def test_unknown_events_items_and_fields_are_ignored() -> None:
    frames = [
        event("queued", response=5),
        event("new.delta", delta={"a": 1}, output_index="x", item=[], content_index={}),
        added(0, "novelty", "n_1", content="odd", summary=5),
        done(0, "novelty", "n_1", content="odd", summary=5),
        b"[DONE]",
        DONE,
        *message(1, "late"),
    ]
    assert step_all(frames) == [Finish("stop")]


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"{",
        b"<html>",
        b"[]",
        b"3",
        b'"\xff"',
        b"{}",
        b'{"type":5}',
        b'{"type":"response.output_text.delta","delta":5}',
        b'{"type":"response.output_text.delta","delta":"a","output_index":[]}',
        b'{"type":"response.output_text.delta","delta":"\xc3\x28"}',
        b'{"type":"response.reasoning_text.delta","delta":{}}',
        b'{"type":"response.function_call_arguments.delta","delta":"a"}',
        b'{"type":"response.output_item.added","item":{"type":"function_call","call_id":"a"}}',
        b'{"type":"response.output_item.added"}',
        b'{"type":"response.output_item.done","item":{"type":"message","content":5}}',
        b'{"type":"response.output_item.done","item":{"type":"web_search_call"}}',
        b'{"type":"response.output_item.done","item":{"type":"web_search_call","id":"\xff"}}',
        b'{"type":"response.completed","response":[]}',
        b'{"type":"error","message":"\xff"}',
        b"[" * 100_000,
        b'{"x":' * 100_000,
    ],
    ids=range(22),
)
def test_junk_is_the_providers_fault(junk: bytes) -> None:
    with pytest.raises(LLMError, match="The provider sent") as failed:
        step_all([junk])
    assert failed.value.reason == "invalid-provider-output"


def test_a_stream_that_just_ends_is_incomplete() -> None:
    state = OPENAI_RESPONSES.start()
    for frame in message(0, "whole text, but no end"):
        OPENAI_RESPONSES.step(state, frame)
    with pytest.raises(LLMError, match="ended before it was complete") as failed:
        OPENAI_RESPONSES.finish(state)
    assert failed.value.reason == "transport"
