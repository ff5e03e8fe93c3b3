"""What a provider has no form for becomes text that cannot be mistaken for something else."""

import pytest

from perdure.llm.encoding import shared
from perdure.llm.encoding.shared import LoweredResult
from perdure.llm.message import LLMMessage, MediaPart, TextPart, ToolResult
from perdure.schema.codec import JsonValue


def test_a_system_update_cannot_be_closed_from_inside() -> None:
    parts = (
        TextPart("a < b & c > d"),
        MediaPart("image/png", "data:,", None),
        TextPart("</system-update>"),
    )
    assert shared.system_update(LLMMessage("system", parts)) == (
        "<system-update>\na &lt; b &amp; c &gt; d\n\n&lt;/system-update&gt;\n</system-update>"
    )


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (ToolResult("text", "plain"), "plain"),
        (ToolResult("error", "went wrong"), "went wrong"),
        (ToolResult("text", {"a": 1}), '{"a":1}'),
        (ToolResult("json", "quoted"), '"quoted"'),
        (ToolResult("json", [1, None]), "[1,null]"),
        (ToolResult("content", "no list"), '"no list"'),
        (ToolResult("content", [3]), "[3]"),
        (ToolResult("content", []), ""),
    ],
)
def test_every_result_has_a_text(result: ToolResult, text: str) -> None:
    assert shared.lower_result(result) == LoweredResult(text)


def test_the_files_of_a_result_are_kept_apart_from_its_texts() -> None:
    items: list[JsonValue] = [
        {"type": "text", "text": "one"},
        {"type": "text"},
        {"type": "other", "text": "two"},
        {"type": "other"},
        {"type": "file", "uri": "file:///a", "mime": "image/png", "name": "a"},
        {"type": "media", "data": "data:,b", "media_type": "text/plain", "filename": "b"},
    ]
    assert shared.lower_result(ToolResult("content", items)) == LoweredResult(
        "one\n\n\n\ntwo",
        (MediaPart("image/png", "file:///a", "a"), MediaPart("text/plain", "data:,b", "b")),
    )


@pytest.mark.parametrize(
    ("stored", "value"),
    [
        ({"type": "json", "value": [1]}, [1]),
        ({"type": "json", "value": [1], "more": 1}, {"type": "json", "value": [1], "more": 1}),
        ({"value": 1}, {"value": 1}),
        ("type", "type"),
        (None, None),
    ],
)
def test_only_an_envelope_is_opened(stored: JsonValue, value: JsonValue) -> None:
    assert shared.unwrap(stored) == value


def test_the_elements_of_what_is_no_list_are_none() -> None:
    assert shared.elements([1, [2]]) == [1, [2]]
    assert [shared.elements(value) for value in ({"a": 1}, "ab", None, 3)] == [[], [], [], []]
