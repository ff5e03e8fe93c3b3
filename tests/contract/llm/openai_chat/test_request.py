"""The whole body of an OpenAI Chat request, as a server receives it."""

import base64

import pytest
from msgspec.structs import replace

from perdure.llm import wire_protocol
from perdure.llm.kept_conversation import KeptConversation
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
    runs_of,
)
from perdure.llm.protocols.openai_chat import OPENAI_CHAT
from perdure.llm.request import GenerationControls, LLMRequest, ToolDefinition
from perdure.llm.wire_protocol import ModelFacts
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.model import ModelRef
from perdure.schema.tool import FileContent, TextContent
from tests.requirements import requirement

MODEL = ModelRef(id="m", provider_id="p")
PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()

UNREADABLE = "the model cannot read this type"


def message(role: Role, *parts: Part | str) -> LLMMessage:
    return LLMMessage(role, tuple(TextPart(p) if isinstance(p, str) else p for p in parts))


def encoded(request: LLMRequest) -> JsonObject:
    return codec.decode_any(
        b"".join(wire_protocol.encode(OPENAI_CHAT, request, ModelFacts(name="wire-model")))
    )


def messages_of(*messages: LLMMessage) -> JsonValue:
    return encoded(LLMRequest(model=MODEL, system=(), runs=runs_of(messages)))["messages"]


def test_a_small_request_has_nothing_that_was_not_asked_for() -> None:
    request = LLMRequest(
        model=MODEL, system=("Be brief.", "", "Be kind."), runs=runs_of((message("user", "hi"),))
    )
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
    request = LLMRequest(
        model=MODEL,
        system=(),
        runs=(),
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
    request = LLMRequest(
        model=MODEL,
        system=("s",),
        runs=(),
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
        message("tool", ToolResultPart("a", "read", ToolResult("text", "content"))),
        message("tool", ToolResultPart("b", "glob", ToolResult("error", {"error": "no"}))),
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
    calls, silent = messages_of(
        message("assistant", ToolCallPart("a", "read", {})), message("assistant")
    )
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
        message("tool", ToolResultPart("a", "read", ToolResult("content", content))),
        message("tool", ToolResultPart("b", "read", ToolResult("content", listed))),
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


@pytest.mark.parametrize("value", [None, 5, "x", [5], [{"type": "text", "text": 5}], {"a": [1]}])
def test_odd_tool_results_can_still_be_sent(value: JsonValue) -> None:
    *_, result = messages_of(
        message("assistant", ToolCallPart("a", "read", {})),
        message("tool", ToolResultPart("a", "read", ToolResult("content", value))),
    )
    assert isinstance(result["content"], str)


def test_a_growing_conversation_is_sent_as_if_it_were_encoded_anew() -> None:
    kept = KeptConversation()
    words = [message("user" if n % 2 else "assistant", f"{n} " + "x" * 900) for n in range(1, 200)]
    for length in range(1, len(words), 7):
        runs = runs_of(tuple(words[:length]))
        anew = LLMRequest(model=MODEL, system=(), runs=runs)
        assert encoded(replace(anew, kept=kept)) == encoded(anew)
