"""The whole body of a Bedrock request, as the service receives it."""

import base64

import pytest
from msgspec.structs import replace

from perdure.llm.encoding import wire_protocol
from perdure.llm.encoding.wire_protocol import ModelFacts
from perdure.llm.error import LLMError
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    ReasoningPart,
    Segment,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
    split_segments,
)
from perdure.llm.protocols.bedrock.request import BEDROCK_CONVERSE
from perdure.llm.request import GenerationControls, LLMRequest, ToolChoice, ToolDefinition
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.tool import FileContent, ProviderMetadata, TextContent
from tests.contract.llm.conversations import asking, called, message, result_of, worked
from tests.contract.llm.protocols.bedrock.recordings import FOUND, GLOB, READ, SEARCH
from tests.contract.llm.protocols.bedrock.validator import faults
from tests.contract.llm.stored_histories import PDF, PNG, PNG_DATA
from tests.requirements import requirement

CLAUDE = ModelFacts(name="eu.anthropic.claude-opus-4-8")
NOVA = ModelFacts(name="amazon.nova-pro-v1:0")
LLAMA = ModelFacts(name="meta.llama3-3-70b-instruct-v1:0")
IMAGE = {"image": {"format": "png", "source": {"bytes": PNG_DATA}}}
HINT = {"cachePoint": {"type": "default"}}
TOOL = ToolDefinition("read", "Reads.", {"type": "object", "properties": {"path": {}}})
SPEC: JsonObject = {
    "toolSpec": {
        "name": "read",
        "description": "Reads.",
        "inputSchema": {"json": {"type": "object", "properties": {"path": {}}}},
    }
}
SIGNED = {"bedrock": {"signature": "c2ln"}}


def encoded(request: LLMRequest, facts: ModelFacts = LLAMA) -> JsonObject:
    raw = b"".join(wire_protocol.encode(BEDROCK_CONVERSE, request, facts))
    body = codec.decode_any(raw)
    assert faults(body, raw, facts.name) == []
    return body


def messages_of(*messages: LLMMessage, facts: ModelFacts = LLAMA) -> JsonValue:
    return encoded(asking(*messages), facts)["messages"]


def said(text: str) -> JsonObject:
    return {"text": text}


def user(*blocks: JsonObject) -> JsonObject:
    return {"role": "user", "content": [*blocks]}


def assistant(*blocks: JsonObject) -> JsonObject:
    return {"role": "assistant", "content": [*blocks]}


def use(id: str, name: str = "read", **input: JsonValue) -> JsonObject:
    return {"toolUse": {"toolUseId": id, "name": name, "input": input}}


def came(id: str, *content: JsonObject) -> JsonObject:
    return {"toolResult": {"toolUseId": id, "content": [*content]}}


def test_a_small_request_has_nothing_that_was_not_asked_for() -> None:
    request = asking(message("user", "hi"), system=("Be brief.", " ", "Be kind."))
    assert encoded(request) == {
        "inferenceConfig": {},
        "system": [said("Be brief."), said("Be kind.")],
        "messages": [user(said("hi"))],
    }


@requirement("S17", "S18", "S92")
def test_controls_and_options_are_encoded_by_their_wire_names() -> None:
    controls = GenerationControls(
        max_tokens=9, temperature=0.0, top_p=0.5, top_k=4, seed=1, stop=("x", " ")
    )
    options = {
        "openai": {"promptCacheKey": "ses_1"},
        "bedrock": {
            "additionalModelRequestFields": {"anthropic_beta": ["x"]},
            "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"},
            "messages": ["stolen"],
        },
    }
    request = asking(
        message("user", "hi"),
        tools=(ToolDefinition("glob", "", {}), TOOL),
        tool_choice="required",
        generation=controls,
        options=options,
    )
    glob: JsonObject = {
        "name": "glob",
        "inputSchema": {"json": {"type": "object", "properties": {}}},
    }
    assert encoded(request) == {
        "inferenceConfig": {
            "maxTokens": 9,
            "temperature": 0.0,
            "topP": 0.5,
            "stopSequences": ["x"],
        },
        "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"},
        "toolConfig": {"tools": [{"toolSpec": glob}, SPEC], "toolChoice": {"any": {}}},
        "additionalModelRequestFields": {"anthropic_beta": ["x"], "top_k": 4},
        "messages": [user(said("hi"))],
    }


@pytest.mark.parametrize(
    ("choice", "expected"), [(None, None), ("auto", {"auto": {}}), ("required", {"any": {}})]
)
def test_tool_choices_have_the_services_names(
    choice: ToolChoice | None, expected: JsonValue
) -> None:
    body = encoded(asking(message("user", "hi"), tools=(TOOL,), tool_choice=choice))
    assert body["toolConfig"].get("toolChoice") == expected


def test_tools_go_along_while_calls_are_part_of_the_conversation() -> None:
    turn = (called(READ, "read.x"), result_of(READ, "x"))
    plain = asking(message("user", "hi"), tools=(TOOL,), tool_choice="none")
    assert "toolConfig" not in encoded(plain)
    # Without any, the service refuses the calls that were made; it has no way to forbid new ones.
    assert encoded(asking(*turn, tools=(TOOL,), tool_choice="none"))["toolConfig"] == {
        "tools": [SPEC]
    }
    (only,) = encoded(asking(*turn, tool_choice="none"))["toolConfig"]["tools"]
    assert only["toolSpec"]["name"] == "read_x"


def test_a_request_goes_to_its_model() -> None:
    path = BEDROCK_CONVERSE.path("arn:aws:bedrock:eu-west-1:1:inference-profile/x.y-v1:0")
    assert path == (
        "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Fx.y-v1%3A0"
        "/converse-stream"
    )


@pytest.mark.parametrize(("asked", "most"), [(None, 64_000), (7, 7)])
def test_an_answer_may_be_as_long_as_the_model_can_write(asked: int | None, most: int) -> None:
    request = asking(message("user", "hi"), generation=GenerationControls(max_tokens=asked))
    body = encoded(request, replace(LLAMA, output_limit=64_000))
    assert body["inferenceConfig"]["maxTokens"] == most


# ---- cache points and reasoning -----------------------------------------------------------------


def test_cache_points_stand_where_a_model_takes_them() -> None:
    messages = (
        message("user", "one"),
        message("assistant", "ok"),
        message("user", "two", MediaPart("image/png", PNG)),
        called(READ),
        result_of(READ, "x"),
    )
    request = asking(*messages, system=("a", "b"), tools=(TOOL,))
    body = encoded(request, CLAUDE)
    assert body["system"] == [said("a"), said("b"), HINT]
    assert body["toolConfig"]["tools"] == [SPEC, HINT]
    assert body["messages"][2] == user(said("two"), IMAGE, HINT)
    assert body["messages"][-1]["content"][-1] == HINT
    assert codec.encode(body).count(b"cachePoint") == 4
    nova = encoded(request, NOVA)
    assert nova["messages"][2] == user(said("two"), HINT, IMAGE)
    assert codec.encode(nova).count(b"cachePoint") == 3
    assert b"cachePoint" not in codec.encode(encoded(request, LLAMA))
    old = ModelFacts(name="anthropic.claude-3-haiku-20240307-v1:0")
    assert b"cachePoint" not in codec.encode(encoded(request, old))


def test_what_is_marked_is_kept_for_an_hour_if_configured() -> None:
    options = {"bedrock": {"cacheTtl": "1h"}}
    body = encoded(asking(message("user", "hi"), options=options), CLAUDE)
    assert body["messages"][0]["content"][-1] == {"cachePoint": {"type": "default", "ttl": "1h"}}


def thinking(
    asked: JsonObject, *messages: LLMMessage, facts: ModelFacts = CLAUDE, **fields: JsonValue
) -> JsonObject:
    controls = GenerationControls(max_tokens=fields.pop("most", 8000), temperature=0.3, top_k=1)
    given = messages or (message("user", "hi"),)
    options = {"bedrock": {"reasoningConfig": asked}}
    request = asking(*given, generation=controls, options=options, **fields)
    return encoded(request, facts)


def test_thinking_goes_without_the_controls_that_it_excludes() -> None:
    body = thinking({"type": "enabled", "budgetTokens": 2000})
    assert body["additionalModelRequestFields"] == {
        "thinking": {"type": "enabled", "budget_tokens": 2000}
    }
    assert body["inferenceConfig"] == {"maxTokens": 8000}
    adaptive = thinking({"type": "adaptive"})["additionalModelRequestFields"]
    assert adaptive == {"thinking": {"type": "adaptive"}}
    effort = {"type": "enabled", "maxReasoningEffort": "low"}
    nova = thinking(effort, facts=NOVA)["additionalModelRequestFields"]
    assert nova == {"reasoningConfig": effort}


def test_a_thinking_budget_stays_below_the_answer() -> None:
    asked = {"type": "enabled", "budgetTokens": 2000}
    body = thinking(asked, most=1500)
    assert body["additionalModelRequestFields"]["thinking"]["budget_tokens"] == 1499
    assert thinking(asked, most=None)["inferenceConfig"]["maxTokens"] > 2000


def test_thinking_is_left_out_where_it_would_be_refused() -> None:
    asked = {"type": "enabled", "budgetTokens": 2000}
    foreign = (called("c"), result_of("c", "x"))
    own = message("assistant", ReasoningPart("hm", SIGNED), ToolCallPart(READ, "read", {}))
    for body in (
        thinking(asked, most=1024),
        thinking(asked, tools=(TOOL,), tool_choice="required"),
        thinking({"type": "disabled"}),
        thinking(asked, facts=LLAMA),
        thinking(asked, message("user", "hi"), *foreign),
    ):
        assert body["additionalModelRequestFields"] == {"top_k": 1}
    body = thinking(asked, message("user", "hi"), own, result_of(READ, "x"))
    assert "thinking" in body["additionalModelRequestFields"]


@pytest.mark.parametrize("budget", [{}, {"budgetTokens": 9}, {"budgetTokens": "many"}])
def test_thinking_without_a_budget_is_refused_before_it_is_sent(budget: JsonObject) -> None:
    with pytest.raises(LLMError, match="budgetTokens") as failed:
        thinking({"type": "enabled"} | budget)
    assert failed.value.reason == "invalid-request"


# ---- the conversation ---------------------------------------------------------------------------


@requirement("S161", "S197")
def test_a_turn_with_tools_goes_back_as_it_came() -> None:
    asked, answer, *results = worked(
        ReasoningPart("hm", SIGNED),
        ReasoningPart("", {"bedrock": {"redactedData": "RW1"}}),
        read=ToolCallPart(READ, "read", {"path": "ä"}),
        glob=ToolCallPart(GLOB, "glob", {}),
    )
    assert messages_of(asked, answer, *reversed(results)) == [
        user(said("go")),
        assistant(
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
            {"reasoningContent": {"redactedContent": "RW1"}},
            said("Look: "),
            use(READ, path="ä"),
            use(GLOB, "glob"),
        ),
        user(came(READ, said("content")), came(GLOB, said('The tool failed: {"error":"no"}'))),
    ]


def test_results_and_what_the_user_says_next_are_one_message() -> None:
    update = said("<system-update>\nw\n</system-update>")
    assert messages_of(
        message("user", "go"),
        called(READ),
        result_of(READ, "x"),
        message("system", "w"),
        message("user", "wait"),
        message("assistant", "ok"),
        message("user", "more"),
    ) == [
        user(said("go")),
        assistant(use(READ)),
        user(came(READ, said("x")), update, said("wait")),
        assistant(said("ok")),
        user(said("more")),
    ]


def test_roles_alternate_whatever_the_history_is() -> None:
    sent = messages_of(
        message("assistant", "one"),
        message("assistant", "two"),
        called(READ),
        result_of(READ, "x"),
        called(GLOB),
        result_of(GLOB, "y"),
        message("assistant", "three"),
    )
    # `encoded` checks that they do.
    assert sent[2] == user(said("Go on."))
    assert sent[-1] == user(said("Go on."))
    note = Segment((message("system", "the last step"),))
    request = replace(
        asking(message("user", "hi")), segments=(*split_segments((message("user", "hi"),)), note)
    )
    assert [m["role"] for m in encoded(request)["messages"]] == ["user", "assistant", "user"]
    assert encoded(asking())["messages"][0]["role"] == "user"


@requirement("S64")
def test_a_system_update_is_wrapped_user_text_at_its_place() -> None:
    update = said("<system-update>\n&lt;b&gt; &amp; more\n</system-update>")
    assert messages_of(
        message("user", "one"), message("system", "<b> & more"), message("user", "two")
    ) == [user(said("one"), update, said("two"))]


@requirement("S161")
def test_what_the_provider_ran_itself_goes_back_with_its_result() -> None:
    native: ProviderMetadata = {"bedrock": {"type": "nova_grounding_result"}}
    found = ToolResult("json", {"type": "json", "value": FOUND})
    answer = message(
        "assistant",
        ToolCallPart(SEARCH, "nova_grounding", {"query": "x"}, provider_executed=True),
        ToolResultPart(SEARCH, "nova_grounding", found, True, native),
        "Found.",
    )
    hosted = use(SEARCH, "nova_grounding", query="x")
    hosted["toolUse"]["type"] = "server_tool_use"
    result = came(SEARCH, *FOUND)
    result["toolResult"]["type"] = "nova_grounding_result"
    assert messages_of(answer)[1] == assistant(hosted, result, said("Found."))


@pytest.mark.parametrize("metadata", [None, {"openai": {"itemId": "x"}}, {"bedrock": {}}])
def test_what_another_provider_ran_is_left_out(metadata: ProviderMetadata | None) -> None:
    answer = message(
        "assistant",
        ToolCallPart(SEARCH, "web_search", {}, provider_executed=True),
        ToolResultPart(SEARCH, "web_search", ToolResult("json", FOUND), True, metadata),
        "Found.",
    )
    assert messages_of(answer)[1] == assistant(said("Found."))


def test_calls_of_other_models_get_ids_that_are_unique_in_the_conversation() -> None:
    turns = [
        turn
        for n in range(3)
        for turn in (
            LLMMessage("assistant", (ToolCallPart("call.0", "a.b/c", {}),), f"msg_{n}"),
            result_of("call.0", "same"),
        )
    ]
    sent = messages_of(message("user", "go"), *turns)
    calls = [item["content"][0]["toolUse"] for item in sent if item["role"] == "assistant"]
    assert len({call["toolUseId"] for call in calls}) == 3
    assert {call["name"] for call in calls} == {"a_b_c"}


def test_reasoning_that_cannot_be_proven_is_left_out_and_never_the_end() -> None:
    for alone in (ReasoningPart("half a thought"), ReasoningPart("hm", SIGNED)):
        assert messages_of(message("assistant", alone))[1] == assistant(said("(empty answer)"))
    after = message("assistant", "Hm.", ReasoningPart("hm", SIGNED))
    assert messages_of(after)[1] == assistant(said("Hm."))


# ---- attachments and results --------------------------------------------------------------------


def test_images_go_along_with_the_prompt_and_inside_results() -> None:
    content = (TextContent("a picture"), FileContent(uri=PNG, mime="image/png"))
    asked, _, results = messages_of(
        message("user", "see", MediaPart("image/png", PNG)),
        called(READ),
        result_of(READ, content, "content"),
    )
    assert asked == user(said("see"), IMAGE)
    assert results == user(came(READ, said("a picture"), IMAGE))


def test_documents_go_to_models_that_read_them_each_under_its_own_name() -> None:
    pdf = MediaPart("application/pdf", PDF, "a.pdf")
    twice = (message("user", pdf, pdf), message("assistant", "ok"), message("user", pdf, pdf))
    sent = messages_of(*twice, facts=NOVA)
    names = [b["document"]["name"] for m in sent for b in m["content"] if "document" in b]
    assert len(names) == len({*names}) == 4
    (block,) = messages_of(message("user", pdf), facts=LLAMA)[0]["content"]
    assert "cannot read this type" in block["text"]
    content = (FileContent(uri=PDF, mime="application/pdf"),)
    *_, results = messages_of(called(READ), result_of(READ, content, "content"), facts=NOVA)
    assert "text" in results["content"][0]["toolResult"]["content"][0]


def test_more_files_than_a_message_may_hold_are_told_instead() -> None:
    files = [MediaPart("image/png", PNG)] * 22 + [MediaPart("application/pdf", PDF)] * 7
    (sent,) = messages_of(message("user", "x", *files), facts=NOVA)
    kinds = [kind for block in sent["content"] for kind in block if kind != "cachePoint"]
    assert (kinds.count("image"), kinds.count("document"), kinds.count("text")) == (20, 5, 5)


HUGE = "data:image/png;base64," + base64.b64encode(b"\x89PNG" + b"\0" * 4_000_000).decode()


@pytest.mark.parametrize(
    ("media", "told"),
    [
        (MediaPart("image/png", "data:image/png;base64,AAAA", "a\nb"), "a b: it is not what"),
        (MediaPart("image/png", "https://example.org/a.png"), "fetches no addresses"),
        (MediaPart("image/png", "file:///etc/passwd"), "not available here"),
        (MediaPart("text/plain", "data:text/plain,hi%20there"), "hi there"),
        (MediaPart("image/png", HUGE), "it is too large"),
    ],
)
def test_no_attachment_poisons_a_session(media: MediaPart, told: str) -> None:
    (sent,) = messages_of(message("user", "look", media))
    assert [[*block] for block in sent["content"]] == [["text"], ["text"]]
    assert told in sent["content"][1]["text"]


def test_a_call_without_a_result_is_answered_and_a_result_without_a_call_is_not_sent() -> None:
    *_, results = messages_of(called(READ), result_of(GLOB, "x"))
    assert results == user(came(READ, said("The result of this call is not known")))
