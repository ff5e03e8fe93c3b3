"""The whole body of an OpenAI Chat request, as a server receives it."""

import base64
import re

import pytest

from perdure.llm.encoding import wire_protocol
from perdure.llm.encoding.chat_dialect import DEFAULT_DIALECT, ChatDialect, ReasoningForm
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
from tests.contract.llm.stored_histories import PDF
from tests.requirements import requirement

PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()

UNREADABLE = "the model cannot read this type"


def encoded(request: LLMRequest, dialect: ChatDialect = DEFAULT_DIALECT) -> JsonObject:
    facts = ModelFacts(name="wire-model", dialect=dialect)
    return codec.decode_any(b"".join(wire_protocol.encode(OPENAI_CHAT, request, facts)))


def messages_of(*messages: LLMMessage, dialect: ChatDialect = DEFAULT_DIALECT) -> JsonValue:
    return encoded(asking(*messages), dialect)["messages"]


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
    body = encoded(request, ChatDialect(accepts=frozenset({"prompt_cache_key"})))
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
    assert body.keys() & {"store", "stream_options"} == set()
    assert "prompt_cache_key" not in encoded(request)


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


THOUGHT = ReasoningPart("hm")
SAID = {"role": "assistant", "content": "ok"}
DETAILS = [
    {"type": "reasoning.text", "text": "hm", "signature": "c2ln", "index": 0},
    {"type": "reasoning.encrypted", "data": "RW1", "id": "call_1", "index": 1},
]


@pytest.mark.parametrize(
    ("form", "fields"),
    [
        ("as_received", {"reasoning_content": "hm"}),
        ("reasoning_content", {"reasoning_content": "hm"}),
        ("reasoning", {"reasoning": "hm"}),
        ("think_text", {"content": "<think>\nhm\n</think>\nok"}),
        (
            "thinking_parts",
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                    {"type": "text", "text": "ok"},
                ]
            },
        ),
        ("reasoning_details", {}),
        ("none", {}),
    ],
)
def test_reasoning_goes_back_in_the_providers_form(form: ReasoningForm, fields: JsonObject) -> None:
    spoken = message("assistant", THOUGHT, "ok")
    assert messages_of(spoken, dialect=ChatDialect(reasoning=form)) == [SAID | fields]


def test_reasoning_goes_back_in_the_field_that_it_came_in() -> None:
    thought = ReasoningPart("hm", {"openai_compatible": {"field": "reasoning"}})
    assert messages_of(message("assistant", thought, "ok")) == [SAID | {"reasoning": "hm"}]


def test_reasoning_details_go_back_whole_and_in_order() -> None:
    parts = [
        ReasoningPart(text, {"openai_compatible": {"reasoning_details": [detail]}})
        for text, detail in zip(("hm", ""), DETAILS, strict=True)
    ]
    (sent,) = messages_of(
        message("assistant", *parts, "ok"), dialect=ChatDialect(reasoning="reasoning_details")
    )
    assert sent == SAID | {"reasoning_details": DETAILS}


def test_an_answer_without_reasoning_has_the_field_where_a_provider_wants_it() -> None:
    dialect = ChatDialect(reasoning="reasoning_content", empty_reasoning=True)
    sent = messages_of(message("assistant", "ok"), dialect=dialect)
    assert sent == [SAID | {"reasoning_content": ""}]


def test_fields_are_renamed_and_left_out_as_the_provider_wants_it() -> None:
    dialect = ChatDialect(
        refuses=frozenset({"top_k", "reasoning_effort"}),
        renames=(("max_tokens", "max_completion_tokens"), ("seed", "random_seed")),
    )
    request = asking(
        message("user", "hi"),
        generation=GenerationControls(max_tokens=9, top_k=4, seed=1),
        options={"openai_compatible": {"reasoningEffort": "high"}},
    )
    body = encoded(request, dialect)
    del body["messages"]
    assert body == {
        "model": "wire-model",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 9,
        "random_seed": 1,
    }


def test_a_document_is_a_file_part_where_the_provider_takes_one() -> None:
    file = MediaPart("application/pdf", PDF, "a\nb.pdf")
    part = {"type": "file", "file": {"filename": "a b.pdf", "file_data": PDF}}
    dialect = ChatDialect(documents=True)
    assert messages_of(message("user", "see", file), dialect=dialect) == [
        {"role": "user", "content": [{"type": "text", "text": "see"}, part]}
    ]
    (plain,) = messages_of(message("user", "see", file))
    assert plain["content"].endswith(f"{UNREADABLE}]")


def test_call_ids_have_the_form_that_the_provider_takes() -> None:
    ids = ("functions.read:0", "x" * 41, "ö", "abcDEF123")
    for short in (False, True):
        spoken = message("assistant", *(ToolCallPart(one, "read", {}) for one in ids))
        answer, *results = messages_of(
            spoken,
            *(result_of(one, "x") for one in ids),
            dialect=ChatDialect(short_call_ids=short),
        )
        sent = [call["id"] for call in answer["tool_calls"]]
        assert [result["tool_call_id"] for result in results] == sent
        assert len({*sent}) == len(ids)
        form = r"[A-Za-z0-9]{9}" if short else r"[A-Za-z0-9_.:-]{1,40}"
        assert all(re.fullmatch(form, one) for one in sent)
        assert sent[3] == ids[3]


def test_claude_behind_a_gateway_gets_its_cache_marks() -> None:
    request = asking(
        message("user", "go"),
        called("a"),
        result_of("a", "x"),
        system=("Be brief.",),
        options={"openai_compatible": {"cacheTtl": "1h"}},
    )
    hour = {"type": "ephemeral", "ttl": "1h"}
    system, user, _, result = encoded(request, ChatDialect(cache_control=True))["messages"]
    for item, text in ((system, "Be brief."), (user, "go"), (result, "x")):
        assert item["content"] == [{"type": "text", "text": text, "cache_control": hour}]
