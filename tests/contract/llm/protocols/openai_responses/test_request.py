"""The whole body of an OpenAI Responses request, as the provider receives it."""

import base64

import pytest

from perdure.llm.encoding import wire_protocol
from perdure.llm.encoding.wire_protocol import ModelFacts
from perdure.llm.error import LLMError
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)
from perdure.llm.protocols.openai_responses.content import TEXT_CHARS_MAX
from perdure.llm.protocols.openai_responses.request import AZURE_RESPONSES, OPENAI_RESPONSES
from perdure.llm.request import GenerationControls, LLMRequest, ToolDefinition
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.tool import FileContent, ProviderMetadata, TextContent
from tests.contract.llm.conversations import asking, called, message, result_of
from tests.contract.llm.protocols.openai_responses import validator
from tests.contract.llm.protocols.openai_responses.recordings import SEARCH
from tests.requirements import requirement

PLAIN = ModelFacts(name="gpt-4.1")
PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()


def encoded(request: LLMRequest, facts: ModelFacts = PLAIN) -> JsonObject:
    body = codec.decode_any(b"".join(wire_protocol.encode(OPENAI_RESPONSES, request, facts)))
    assert validator.faults(body) == []
    return body


def asked(facts: ModelFacts = PLAIN, **options: JsonValue) -> JsonObject:
    """The body of a request with these Model Request Options."""
    return encoded(asking(message("user", "hi"), options={"openai": options}), facts)


def input_of(*messages: LLMMessage, facts: ModelFacts = PLAIN) -> JsonValue:
    return encoded(asking(*messages), facts)["input"]


def native(id: str, **more: JsonValue) -> ProviderMetadata:
    return {"openai": {"itemId": id} | more}


def said(text: str) -> JsonObject:
    return {"role": "assistant", "content": [{"type": "output_text", "text": text}]}


def test_a_small_request_has_nothing_that_was_not_asked_for() -> None:
    request = asking(message("user", "hi"), system=("Be brief.", "", "Be kind."))
    assert encoded(request) == {
        "model": "gpt-4.1",
        "stream": True,
        "store": False,
        "input": [
            {"role": "system", "content": "Be brief.\nBe kind."},
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        ],
    }


def test_the_address_is_that_of_openai_or_of_an_azure_resource() -> None:
    assert OPENAI_RESPONSES.path("m") == "/responses"
    assert AZURE_RESPONSES.path("m") == "/v1/responses?api-version=v1"


@requirement("S17", "S18", "S92")
def test_controls_and_options_are_encoded_by_their_wire_names() -> None:
    request = asking(
        message("user", "hi"),
        tools=(ToolDefinition("read", "Reads.", {"type": "object", "properties": {}}),),
        tool_choice="required",
        generation=GenerationControls(
            max_tokens=9, temperature=0.0, top_p=0.5, top_k=4, seed=1, stop=("x",)
        ),
        options={
            "openai": {
                "promptCacheKey": "ses_1",
                "reasoningEffort": "high",
                "reasoningSummary": "auto",
                "textVerbosity": "low",
                "serviceTier": "flex",
                "instructions": "Be kind.",
                "include": ["file_search_call.results", "nonsense", 5],
                "input": ["not an option"],
            },
            "openai_compatible": {"reasoningEffort": "low"},
        },
    )
    body = encoded(request)
    body.pop("input")
    assert body == {
        "model": "gpt-4.1",
        "stream": True,
        "store": False,
        "prompt_cache_key": "ses_1",
        "service_tier": "flex",
        "instructions": "Be kind.",
        "reasoning": {"effort": "high", "summary": "auto"},
        "include": ["file_search_call.results", "reasoning.encrypted_content"],
        "text": {"verbosity": "low"},
        "tools": [
            {
                "type": "function",
                "name": "read",
                "description": "Reads.",
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            }
        ],
        "tool_choice": "required",
        "max_output_tokens": 16,
        "temperature": 0.0,
        "top_p": 0.5,
    }


@pytest.mark.parametrize(
    ("name", "sealed"),
    [("gpt-5", True), ("o4-mini", True), ("openai/gpt-5.1-codex", True), ("codex-mini", True),
     ("gpt-5-chat-latest", False), ("gpt-4o", False), ("my-deployment", False)],
)  # fmt: skip
def test_sealed_reasoning_is_asked_only_of_models_that_reason(name: str, sealed: bool) -> None:
    assert ("include" in asked(ModelFacts(name=name))) == sealed
    assert "include" not in asked(ModelFacts(name=name), store=True)


@pytest.mark.parametrize("include", [[], ["nonsense"], "all", None])
def test_a_list_of_nothing_known_is_not_sent(include: JsonValue) -> None:
    assert "include" not in asked(include=include)


def test_an_effort_that_openai_does_not_have_is_refused_before_sending() -> None:
    with pytest.raises(LLMError, match="max") as refused:
        asked(reasoningEffort="max")
    assert refused.value.reason == "invalid-request"


@requirement("S161", "S197")
def test_an_answer_goes_back_in_its_order_with_its_reasoning_sealed() -> None:
    assert input_of(
        message("user", "go"),
        message(
            "assistant",
            ReasoningPart("First.", native("rs_1")),
            ReasoningPart("Then.", native("rs_1", reasoningEncryptedContent="sealed")),
            "Look: ",
            "here",
            ToolCallPart("a", "read", {"path": "ä"}, metadata=native("fc_a")),
            "and",
            ToolCallPart("b", "glob", {}),
        ),
        result_of("a", "content"),
        result_of("b", {"error": "no"}, "error"),
    ) == [
        {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {
            "type": "reasoning",
            "summary": [
                {"type": "summary_text", "text": "First."},
                {"type": "summary_text", "text": "Then."},
            ],
            "encrypted_content": "sealed",
        },
        {
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "Look: "},
                {"type": "output_text", "text": "here"},
            ],
        },
        {"type": "function_call", "call_id": "a", "name": "read", "arguments": '{"path":"ä"}'},
        said("and"),
        {"type": "function_call", "call_id": "b", "name": "glob", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "content"},
        {"type": "function_call_output", "call_id": "b", "output": '{"error":"no"}'},
    ]


@requirement("S198")
def test_stored_items_are_referred_to_once() -> None:
    kept = ToolResult("json", {"type": "json", "value": SEARCH})
    assert input_of(
        message(
            "assistant",
            ReasoningPart("one", native("rs_1", stored=True)),
            ReasoningPart("two", native("rs_1", stored=True)),
            ToolCallPart("ws_1", "web_search", {}, True, native("ws_1", stored=True)),
            ToolResultPart("ws_1", "web_search", kept, True, native("ws_1", stored=True)),
            "found",
            ToolCallPart("a", "read", {}, metadata=native("fc_a", stored=True)),
        ),
        result_of("a", "x"),
    ) == [
        {"type": "item_reference", "id": "rs_1"},
        {"type": "item_reference", "id": "ws_1"},
        said("found"),
        {
            "type": "function_call",
            "id": "fc_a",
            "call_id": "a",
            "name": "read",
            "arguments": "{}",
        },
        {"type": "function_call_output", "call_id": "a", "output": "x"},
    ]


def test_hosted_items_that_were_not_stored_are_sent_again() -> None:
    kept = ToolResult("json", {"type": "json", "value": SEARCH})
    assert input_of(
        message(
            "assistant",
            ToolCallPart("ws_1", "web_search", {}, True, native("ws_1")),
            ToolResultPart("ws_1", "web_search", kept, True, native("ws_1")),
            "found",
        )
    ) == [SEARCH, said("found")]


@pytest.mark.parametrize(
    "part",
    [
        ReasoningPart("open", native("rs_1")),
        ReasoningPart("foreign", {"anthropic": {"signature": "s"}}),
        ReasoningPart("odd", {"openai": {"itemId": 5}}),
        ReasoningPart("last", native("rs_1", reasoningEncryptedContent="sealed")),
        ReasoningPart("last", native("rs_1", stored=True)),
        ToolResultPart("w", "web_search", ToolResult("json", {}), True, native("ws_1")),
        ToolResultPart("w", "web_search", ToolResult("json", SEARCH), True, native("ws_2")),
        ToolResultPart("w", "web_search", ToolResult("json", SEARCH), True),
    ],
)
def test_what_the_provider_would_refuse_is_left_out(part: Part) -> None:
    assert input_of(message("assistant", "a", part)) == [said("a")]


UPDATE: JsonObject = {
    "type": "input_text",
    "text": "<system-update>\n&lt;b&gt; &amp; more\n</system-update>",
}


@requirement("S64")
def test_a_system_update_is_wrapped_user_text_at_its_place() -> None:
    assert input_of(
        message("user", "one"),
        message("system", "<b> & more"),
        message("assistant", "ok"),
        message("system", "<b> & more"),
        message("user", "two"),
    ) == [
        {"role": "user", "content": [{"type": "input_text", "text": "one"}, UPDATE]},
        said("ok"),
        {"role": "user", "content": [UPDATE]},
        {"role": "user", "content": [{"type": "input_text", "text": "two"}]},
    ]


@requirement("S64")
def test_a_model_with_a_system_role_is_told_through_it() -> None:
    facts = ModelFacts(name="m", system_role=True)
    assert input_of(message("user", "one"), message("system", "<b>"), facts=facts)[1] == {
        "role": "system",
        "content": [{"type": "input_text", "text": "<b>"}],
    }


def test_images_go_along_with_prompts_and_results() -> None:
    image = {"type": "input_image", "image_url": PNG}
    content = codec.to_json_value(
        (TextContent("a picture"), FileContent(uri=PNG, mime="image/png"))
    )
    user, _, result = input_of(
        message("user", "see", MediaPart("image/png", PNG)),
        called("a"),
        result_of("a", content, "content"),
    )
    assert user["content"] == [{"type": "input_text", "text": "see"}, image]
    assert result["output"] == [{"type": "input_text", "text": "a picture"}, image]


def test_documents_go_along_with_prompts_and_results() -> None:
    uri, pdf = f"data:application/pdf;base64,{_base64(b'%PDF-1.7')}", "application/pdf"
    parts = [TextPart("a paper"), MediaPart(pdf, uri, "a\nb.pdf")]
    user, _, result = input_of(
        message("user", "see", MediaPart(pdf, uri)),
        called("a", "webfetch"),
        result_of("a", parts, "content"),
    )
    document = {"type": "input_file", "filename": "document.pdf", "file_data": uri}
    assert user["content"][1] == document
    assert result["output"][1] == {**document, "filename": "a b.pdf"}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_our_own_parts_in_a_result_are_read_like_stored_ones() -> None:
    parts = [TextPart("a picture"), MediaPart("image/png", PNG)]
    *_, result = input_of(
        called("a"),
        result_of("a", parts, "content"),
    )
    assert [part["type"] for part in result["output"]] == ["input_text", "input_image"]


def test_a_text_longer_than_the_api_takes_is_sent_in_pieces() -> None:
    long = "x" * (TEXT_CHARS_MAX + 1)
    user, _, result = input_of(
        message("user", long),
        called("a"),
        result_of("a", long),
    )
    for content in (user["content"], result["output"]):
        assert "".join(part["text"] for part in content) == long


def test_an_id_or_name_of_another_provider_is_made_to_fit() -> None:
    ids = ["i" * 200, "i" * 201, ""]
    calls = [ToolCallPart(each, "sören's tool" + "n" * 90, {}) for each in ids]
    results = [ToolResultPart(each, "x", ToolResult("text", "")) for each in ids]
    items = input_of(message("assistant", *calls), *(message("tool", r) for r in results))
    sent = [item["call_id"] for item in items]
    assert sent[:3] == sent[3:]
    assert len({*sent}) == 3


def test_an_empty_prompt_still_makes_a_request() -> None:
    assert input_of(message("user", ""))[0]["content"][0]["text"] == "(The message is empty.)"
