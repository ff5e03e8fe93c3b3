"""The whole body of a Gemini request, as the provider receives it."""

import pytest

from perdure.llm.encoding import wire_protocol
from perdure.llm.encoding.wire_protocol import ModelFacts
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    ReasoningPart,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)
from perdure.llm.protocols.gemini.request import GEMINI
from perdure.llm.request import GenerationControls, LLMRequest, ToolChoice, ToolDefinition
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.tool import FileContent, ProviderMetadata, TextContent
from tests.contract.llm.conversations import asking, called, message, result_of, worked
from tests.contract.llm.protocols.gemini.recordings import CODE, RAN
from tests.contract.llm.protocols.gemini.validator import faults
from tests.contract.llm.stored_histories import PDF, PDF_DATA, PNG, PNG_DATA
from tests.requirements import requirement

FACTS = ModelFacts(name="gemini-3.1-pro-preview")
OLD = ModelFacts(name="gemini-2.5-flash")
IMAGE = {"inlineData": {"mimeType": "image/png", "data": PNG_DATA}}
READ = ToolDefinition(
    "read", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}}
)
UNSIGNED = "skip_thought_signature_validator"


def google(**native: JsonValue) -> ProviderMetadata:
    return {"google": native}


def encoded(request: LLMRequest, facts: ModelFacts = FACTS) -> JsonObject:
    raw = b"".join(wire_protocol.encode(GEMINI, request, facts))
    body = codec.decode_any(raw)
    assert faults(body, raw, signing=facts is FACTS) == []
    return body


def contents_of(*messages: LLMMessage, facts: ModelFacts = FACTS) -> JsonValue:
    """The conversation of a request that goes on with a word of the user."""
    *earlier, last = encoded(asking(*messages, message("user", "go on")), facts)["contents"]
    assert last == user({"text": "go on"})
    return earlier


def user(*parts: JsonObject) -> JsonObject:
    return {"role": "user", "parts": [*parts]}


def model(*parts: JsonObject) -> JsonObject:
    return {"role": "model", "parts": [*parts]}


def test_a_small_request_has_nothing_that_was_not_asked_for() -> None:
    request = asking(message("user", "hi"), system=("Be brief.", " ", "Be kind."))
    assert encoded(request) == {
        "generationConfig": {},
        "systemInstruction": {"parts": [{"text": "Be brief.\n\nBe kind."}]},
        "contents": [user({"text": "hi"})],
    }


@requirement("S17", "S18", "S92")
def test_controls_and_options_are_encoded_by_their_wire_names() -> None:
    controls = GenerationControls(
        max_tokens=9,
        temperature=0.0,
        top_p=0.5,
        top_k=4,
        frequency_penalty=0.1,
        presence_penalty=0.2,
        seed=2**31 + 5,
        stop=("a", "", "b", "c", "d", "e", "f"),
    )
    options = {
        "openai": {"promptCacheKey": "ses_1"},
        "google": {
            "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "low"},
            "safetySettings": [{"category": "C", "threshold": "OFF"}],
            "contents": ["stolen"],
        },
    }
    request = asking(
        message("user", "hi"),
        tools=(ToolDefinition("glob", "", {}), READ),
        tool_choice="required",
        generation=controls,
        options=options,
    )
    assert encoded(request) == {
        "generationConfig": {
            "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "low"},
            "maxOutputTokens": 9,
            "temperature": 0.0,
            "topP": 0.5,
            "topK": 4,
            "frequencyPenalty": 0.1,
            "presencePenalty": 0.2,
            "seed": 5,
            "stopSequences": ["a", "b", "c", "d", "e"],
        },
        "safetySettings": [{"category": "C", "threshold": "OFF"}],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "glob", "description": "glob"},
                    {
                        "name": "read",
                        "description": "Reads.",
                        "parameters": {
                            "type": "object",
                            "properties": {"path": {"type": "string"}},
                        },
                    },
                ]
            }
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        "contents": [user({"text": "hi"})],
    }


@pytest.mark.parametrize(("choice", "mode"), [("auto", "AUTO"), ("required", "ANY")])
def test_tool_choices_have_the_providers_names(choice: ToolChoice, mode: str) -> None:
    body = encoded(asking(message("user", "hi"), tools=(READ,), tool_choice=choice))
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": mode}}


def test_no_tools_are_offered_where_none_may_be_used() -> None:
    body = encoded(asking(message("user", "hi"), tools=(READ,), tool_choice="none"))
    assert body.keys() & {"tools", "toolConfig"} == set()


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("gemini-3-pro", "/models/gemini-3-pro:streamGenerateContent?alt=sse"),
        ("tunedModels/mine", "/tunedModels/mine:streamGenerateContent?alt=sse"),
        ("a b?#", "/models/a%20b%3F%23:streamGenerateContent?alt=sse"),
    ],
)
def test_a_request_goes_to_its_model(name: str, path: str) -> None:
    assert GEMINI.path(name) == path


# ---- the conversation ---------------------------------------------------------------------------


@requirement("S161", "S197")
def test_a_turn_with_tools_goes_back_as_it_came() -> None:
    signed = google(thoughtSignature="Yw==", id="f1")
    asked, answer, *results = worked(
        ReasoningPart("hm", google(thoughtSignature="dGg=")),
        read=ToolCallPart("f1", "read", {"path": "ä"}, metadata=signed),
        glob=ToolCallPart("tool_1", "glob", {}),
    )
    assert contents_of(asked, answer, *reversed(results)) == [
        user({"text": "go"}),
        model(
            {"text": "hm", "thought": True, "thoughtSignature": "dGg="},
            {"text": "Look: "},
            {
                "functionCall": {"id": "f1", "name": "read", "args": {"path": "ä"}},
                "thoughtSignature": "Yw==",
            },
            {"functionCall": {"name": "glob", "args": {}}},
        ),
        user(
            {
                "functionResponse": {
                    "id": "f1",
                    "name": "read",
                    "response": {"name": "read", "content": "content"},
                }
            },
            {
                "functionResponse": {
                    "name": "glob",
                    "response": {"name": "glob", "error": '{"error":"no"}'},
                }
            },
        ),
    ]


@requirement("S197")
def test_the_signature_of_a_text_goes_back_on_that_text() -> None:
    signature = ReasoningPart("", google(thoughtSignature="cw=="))
    assert contents_of(message("assistant", "Done.", signature))[1] == model(
        {"text": "Done.", "thoughtSignature": "cw=="}
    )
    alone = message("assistant", signature, "Done.")
    assert contents_of(alone)[1] == model(
        {"text": "", "thoughtSignature": "cw=="}, {"text": "Done."}
    )


@requirement("S161")
def test_calls_of_another_model_are_taken_by_models_that_want_them_signed() -> None:
    foreign = message(
        "assistant",
        ToolCallPart("call.0", "functions.read/x", {}),
        ToolCallPart("call.1", "1", {}, metadata={"openai": {"itemId": "fc_1"}}),
    )
    results = (result_of("call.0", "a"), result_of("call.1", "b"))
    _, signed, _ = contents_of(foreign, *results)
    assert signed == model(
        {
            "functionCall": {"name": "functions.read_x", "args": {}},
            "thoughtSignature": UNSIGNED,
        },
        {"functionCall": {"name": "_1", "args": {}}},
    )
    _, plain, _ = contents_of(foreign, *results, facts=OLD)
    assert "thoughtSignature" not in codec.encode(plain).decode()


@requirement("S161")
def test_what_the_provider_ran_itself_goes_back_with_its_result() -> None:
    ran = google(part="executableCode", thoughtSignature="cw==")
    answer = message(
        "assistant",
        ToolCallPart("tool_0", "code_execution", CODE, True, ran),
        ToolResultPart(
            "tool_0",
            "code_execution",
            ToolResult("json", {"type": "json", "value": RAN}),
            True,
            google(part="codeExecutionResult"),
        ),
        "It is 4.",
    )
    assert contents_of(answer)[1] == model(
        {"executableCode": CODE, "thoughtSignature": "cw=="},
        {"codeExecutionResult": RAN},
        {"text": "It is 4."},
    )


@pytest.mark.parametrize("metadata", [None, {"anthropic": {"type": "x"}}, google(part="other")])
def test_what_another_provider_ran_is_left_out(metadata: ProviderMetadata | None) -> None:
    answer = message(
        "assistant",
        ToolCallPart("ws_1", "web_search", {}, True, metadata),
        ToolResultPart("ws_1", "web_search", ToolResult("json", {}), True, metadata),
        "Found.",
    )
    assert contents_of(answer)[1:] == [model({"text": "Found."})]


def test_the_first_and_the_last_word_are_the_users() -> None:
    first, answer = contents_of(message("assistant", "I am done."))
    assert (first["role"], answer) == ("user", model({"text": "I am done."}))
    assert encoded(asking(message("user", "x"), message("assistant", "y")))["contents"][-1] == user(
        {"text": "Go on."}
    )
    assert encoded(asking())["contents"][0]["role"] == "user"


def test_an_answer_with_calls_never_follows_another_answer() -> None:
    turn = (called("c"), result_of("c", "x"))
    sent = contents_of(message("user", "hi"), message("assistant", "half"), *turn, called("c"))
    assert [content["role"] for content in sent] == [
        "user",
        "model",
        "user",
        "model",
        "user",
        "model",
        "user",
    ]
    assert sent[2] == user({"text": "Go on."})


def test_an_empty_message_and_an_empty_answer_are_told_as_such() -> None:
    thinking = message("assistant", ReasoningPart("hm"))
    asked, answer = contents_of(message("user", " \n"), thinking)
    assert asked == user({"text": "(empty message)"})
    assert answer == model({"text": "hm", "thought": True}, {"text": "(empty answer)"})


@requirement("S64")
def test_a_system_update_is_wrapped_user_text_at_its_place() -> None:
    update = {"text": "<system-update>\n&lt;b&gt; &amp; more\n</system-update>"}
    assert contents_of(
        message("user", "one"),
        message("system", "<b> & more"),
        message("user", "two"),
        message("assistant", "ok"),
        message("system", "<b> & more"),
        message("assistant", "ok"),
    ) == [
        user({"text": "one"}, update, {"text": "two"}),
        model({"text": "ok"}),
        user(update),
        model({"text": "ok"}),
    ]


# ---- attachments and results --------------------------------------------------------------------


def test_files_go_along_with_the_prompt_and_after_results() -> None:
    content = (TextContent("a picture"), FileContent(uri=PNG, mime="image/png"))
    asked, _, results = contents_of(
        message("user", "see", MediaPart("image/png", PNG), MediaPart("application/pdf", PDF)),
        message("assistant", ToolCallPart("a", "read", {}), ToolCallPart("b", "read", {})),
        result_of("a", content, "content"),
        result_of("b", "x"),
    )
    document = {"inlineData": {"mimeType": "application/pdf", "data": PDF_DATA}}
    assert asked == user({"text": "see"}, IMAGE, document)
    assert [[*part] for part in results["parts"]] == [
        ["functionResponse"],
        ["functionResponse"],
        ["inlineData"],
    ]
    assert results["parts"][0]["functionResponse"]["response"]["content"] == "a picture"


@pytest.mark.parametrize(
    ("media", "told"),
    [
        (MediaPart("image/gif", "data:image/gif;base64,R0lGODlh", "a\nb"), "a b: the model cannot"),
        (MediaPart("image/png", "data:image/png;base64,AAAA"), "not what its type says"),
        (MediaPart("image/png", "https://example.org/a.png"), "fetches no addresses"),
        (MediaPart("application/pdf", "data:application/pdf;base64,AAAA"), "not what its type"),
        (MediaPart("application/pdf", "data:application/pdf;base64,!"), "cannot read this type"),
        (MediaPart("image/png", "file:///etc/passwd"), "not available here"),
        (MediaPart("text/plain", "data:text/plain,hi%20there"), "hi there"),
    ],
)
def test_no_attachment_poisons_a_session(media: MediaPart, told: str) -> None:
    parts = encoded(asking(message("user", "look", media)))["contents"][0]["parts"]
    assert [[*part] for part in parts] == [["text"], ["text"]]
    assert told in parts[1]["text"]


def test_a_call_without_a_result_is_answered_and_a_result_without_a_call_is_not_sent() -> None:
    _, _, results = contents_of(called("a"), result_of("b", "x"))
    (only,) = results["parts"]
    assert "not known" in only["functionResponse"]["response"]["error"]
