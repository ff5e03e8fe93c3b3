"""Ids of calls: unique in an answer as they are read, unique in a conversation as they are sent."""

import re

import pytest

from perdure.llm.encoding import call_id
from perdure.llm.message import (
    LLMMessage,
    Segment,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)

OWN = re.compile(r"own_\d+")


def answer(*calls: ToolCallPart, id: str = "msg_1") -> Segment:
    said = LLMMessage("assistant", (TextPart("a"), *calls), id)
    results = (ToolResultPart(call.id, call.name, ToolResult("text", "x")) for call in calls)
    return Segment((said, *(LLMMessage("tool", (result,)) for result in results)))


@pytest.mark.parametrize(
    ("given", "taken", "number", "expected"),
    [
        ("a", set[str](), 0, "a"),
        ("a", {"a"}, 1, "call_1"),
        ("", set[str](), 0, "call_0"),
        (None, {"call_0", "call_1"}, 0, "call_2"),
        ("call_1", {"call_1", "call_2"}, 1, "call_3"),
    ],
)
def test_a_call_keeps_its_id_unless_it_is_taken_or_missing(
    given: str | None, taken: set[str], number: int, expected: str
) -> None:
    assert call_id.free_id(given, taken, number) == expected


def test_counted_ids_have_the_name_that_is_asked_for() -> None:
    assert call_id.free_id(None, {"tool_0"}, 0, prefix="tool") == "tool_1"


def test_a_providers_own_ids_are_sent_as_they_are_and_others_are_made_unique() -> None:
    calls = (ToolCallPart("own_1", "read", {}), ToolCallPart("call_0", "read", {}))
    first, second = answer(*calls), answer(*calls, id="msg_2")
    sent = call_id.unique_ids(first, OWN)
    assert sent["own_1"] == "own_1"
    assert sent["call_0"] not in ("call_0", call_id.unique_ids(second, OWN)["call_0"])
    # The same history is sent with the same ids again.
    assert call_id.unique_ids(answer(*calls), OWN) == sent


def test_calls_that_the_provider_made_itself_are_not_ours_to_name() -> None:
    hosted = ToolCallPart("ws_1", "web_search", {}, provider_executed=True)
    assert call_id.unique_ids(answer(hosted), OWN) == {}


@pytest.mark.parametrize("odd", ["", "\x00", "ü" * 500, "own_x"])
def test_an_id_of_any_shape_becomes_one_that_can_be_sent(odd: str) -> None:
    sent = call_id.unique_ids(answer(ToolCallPart(odd, "read", {})), OWN)
    assert re.fullmatch(r"call_[0-9a-f]{24}", sent[odd])
