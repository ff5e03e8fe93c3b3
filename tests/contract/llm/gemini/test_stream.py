"""Recorded streams in, events out: what a Session sees of a Gemini answer."""

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
from perdure.llm.protocols.gemini import GEMINI
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from tests.contract.llm.gemini.recordings import (
    CODE,
    EVERYTHING,
    HOSTED,
    RAN,
    TEXT,
    answered,
    call,
    chunk,
    error,
    said,
    step_all,
    thought,
)
from tests.requirements import requirement

COUNTED = Usage(input=25, output=15)


def test_a_text_answer_is_one_part() -> None:
    assert answered(TEXT) == [
        TextStart("text-0"),
        TextDelta("text-0", "Hel"),
        TextDelta("text-0", "lo"),
        TextEnd("text-0"),
        Finish("stop", COUNTED),
    ]


@requirement("S161", "S197")
def test_each_part_ends_before_the_next_one_starts_and_keeps_what_goes_back() -> None:
    assert answered(EVERYTHING) == [
        ReasoningStart("reasoning-0"),
        ReasoningDelta("reasoning-0", "Let me "),
        ReasoningDelta("reasoning-0", "see."),
        ReasoningEnd("reasoning-0", {"google": {"thoughtSignature": "dGhvdWdodA=="}}),
        TextStart("text-0"),
        TextDelta("text-0", "Grüße 🌍, "),
        TextDelta("text-0", "now the files."),
        TextEnd("text-0"),
        ToolInputStart("f1", "read"),
        ToolInputDelta("f1", '{"path":"ä.txt"}'),
        ToolInputEnd("f1", '{"path":"ä.txt"}'),
        ToolInputStart("tool_1", "glob"),
        ToolInputDelta("tool_1", '{"pattern":"*"}'),
        ToolInputEnd("tool_1", '{"pattern":"*"}'),
        ReasoningStart("reasoning-1"),
        ReasoningEnd("reasoning-1", {"google": {"thoughtSignature": "ZW5k"}}),
        ToolCall(
            "f1",
            "read",
            {"path": "ä.txt"},
            metadata={"google": {"thoughtSignature": "Y2FsbA==", "id": "f1"}},
        ),
        ToolCall("tool_1", "glob", {"pattern": "*"}),
        Finish("tool-calls", Usage(input=70, output=30, reasoning=20, cache_read=30)),
    ]


@requirement("S161")
def test_what_the_provider_runs_itself_comes_with_its_result() -> None:
    text = codec.encode(CODE).decode()
    assert answered(HOSTED)[:4] == [
        ToolInputStart("tool_0", "code_execution"),
        ToolInputEnd("tool_0", text),
        ToolCall("tool_0", "code_execution", CODE, True, {"google": {"part": "executableCode"}}),
        HostedToolResult(
            "tool_0", ToolResult("json", RAN), {"google": {"part": "codeExecutionResult"}}
        ),
    ]


def test_a_hosted_failure_keeps_the_providers_own_words() -> None:
    failed = {"outcome": "OUTCOME_FAILED", "output": "NameError"}
    events = step_all([chunk({"executableCode": CODE}, {"codeExecutionResult": failed})])
    assert events[-1] == HostedToolResult(
        "tool_0",
        ToolResult("error", failed),
        {"google": {"part": "codeExecutionResult", "content": failed}},
    )


def test_a_hosted_result_counts_once_and_only_for_its_code() -> None:
    result: JsonObject = {"codeExecutionResult": RAN}
    events = step_all([chunk(result, {"executableCode": CODE}, result, result)])
    assert sum(isinstance(event, HostedToolResult) for event in events) == 1


@requirement("S197")
def test_the_signature_of_a_text_is_kept_right_after_it() -> None:
    events = answered([chunk(said("a", thoughtSignature="s")), chunk(said("b"), why="STOP")])
    assert events[:6] == [
        TextStart("text-0"),
        TextDelta("text-0", "a"),
        TextEnd("text-0"),
        ReasoningStart("reasoning-0"),
        ReasoningEnd("reasoning-0", {"google": {"thoughtSignature": "s"}}),
        TextStart("text-1"),
    ]


def test_a_model_that_says_in_every_chunk_why_it_stops_is_heard_to_the_end() -> None:
    events = answered([chunk(said("a"), why="STOP"), chunk(said("b"), why="STOP")])
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["a", "b"]
    assert sum(isinstance(event, TextStart) for event in events) == 1


@pytest.mark.parametrize("ids", [("a", "a"), ("", ""), ("tool_1", ""), ("", "tool_0")])
def test_ids_are_unique_within_an_answer(ids: tuple[str, str]) -> None:
    calls = [call("read", {}, id=given) for given in ids]
    events = answered([chunk(*calls, why="STOP")])
    made = [event.id for event in events if isinstance(event, ToolCall)]
    assert len(made) == len({*made}) == 2
    assert all(made)


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
    assert finished == Finish("tool-calls", COUNTED)


def test_an_empty_input_of_a_cut_answer_is_not_taken_for_a_call() -> None:
    *_, made, finished = answered([chunk(call("bash"), why="MAX_TOKENS")])
    assert isinstance(made, ToolInputInvalid)
    assert finished == Finish("length", COUNTED)


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content-filter"),
        ("RECITATION", "content-filter"),
        ("PROHIBITED_CONTENT", "content-filter"),
        ("BLOCKLIST", "content-filter"),
        ("SPII", "content-filter"),
        ("IMAGE_SAFETY", "content-filter"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("UNEXPECTED_TOOL_CALL", "error"),
        ("OTHER", "unknown"),
        ("SOMETHING_NEW", "unknown"),
    ],
)
def test_stop_reasons_have_one_vocabulary(wire: str, expected: str) -> None:
    (finish,) = answered([chunk(why=wire)])
    assert isinstance(finish, Finish)
    assert finish.reason == expected


def test_a_prompt_that_was_refused_is_an_answer_without_words() -> None:
    blocked: JsonObject = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {}}
    assert answered([codec.encode(blocked)]) == [Finish("content-filter")]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({}, COUNTED),
        ({"cachedContentTokenCount": 99}, Usage(cache_read=25, output=15)),
        ({"toolUsePromptTokenCount": 5}, Usage(input=30, output=15)),
        ({"thoughtsTokenCount": 7}, Usage(input=25, output=15, reasoning=7)),
        ({"candidatesTokenCount": None}, Usage(input=25)),
        ({"promptTokenCount": -4}, Usage(output=15)),
        ({"promptTokenCount": "many"}, None),
    ],
)
def test_counts_do_not_overlap_and_are_never_made_up(
    usage: JsonObject, expected: Usage | None
) -> None:
    assert answered([chunk(why="STOP", **usage)]) == [Finish("stop", expected)]


@pytest.mark.parametrize(
    ("code", "status", "message", "reason"),
    [
        (503, "UNAVAILABLE", "The model is overloaded.", "overload"),
        (500, "INTERNAL", "An internal error has occurred.", "provider-internal"),
        (504, "DEADLINE_EXCEEDED", "Deadline expired.", "provider-internal"),
        (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted.", "rate-limit"),
        (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", "quota-exceeded"),
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (9) exceeds the maximum number of tokens allowed (8).",
            "overflow",
        ),
        (400, "INVALID_ARGUMENT", "Request contains an invalid argument.", "invalid-request"),
        (403, "PERMISSION_DENIED", "no", "authentication"),
        (404, "NOT_FOUND", "no such model", "invalid-request"),
    ],
)
def test_an_error_inside_the_stream_ends_it(
    code: int, status: str, message: str, reason: Reason
) -> None:
    events = step_all([chunk(said("half")), error(code, status, message)])
    assert events[-2:] == [
        TextEnd("text-0"),
        ProviderError(message=f"{code} {status}: {message}", reason=reason),
    ]


SILENT: list[JsonObject] = [
    {},
    {"error": None},
    {"candidates": []},
    {"candidates": None},
    {"candidates": [{}]},
    {"candidates": [{"content": {}}]},
    {"candidates": [{"content": {"parts": [{}]}}]},
    {"candidates": [{"content": {"parts": [{"novelty": 1}]}, "groundingMetadata": {"a": 1}}]},
    {"candidates": [{"content": {"parts": [{"text": ""}, {"text": "", "thought": True}]}}]},
    {"promptFeedback": {}},
    {"new": {"stuff": [1]}},
]


@pytest.mark.parametrize("frame", SILENT)
def test_unknown_and_empty_chunks_say_nothing(frame: JsonObject) -> None:
    assert answered([codec.encode(frame), *TEXT]) == answered(TEXT)


def test_thinking_without_a_signature_has_nothing_to_send_back() -> None:
    events = answered([chunk(thought("hm"), why="MAX_TOKENS")])
    assert events[-2] == ReasoningEnd("reasoning-0")


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
        b'{"candidates":5}',
        b'{"candidates":[{"content":{"parts":[{"text":7}]}}]}',
        b'{"candidates":[{"content":{"parts":[{"text":"\xc3\x28"}]}}]}',
        b'{"candidates":[{"content":{"parts":[{"functionCall":{"args":{}}}]}}]}',
        b'{"candidates":[{"content":{"parts":[{"functionCall":{"name":"x","args":"\xff"}}]}}]}',
        b"[" * 100_000,
        b'{"x":' * 100_000,
        b'{"error":' + b"[" * 100_000,
    ],
    ids=range(15),
)
def test_junk_is_the_providers_fault(junk: bytes) -> None:
    with pytest.raises(LLMError) as failed:
        step_all([junk])
    assert failed.value.reason == "invalid-provider-output"


def test_a_stream_that_just_ends_is_incomplete() -> None:
    state = GEMINI.start()
    for frame in (chunk(said("half")), chunk(call("bash", {"command": "rm"}))):
        GEMINI.step(state, frame)
    with pytest.raises(LLMError, match="ended before it was complete") as failed:
        GEMINI.finish(state)
    assert failed.value.reason == "transport"
