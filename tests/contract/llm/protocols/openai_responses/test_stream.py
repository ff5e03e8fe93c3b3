"""Recorded streams in, events out: what only an OpenAI Responses answer says."""

import pytest

from perdure.llm.event import (
    Finish,
    HostedToolResult,
    LLMEvent,
    ProviderError,
    ReasoningEnd,
    TextStart,
    ToolCall,
    ToolInputEnd,
)
from perdure.llm.message import ToolResult
from perdure.schema.codec import JsonObject
from tests.contract.llm.protocols.openai_responses.recordings import (
    COMPACTION,
    RECORDINGS,
    SEARCH,
    call,
    completed,
    created,
    done,
    event,
    hosted,
    message,
    reasoning,
    step_all,
)
from tests.contract.llm.protocols.openai_responses.wire import TOKENS, native
from tests.contract.llm.wire import spoken, thought
from tests.requirements import requirement

DONE = completed(None)


def kept(events: list[LLMEvent], *kinds: type[LLMEvent]) -> list[LLMEvent]:
    return [made for made in events if isinstance(made, kinds)]


def test_text_that_was_never_streamed_is_said_when_its_item_is_done() -> None:
    content = [{"type": "output_text", "text": "whole"}]
    events = step_all([done(0, "message", "msg_1", content=content), completed()])
    assert events == [*spoken("msg_1", "whole"), Finish("stop", TOKENS)]


def test_a_refusal_is_told_as_text_and_ends_the_answer_as_filtered() -> None:
    assert step_all(RECORDINGS["refusal"]) == [
        *spoken("msg_1", "I can", "not."),
        Finish("content-filter", TOKENS),
    ]


def test_a_refusal_counts_from_its_first_words_on() -> None:
    frames = message(0, "I can", kind="refusal")[:3]
    assert step_all([*frames, completed()])[-1] == Finish("content-filter", TOKENS)


@requirement("S161")
def test_reasoning_that_is_not_shown_can_still_be_sent_back() -> None:
    events = step_all([created(), *reasoning(0), *message(1, "a"), DONE])
    sealed = native("rs_1", reasoningEncryptedContent="sealed")
    assert events[:2] == thought("rs_1:0", known=sealed, kept=sealed)


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
    assert step_all(frames) == [*thought("reasoning-0:0", "hm"), Finish("stop")]


def test_final_arguments_win_over_streamed_ones() -> None:
    events = step_all([*call(0, "read", '{"n":1', final='{"n":2}'), DONE])
    assert kept(events, ToolInputEnd, ToolCall) == [
        ToolInputEnd("call_a", '{"n":2}'),
        ToolCall("call_a", "read", {"n": 2}, metadata=native("fc_a")),
    ]


def test_ids_are_unique_within_an_answer() -> None:
    frames = [*call(0, "read", "{}"), *call(1, "read", "{}"), *message(2, "x"), *message(3, "y")]
    events = step_all([*frames, DONE])
    calls = [made.id for made in events if isinstance(made, ToolCall)]
    texts = [made.id for made in events if isinstance(made, TextStart)]
    assert (len({*calls}), len({*texts})) == (2, 2)


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
        (
            {
                "type": "mcp_list_tools",
                "id": "mcpl_1",
                "server_label": "d",
                "tools": [{"name": "r"}],
            },
            "mcp_list_tools",
            {"server_label": "d"},
        ),
        (COMPACTION, "compaction", {}),
        (
            {"type": "tool_search_call", "id": "tsc_1", "arguments": {"goal": "x"}},
            "tool_search",
            {"arguments": {"goal": "x"}},
        ),
        (
            {"type": "tool_search_output", "id": "tso_1", "tools": [{"name": "r"}]},
            "tool_search_output",
            {},
        ),
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


def test_nothing_is_heard_after_an_error() -> None:
    assert step_all([*RECORDINGS["error"], *message(1, "late"), DONE]) == [
        ProviderError(message="rate_limit_exceeded: Slow down", reason="rate-limit")
    ]
