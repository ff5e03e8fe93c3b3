"""What a model without tool calls is sent, and what the rules of Chat Completions refuse."""

import pytest

from perdure.llm.encoding import wire_protocol
from perdure.llm.encoding.wire_protocol import ModelFacts
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
    split_segments,
)
from perdure.llm.protocols.openai_chat.request import OPENAI_CHAT
from perdure.llm.request import LLMRequest, ToolDefinition
from perdure.llm.tool_fallback.json_schema import with_json_schema
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.models.model import ModelRef
from tests.contract.llm.protocols.openai_chat import validator

PNG = "data:image/png;base64,iVBORw0KGgo="
TREE: JsonObject = {"$defs": {"t": {}}, "properties": {"a": {"$ref": "#/$defs/t"}}}
TOOLS = (
    ToolDefinition("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}}),
    ToolDefinition("grow", "Grows.", TREE),
)


def body_of(*messages: LLMMessage, tools: tuple[ToolDefinition, ...] = TOOLS) -> JsonObject:
    request = LLMRequest(
        model=ModelRef(id="m", provider_id="p"),
        system=("Be brief.",),
        runs=split_segments(messages),
        tools=tools,
        tool_choice="auto",
    )
    facts = ModelFacts(name="m")
    return codec.decode_any(
        b"".join(wire_protocol.encode(with_json_schema(OPENAI_CHAT), request, facts))
    )


def test_calls_and_results_of_before_are_texts_and_images_follow() -> None:
    content = [TextPart("here"), MediaPart("image/png", PNG)]
    body = body_of(
        LLMMessage("user", (TextPart("look"),)),
        LLMMessage("assistant", (TextPart("So."), ToolCallPart("c1", "look", {"at": "x"}))),
        LLMMessage("tool", (ToolResultPart("c1", "look", ToolResult("content", content)),)),
    )
    assert [message["role"] for message in body["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert body["messages"][2]["content"] == 'So.\n{"name":"look","arguments":{"at":"x"}}'
    told, shown = body["messages"][3]["content"]
    assert told["text"] == "Result of look:\nhere"
    assert shown["image_url"]["url"] == PNG
    assert validator.faults(body) == []


def test_every_tool_is_a_way_to_answer_and_references_are_left_out() -> None:
    body = body_of(LLMMessage("user", (TextPart("hi"),)))
    said, look, grow = body["response_format"]["json_schema"]["schema"]["anyOf"]
    assert said["required"] == ["text"]
    assert look["properties"]["arguments"] == TOOLS[0].input_schema
    assert grow["properties"]["arguments"] == {"type": "object"}
    assert body["messages"][0]["content"].startswith("Be brief.\n\nAnswer with one JSON object")
    assert "tools" not in body
    assert "tool_choice" not in body


def test_without_tools_nothing_is_asked_for() -> None:
    body = body_of(LLMMessage("user", (TextPart("hi"),)), tools=())
    assert "response_format" not in body
    assert body["messages"][0]["content"] == "Be brief."


CALL: JsonObject = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ASKED: JsonObject = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT: JsonObject = {"role": "tool", "tool_call_id": "c", "content": "x"}


REFUSED: list[tuple[list[JsonObject], str]] = [
    ([ASKED], "a call without a result at the end"),
    ([ASKED, {"role": "user", "content": "x"}], "a call without a result"),
    ([RESULT], "a result without a call"),
    ([ASKED, RESULT, RESULT], "a result without a call"),
    ([{"role": "assistant", "content": None}], "an answer with neither content nor calls"),
    ([ASKED | {"tool_calls": []}], "an empty list of calls"),
    ([{"role": "user", "content": []}], "a prompt without parts"),
    (
        [{"role": "user", "content": "x"}, {"role": "system", "content": "x"}],
        "a system message that is not the first",
    ),
]


@pytest.mark.parametrize(("messages", "fault"), REFUSED)
def test_the_rules_notice_what_a_server_would(messages: list[JsonObject], fault: str) -> None:
    body: JsonObject = {"model": "m", "stream": True, "messages": messages}
    assert fault in validator.faults(body)
