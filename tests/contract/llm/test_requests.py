"""What holds of a request's body for every provider, whatever it looks like.

What it looks like is in the `test_request` of each wire protocol.
"""

from collections.abc import Callable, Mapping
from typing import Final

import pytest
from msgspec.structs import replace

from perdure.llm.encoded_history import EncodedHistory
from perdure.llm.message import LLMMessage, ToolCallPart
from perdure.schema.codec import JsonObject, JsonValue
from tests.contract.llm.conversations import ResultType, asking, called, message, result_of
from tests.contract.llm.providers import PROVIDERS, Provider

CALL: Final = "toolu_01AAAAAAAAAAAAAAAAAAAA"
ODD: Final[tuple[JsonValue, ...]] = (
    None,
    5,
    "",
    " \n",
    "x",
    [],
    [5],
    [{"type": "text", "text": ""}],
    [{"type": "text", "text": 5}],
    {"a": [1]},
    {"type": "x"},
)
TYPES: Final[tuple[ResultType, ...]] = ("json", "text", "error", "content")


def marked_by_anthropic(body: JsonObject) -> bool:
    return body["messages"][-1]["content"][0].get("is_error", False)


def marked_by_bedrock(body: JsonObject) -> bool:
    return "failed" in body["messages"][-1]["content"][0]["toolResult"]["content"][0]["text"]


def marked_by_gemini(body: JsonObject) -> bool:
    return "error" in body["contents"][-1]["parts"][0]["functionResponse"]["response"]


MARKED: Final[Mapping[str, Callable[[JsonObject], bool]]] = {
    "anthropic": marked_by_anthropic,
    "bedrock": marked_by_bedrock,
    "gemini": marked_by_gemini,
}
"""Whether a body says that its last result is a failure. The others have no way to say it."""


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_odd_tool_results_can_still_be_sent(
    provider: str, value: JsonValue, type: ResultType
) -> None:
    request = asking(message("user", "go"), called(CALL), result_of(CALL, value, type))
    asked = PROVIDERS[provider]
    for way, _ in enumerate(asked.models):
        assert asked.faults_of(request, way=way) == []


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize("provider", MARKED)
def test_a_result_is_marked_as_a_failure_when_it_is_one(
    provider: str, value: JsonValue, type: ResultType
) -> None:
    request = asking(message("user", "go"), called(CALL), result_of(CALL, value, type))
    assert MARKED[provider](PROVIDERS[provider].body_of(request)) == (type == "error")


def growing() -> list[LLMMessage]:
    words: list[LLMMessage] = []
    for n in range(60):
        words.append(message("user", f"{n} " + "x" * 900))
        call = ToolCallPart(f"call_{n}", "read", {"n": n})
        words += (message("assistant", "a", call), result_of(call.id, "y" * 900))
        words += [message("assistant", "done")] * (n % 3)
    return words


def can_be_asked(provider: Provider, last: LLMMessage) -> bool:
    """Never between a call and its result, nor after an answer where a prompt must be the last."""
    answered = last.role == "assistant"
    return not answered or (len(last.content) == 1 and not provider.kept.ends_with_prompt)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_growing_conversation_is_sent_as_if_it_were_encoded_anew(provider: str) -> None:
    words, asked, kept = growing(), PROVIDERS[provider], EncodedHistory()
    for length in (*range(1, len(words), 7), len(words)):
        if not can_be_asked(asked, words[length - 1]):
            continue
        anew = asking(*words[:length])
        for way, _ in enumerate(asked.models):
            again = asked.body_of(replace(anew, encoded_history=kept), way=way)
            assert again == asked.body_of(anew, way=way)
