"""The whole body of an Anthropic Messages request, as the provider receives it."""

import base64

import pytest

from perdure.llm.encoding import wire_protocol
from perdure.llm.encoding.wire_protocol import ModelFacts
from perdure.llm.error import LLMError
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    ReasoningPart,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)
from perdure.llm.protocols.anthropic.request import ANTHROPIC_MESSAGES
from perdure.llm.request import GenerationControls, LLMRequest, ToolChoice, ToolDefinition
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.tool import FileContent, TextContent
from tests.contract.llm.conversations import asking, called, message, result_of, worked
from tests.contract.llm.protocols.anthropic.recordings import FOUND
from tests.contract.llm.protocols.anthropic.validator import faults
from tests.contract.llm.stored_histories import PDF, PDF_DATA, PNG, PNG_DATA
from tests.requirements import requirement

FACTS = ModelFacts(name="wire-model")
IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": PNG_DATA},
}
A, B = "toolu_01AAAAAAAAAAAAAAAAAAAA", "toolu_01BBBBBBBBBBBBBBBBBBBB"
HINT = {"type": "ephemeral"}
READ = ToolDefinition("read", "Reads.", {"type": "object", "properties": {"path": {}}})
SIGNED = {"anthropic": {"signature": "c2ln"}}


def encoded(request: LLMRequest, facts: ModelFacts = FACTS) -> JsonObject:
    raw = b"".join(wire_protocol.encode(ANTHROPIC_MESSAGES, request, facts))
    body = codec.decode_any(raw)
    assert faults(body, raw) == []
    return body


def messages_of(*messages: LLMMessage, facts: ModelFacts = FACTS) -> JsonValue:
    """The conversation of a request that goes on with a word of the user."""
    *earlier, last = encoded(asking(*messages, message("user", "go on")), facts)["messages"]
    assert last["content"][-1]["text"] == "go on"
    return [_unmarked(item) for item in earlier]


def _unmarked(item: JsonObject) -> JsonObject:
    blocks = [
        {name: value for name, value in block.items() if name != "cache_control"}
        for block in item["content"]
    ]
    return item | {"content": blocks}


def said(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def test_a_small_request_has_nothing_that_was_not_asked_for() -> None:
    request = asking(message("user", "hi"), system=("Be brief.", " ", "Be kind."))
    assert encoded(request) == {
        "model": "wire-model",
        "max_tokens": 4096,
        "stream": True,
        "system": [said("Be brief."), said("Be kind.") | {"cache_control": HINT}],
        "messages": [{"role": "user", "content": [said("hi") | {"cache_control": HINT}]}],
    }


@requirement("S17", "S18", "S92")
def test_controls_and_options_are_encoded_by_their_wire_names() -> None:
    controls = GenerationControls(
        max_tokens=9, temperature=0.0, top_p=0.5, top_k=4, seed=1, stop=("x", " ")
    )
    options = {
        "openai": {"promptCacheKey": "ses_1"},
        "anthropic": {"outputConfig": {"effort": "high"}, "service_tier": "auto"},
    }
    request = asking(
        message("user", "hi"),
        tools=(ToolDefinition("glob", "", {}), READ),
        tool_choice="required",
        generation=controls,
        options=options,
    )
    body = encoded(request)
    del body["messages"]
    assert body == {
        "model": "wire-model",
        "max_tokens": 9,
        "stream": True,
        "temperature": 0.0,
        "top_p": 0.5,
        "top_k": 4,
        "stop_sequences": ["x"],
        "output_config": {"effort": "high"},
        "service_tier": "auto",
        "tool_choice": {"type": "any"},
        "tools": [
            {"name": "glob", "description": "", "input_schema": {"type": "object"}},
            {
                "name": "read",
                "description": "Reads.",
                "input_schema": {"type": "object", "properties": {"path": {}}},
                "cache_control": HINT,
            },
        ],
    }


@pytest.mark.parametrize(
    ("choice", "expected"),
    [(None, None), ("auto", {"type": "auto"}), ("required", {"type": "any"})],
)
def test_tool_choices_have_the_providers_names(
    choice: ToolChoice | None, expected: JsonValue
) -> None:
    body = encoded(asking(message("user", "hi"), tools=(READ,), tool_choice=choice))
    assert body.get("tool_choice") == expected


def test_no_tools_are_offered_where_none_may_be_used() -> None:
    body = encoded(asking(message("user", "hi"), tools=(READ,), tool_choice="none"))
    assert body.keys() & {"tools", "tool_choice"} == set()


@pytest.mark.parametrize(("limit", "most"), [(0, 4096), (64_000, 64_000)])
def test_an_answer_may_be_as_long_as_the_model_can_write(limit: int, most: int) -> None:
    facts = ModelFacts(name="m", output_limit=limit)
    assert encoded(asking(message("user", "hi")), facts)["max_tokens"] == most


def test_a_tool_with_alternatives_is_offered_as_one_object() -> None:
    schema: JsonObject = {
        "anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {}}}, True],
        "properties": {"c": {}},
        "required": ["c"],
    }
    (tool,) = encoded(asking(message("user", "x"), tools=(ToolDefinition("t", "", schema),)))[
        "tools"
    ]
    assert tool["input_schema"] == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {}, "c": {}},
        "required": ["c"],
    }


def test_options_cannot_replace_what_the_protocol_writes() -> None:
    stolen: JsonObject = {
        "model": "x",
        "messages": [],
        "stream": False,
        "system": "x",
        "maxTokens": 1,
    }
    body = encoded(asking(message("user", "hi"), options={"anthropic": stolen}))
    assert (body["model"], body["stream"], body["max_tokens"]) == ("wire-model", True, 4096)
    assert len(body["messages"]) == 1
    assert "system" not in body


# ---- thinking -----------------------------------------------------------------------------------


def with_thinking(thinking: JsonValue, *messages: LLMMessage, **fields: JsonValue) -> JsonObject:
    controls = GenerationControls(max_tokens=fields.pop("most", 8000), temperature=0.3)
    given = messages or (message("user", "hi"),)
    options = {"anthropic": {"thinking": thinking}}
    return encoded(asking(*given, generation=controls, options=options, **fields))


def test_thinking_goes_without_the_controls_that_it_excludes() -> None:
    body = with_thinking({"type": "enabled", "budgetTokens": 2000})
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert "temperature" not in body
    assert with_thinking({"type": "adaptive"})["thinking"] == {"type": "adaptive"}


@pytest.mark.parametrize(("most", "budget"), [(2001, 2000), (2000, 1999), (1025, 1024)])
def test_a_thinking_budget_stays_below_the_answer(most: int, budget: int) -> None:
    body = with_thinking({"type": "enabled", "budget_tokens": 2000}, most=most)
    assert body["thinking"]["budget_tokens"] == budget


def test_thinking_is_left_out_where_it_would_be_refused() -> None:
    enabled = {"type": "enabled", "budgetTokens": 2000}
    assert "thinking" not in with_thinking(enabled, most=1024)
    assert "thinking" not in with_thinking(enabled, tools=(READ,), tool_choice="required")
    assert "thinking" not in with_thinking({"type": "disabled"})
    foreign = (called("c"), result_of("c", "x"))
    assert "thinking" not in with_thinking(enabled, message("user", "hi"), *foreign)
    own = message("assistant", ReasoningPart("hm", SIGNED), ToolCallPart(A, "read", {}))
    assert "thinking" in with_thinking(enabled, message("user", "hi"), own, result_of(A, "x"))
    # An answer before it, of a turn that failed, makes it one turn that begins with text.
    lost = (message("user", "hi"), message("assistant", "half"), own, result_of(A, "x"))
    assert "thinking" not in with_thinking(enabled, *lost)
    assert "thinking" in with_thinking(enabled, *lost, message("assistant", "Done."), lost[0])


@pytest.mark.parametrize("budget", [{}, {"budgetTokens": 9}, {"budgetTokens": "many"}])
def test_thinking_without_a_budget_is_refused_before_it_is_sent(budget: JsonObject) -> None:
    with pytest.raises(LLMError, match="budgetTokens") as failed:
        with_thinking({"type": "enabled"} | budget)
    assert failed.value.reason == "invalid-request"


# ---- the conversation ---------------------------------------------------------------------------


@requirement("S161", "S197")
def test_a_turn_with_tools_goes_back_as_it_came() -> None:
    turn = worked(
        ReasoningPart("hm", SIGNED),
        ReasoningPart("", {"anthropic": {"redactedData": "RW1"}}),
        read=ToolCallPart(A, "read", {"path": "ä"}),
        glob=ToolCallPart(B, "glob", {}),
    )
    assert messages_of(*turn) == [
        {"role": "user", "content": [said("go")]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "RW1"},
                said("Look: "),
                {"type": "tool_use", "id": A, "name": "read", "input": {"path": "ä"}},
                {"type": "tool_use", "id": B, "name": "glob", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": A, "content": "content"},
                {
                    "type": "tool_result",
                    "tool_use_id": B,
                    "content": '{"error":"no"}',
                    "is_error": True,
                },
            ],
        },
    ]


@requirement("S161")
def test_what_the_provider_ran_itself_goes_back_with_its_result() -> None:
    native = {"anthropic": {"type": "web_search_tool_result"}}
    found = ToolResult("json", {"type": "json", "value": FOUND})
    answer = message(
        "assistant",
        ToolCallPart("srvtoolu_1", "web_search", {"query": "x"}, provider_executed=True),
        ToolResultPart("srvtoolu_1", "web_search", found, True, native),
        "Found.",
    )
    (item,) = messages_of(answer)[1:]
    assert item["content"] == [
        {
            "type": "server_tool_use",
            "id": "srvtoolu_1",
            "name": "web_search",
            "input": {"query": "x"},
        },
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": FOUND},
        said("Found."),
    ]


def test_a_hosted_failure_goes_back_in_the_providers_own_words() -> None:
    content = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
    native = {"anthropic": {"type": "web_search_tool_result", "content": content}}
    answer = message(
        "assistant",
        ToolCallPart("srvtoolu_1", "web_search", {}, provider_executed=True),
        ToolResultPart("srvtoolu_1", "web_search", ToolResult("error", "no"), True, native),
    )
    assert messages_of(answer)[1]["content"][1] == {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": content,
    }


@pytest.mark.parametrize(
    ("id", "metadata"),
    [
        ("srvtoolu_1", None),
        ("srvtoolu_1", {"openai": {"itemId": "ws_1"}}),
        ("srvtoolu_1", {"anthropic": {"type": "server_tool_use"}}),
        ("ws_1", {"anthropic": {"type": "web_search_tool_result"}}),
    ],
)
def test_what_another_provider_ran_is_left_out(id: str, metadata: JsonValue) -> None:
    answer = message(
        "assistant",
        ToolCallPart(id, "web_search", {}, provider_executed=True),
        ToolResultPart(id, "web_search", ToolResult("json", {}), True, metadata),
        "Found.",
    )
    assert messages_of(answer)[1:] == [{"role": "assistant", "content": [said("Found.")]}]


def test_calls_of_other_models_get_ids_that_are_unique_in_the_conversation() -> None:
    turns = [
        turn
        for n in range(3)
        for turn in (
            message("assistant", ToolCallPart("call.0", "functions.read/x", {"n": n})),
            result_of("call.0", "same"),
        )
    ]
    sent = messages_of(message("user", "go"), *turns)
    calls = [item["content"][0] for item in sent if item["role"] == "assistant"]
    assert len({call["id"] for call in calls}) == 3
    assert {call["name"] for call in calls} == {"functions_read_x"}


def test_thinking_that_cannot_be_proven_is_text_and_never_the_end() -> None:
    unsigned = message("assistant", ReasoningPart("half a thought"))
    assert messages_of(unsigned)[1]["content"] == [said("half a thought")]
    alone = message("assistant", ReasoningPart("hm", SIGNED))
    assert messages_of(alone)[1]["content"] == [said("(empty answer)")]
    after = message("assistant", "Hm. \n", ReasoningPart("hm", SIGNED))
    assert messages_of(after)[1]["content"] == [said("Hm.")]


def test_a_conversation_that_begins_with_an_answer_gets_a_beginning() -> None:
    first, answer = messages_of(message("assistant", "I am done."))
    assert first["role"] == "user"
    assert answer == {"role": "assistant", "content": [said("I am done.")]}
    assert encoded(asking())["messages"][0]["role"] == "user"


def test_an_empty_message_is_told_as_one() -> None:
    assert encoded(asking(message("user", " \n")))["messages"][0]["content"][0]["text"].strip()


@requirement("S64")
def test_a_system_update_is_wrapped_user_text_at_its_place() -> None:
    update = said("<system-update>\n&lt;b&gt; &amp; more\n</system-update>")
    assert messages_of(
        message("user", "one"),
        message("system", "<b> & more"),
        message("user", "two"),
        message("assistant", "ok"),
        message("system", "<b> & more"),
        message("user", "three"),
        message("assistant", "ok"),
    ) == [
        {"role": "user", "content": [said("one"), update, said("two")]},
        {"role": "assistant", "content": [said("ok")]},
        {"role": "user", "content": [update, said("three")]},
        {"role": "assistant", "content": [said("ok")]},
    ]


@requirement("S64")
def test_a_model_with_a_system_role_gets_updates_natively_where_it_takes_them() -> None:
    facts = ModelFacts(name="m", system_role=True)
    wrapped = said("<system-update>\nw\n</system-update>")
    assert messages_of(
        message("user", "one"),
        message("system", "w"),
        message("user", "two"),
        message("system", "<a>"),
        message("system", "b"),
        called(A),
        result_of(A, "x"),
        message("system", "w"),
        message("assistant", "ok"),
        facts=facts,
    ) == [
        {"role": "user", "content": [said("one"), wrapped, said("two")]},
        {"role": "system", "content": [said("<a>"), said("b")]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": A, "name": "read", "input": {}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": A, "content": "x"}],
        },
        {"role": "user", "content": [wrapped]},
        {"role": "assistant", "content": [said("ok")]},
    ]


# ---- attachments and results --------------------------------------------------------------------


def test_images_go_along_with_the_prompt_and_with_results() -> None:
    content = (TextContent("a picture"), FileContent(uri=PNG, mime="image/png"))
    user, _, results = messages_of(
        message("user", "see", MediaPart("image/png", PNG)),
        called(A),
        result_of(A, content, "content"),
    )
    assert user["content"] == [said("see"), IMAGE]
    assert results["content"] == [
        {"type": "tool_result", "tool_use_id": A, "content": [said("a picture"), IMAGE]}
    ]


def test_documents_go_along_with_the_prompt_and_with_results() -> None:
    pdf = "application/pdf"
    user, _, results = messages_of(
        message("user", "see", MediaPart(pdf, PDF)),
        called(A, "webfetch"),
        result_of(A, (TextContent("a paper"), FileContent(uri=PDF, mime=pdf)), "content"),
    )
    source = {"type": "base64", "media_type": pdf, "data": PDF_DATA}
    document = {"type": "document", "source": source}
    assert user["content"] == [said("see"), document]
    assert results["content"][0]["content"] == [said("a paper"), document]


def test_an_image_may_be_fetched_by_the_provider() -> None:
    media = MediaPart("image/png", "https://example.org/a.png")
    source = {"type": "url", "url": "https://example.org/a.png"}
    (item,) = messages_of(message("user", media), message("assistant", "ok"))[:1]
    assert item["content"] == [{"type": "image", "source": source}]


HUGE = "data:image/png;base64," + base64.b64encode(b"\x89PNG" + b"\0" * 4_000_000).decode()


@pytest.mark.parametrize(
    ("media", "told"),
    [
        (MediaPart("image/png", HUGE, "big\n.png"), "big .png: it is too large"),
        (MediaPart("image/png", "data:image/png;base64,AAAA"), "it is not an image"),
        (MediaPart("image/png", "http://example.org/a.png"), "only from https"),
        (MediaPart("image/png", "file:///etc/passwd"), "not available here"),
        (MediaPart("application/pdf", "data:application/pdf;base64,AAAA"), "cannot read this type"),
        (MediaPart("text/plain", "data:text/plain,hi%20there"), "hi there"),
    ],
)
def test_no_attachment_poisons_a_session(media: MediaPart, told: str) -> None:
    content = encoded(asking(message("user", "look", media)))["messages"][0]["content"]
    assert [block["type"] for block in content] == ["text", "text"]
    assert told in content[1]["text"]


def test_an_image_is_named_by_what_it_is() -> None:
    data = base64.b64encode(b"\xff\xd8\xff\xe0" + b"\0" * 12).decode()
    media = MediaPart("image/png", f"data:image/png;base64,{data}")
    content = encoded(asking(message("user", "look", media)))["messages"][0]["content"]
    assert content[1]["source"]["media_type"] == "image/jpeg"


def test_a_call_without_a_result_is_answered_and_a_result_without_a_call_is_not_sent() -> None:
    first, _, results = messages_of(called(A), result_of(B, "x"))
    assert first["role"] == "user"
    (only,) = results["content"]
    assert (only["tool_use_id"], only["is_error"]) == (A, True)


def marked_blocks(*messages: LLMMessage, **fields: JsonValue) -> list[JsonObject]:
    """The blocks of the conversation that end what the provider keeps, as they are without it."""
    body = encoded(asking(*messages, system=("a", "b"), tools=(READ,), **fields))
    assert body["system"][-1]["cache_control"] == body["tools"][-1]["cache_control"]
    blocks = [block for item in body["messages"] for block in item["content"]]
    return [
        {name: value for name, value in block.items() if name != "cache_control"}
        for block in blocks
        if "cache_control" in block
    ]


def test_in_a_loop_of_tools_the_last_results_of_this_request_and_the_last_are_marked() -> None:
    first = (message("user", "two", MediaPart("image/png", PNG)), called(A), result_of(A, "x"))
    result: JsonObject = {"type": "tool_result", "tool_use_id": A, "content": "x"}
    assert marked_blocks(*first) == [IMAGE, result]
    assert marked_blocks(*first, called(B), result_of(B, "y")) == [
        result,
        {"type": "tool_result", "tool_use_id": B, "content": "y"},
    ]


def test_after_an_answer_the_prompt_before_and_the_prompt_now_are_marked() -> None:
    assert marked_blocks(message("user", "one")) == [said("one")]
    spoken = (message("user", "one"), message("assistant", "ok"), message("user", "two"))
    assert marked_blocks(*spoken) == [said("one"), said("two")]


def test_what_is_marked_is_kept_for_an_hour_if_configured() -> None:
    body = encoded(
        asking(message("user", "hi"), options={"anthropic": {"cacheTtl": "1h"}}, system=("a",))
    )
    hour = {"type": "ephemeral", "ttl": "1h"}
    assert body["messages"][0]["content"][0]["cache_control"] == hour
    assert body["system"][0]["cache_control"] == hour
    assert "cache_ttl" not in body
    with pytest.raises(LLMError, match="cacheTtl"):
        encoded(asking(message("user", "hi"), options={"anthropic": {"cacheTtl": "2h"}}))
