"""The whole body of an OpenAI Chat request, as a server receives it."""

import base64

import pytest

from perdure.llm.encoding import wire_protocol
from perdure.llm.encoding.wire_protocol import ModelFacts
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    ReasoningPart,
    ToolCallPart,
)
from perdure.llm.protocols.openai_chat.request import OPENAI_CHAT
from perdure.llm.request import GenerationControls, LLMRequest, ToolDefinition
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.tool import FileContent, TextContent
from tests.contract.llm.conversations import asking, called, message, result_of
from tests.requirements import requirement

PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()

UNREADABLE = "the model cannot read this type"


def encoded(request: LLMRequest) -> JsonObject:
    return codec.decode_any(
        b"".join(wire_protocol.encode(OPENAI_CHAT, request, ModelFacts(name="wire-model")))
    )


def messages_of(*messages: LLMMessage) -> JsonValue:
    return encoded(asking(*messages))["messages"]


def test_a_small_request_has_nothing_that_was_not_asked_for() -> None:
    request = asking(message("user", "hi"), system=("Be brief.", "", "Be kind."))
    assert encoded(request) == {
        "model": "wire-model",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [
            {"role": "system", "content": "Be brief.\n\nBe kind."},
            {"role": "user", "content": "hi"},
        ],
    }


@requirement("S17", "S92")
def test_controls_and_options_are_encoded_by_their_wire_names() -> None:
    request = asking(
        tools=(ToolDefinition("read", "Reads.", {"type": "object"}),),
        tool_choice="required",
        generation=GenerationControls(max_tokens=9, temperature=0.0, top_k=4, stop=("x",)),
        options={
            "openai": {"promptCacheKey": "ses_1", "store": True},
            "openai_compatible": {"reasoningEffort": "high", "chat_template_kwargs": {"a": 1}},
        },
    )
    body = encoded(request)
    assert body["tools"] == [
        {
            "type": "function",
            "function": {"name": "read", "description": "Reads.", "parameters": {"type": "object"}},
        }
    ]
    expected = {
        "tool_choice": "required",
        "max_tokens": 9,
        "temperature": 0.0,
        "top_k": 4,
        "stop": ["x"],
        "prompt_cache_key": "ses_1",
        "reasoning_effort": "high",
        "chat_template_kwargs": {"a": 1},
    }
    assert body | expected == body
    assert "store" not in body


def test_options_cannot_replace_the_model_or_the_conversation() -> None:
    request = asking(
        system=("s",),
        options={"openai_compatible": {"model": "other", "messages": [], "stream": False}},
    )
    body = encoded(request)
    assert (body["model"], body["stream"], len(body["messages"])) == ("wire-model", True, 1)


@requirement("S197")
def test_a_turn_with_tools_goes_back_as_it_came() -> None:
    assert messages_of(
        message("user", "go"),
        message(
            "assistant",
            ReasoningPart("hm"),
            "Look: ",
            ToolCallPart("a", "read", {"path": "ä"}),
            ToolCallPart("b", "glob", {}),
            ToolCallPart("h", "web_search", {}, provider_executed=True),
        ),
        result_of("a", "content"),
        result_of("b", {"error": "no"}, "error", name="glob"),
    ) == [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "Look: ",
            "reasoning_content": "hm",
            "tool_calls": [
                {
                    "id": "a",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"path":"ä"}'},
                },
                {"id": "b", "type": "function", "function": {"name": "glob", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "content"},
        {"role": "tool", "tool_call_id": "b", "content": '{"error":"no"}'},
    ]


def test_an_assistant_without_text_has_null_content_only_beside_calls() -> None:
    calls, silent = messages_of(called("a"), message("assistant"))
    assert calls["content"] is None
    assert silent["content"] == ""


@requirement("S64")
def test_a_system_update_is_wrapped_user_text_at_its_place() -> None:
    update = "<system-update>\n&lt;b&gt; &amp; more\n</system-update>"
    assert messages_of(
        message("user", "one"),
        message("system", "<b> & more"),
        message("assistant", "ok"),
        message("system", "<b> & more"),
        message("user", "two"),
    ) == [
        {"role": "user", "content": f"one\n\n{update}"},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": update},
        {"role": "user", "content": "two"},
    ]


def test_images_go_along_with_the_prompt() -> None:
    assert messages_of(message("user", "see", MediaPart("image/png", PNG))) == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": PNG}},
            ],
        }
    ]


def test_images_of_tool_results_follow_in_one_user_message() -> None:
    content = (TextContent("a picture"), FileContent(uri=PNG, mime="image/png"))
    listed = codec.to_json_value(content)
    *tools, images = messages_of(
        message("assistant", ToolCallPart("a", "read", {}), ToolCallPart("b", "read", {})),
        result_of("a", content, "content"),
        result_of("b", listed, "content"),
    )
    assert [item["content"] for item in tools[1:]] == ["a picture", "a picture"]
    assert images["role"] == "user"
    assert [part["type"] for part in images["content"]] == ["text", "image_url", "image_url"]


@pytest.mark.parametrize(
    ("media", "content"),
    [
        (MediaPart("text/plain", "data:text/plain,hi%20there"), "look\n\nhi there"),
        (
            MediaPart("application/json", "data:application/json;base64,e30=", "a.json"),
            "look\n\nAttached file a.json:\n{}",
        ),
        (
            MediaPart("application/pdf", "data:application/pdf;base64,AAAA", "a.pdf"),
            f"look\n\n[Attachment left out: a.pdf (application/pdf): {UNREADABLE}]",
        ),
        (
            MediaPart("image/png", "file:///etc/passwd"),
            "look\n\n[Attachment left out: a file (image/png): its content is not available here]",
        ),
    ],
)
def test_no_attachment_poisons_a_session(media: MediaPart, content: str) -> None:
    assert messages_of(message("user", "look", media)) == [{"role": "user", "content": content}]
