"""What would be told and sent, as it is shown: nothing added, nothing but headers left out."""

import pytest

from perdure.core.context import system_context
from perdure.core.context.system_context import UNAVAILABLE, ContextSource, Snapshot, SnapshotEntry
from perdure.core.request import preview
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    ReasoningPart,
    Segment,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)
from perdure.llm.request import LLMRequest, ToolDefinition
from perdure.schema import codec
from perdure.schema.models.model import ModelRef
from perdure.schema.session.request_preview import ProviderRequest
from tests.requirements import requirement

DATE = ContextSource(key="core/date", type=str, baseline=str, update=lambda _, day: day)
FILES = ContextSource(
    key="core/files", type=str, baseline=str, update=lambda _, now: now, removed=lambda _: "gone"
)
TOLD: Snapshot = {
    "core/date": SnapshotEntry(value="Monday"),
    "core/files": SnapshotEntry(value="a", removed="gone"),
}


@requirement("S141")
def test_only_what_differs_from_what_was_told_is_changed() -> None:
    seen = (system_context.make(DATE, "Tuesday"), system_context.make(FILES, "a"))
    date, files = preview.describe_sources(seen, TOLD, all_told=False)
    assert (date.key, date.value, date.changed, date.removable) == (
        "core/date", "Tuesday", True, False
    )  # fmt: skip
    assert (files.key, files.value, files.changed, files.removable) == (
        "core/files", "a", False, True
    )  # fmt: skip


def test_a_new_baseline_tells_of_everything_that_can_be_seen() -> None:
    seen = (system_context.make(DATE, "Monday"), system_context.make(FILES, UNAVAILABLE))
    date, files = preview.describe_sources(seen, TOLD, all_told=True)
    assert date.changed
    assert (files.changed, files.available, files.value) == (False, False, "a")


def test_what_was_never_told_and_cannot_be_seen_has_no_value() -> None:
    (date,) = preview.describe_sources(
        (system_context.make(DATE, UNAVAILABLE),), {}, all_told=False
    )
    assert codec.to_json_value(date) == {
        "key": "core/date", "removable": False, "available": False, "changed": False
    }  # fmt: skip


def test_a_source_that_is_gone_is_a_change_without_a_value() -> None:
    date, files = preview.describe_sources((), TOLD, all_told=False)
    assert (date.changed, date.removable, files.removable) == (True, False, True)
    assert "value" not in codec.to_json_value(date)


def test_a_value_of_another_shape_is_told_anew() -> None:
    told = {"core/date": SnapshotEntry(value={"day": 1})}
    (date,) = preview.describe_sources((system_context.make(DATE, "Monday"),), told, all_told=False)
    assert date.changed


def test_where_nobody_can_look_sources_are_as_they_were_told() -> None:
    date, files = preview.describe_snapshot(TOLD)
    assert [(s.key, s.value, s.available) for s in (date, files)] == [
        ("core/date", "Monday", False),
        ("core/files", "a", False),
    ]


@requirement("S141")
def test_a_request_is_shown_whole_and_without_its_headers() -> None:
    metadata = {"fake": {"signature": "s"}}
    assistant = LLMMessage(
        "assistant",
        (
            ReasoningPart("hm", metadata),
            TextPart("I look"),
            ToolCallPart("call_1", "read", {"path": "a"}, False, metadata),
        ),
    )
    picture = MediaPart("image/png", "data:,x", "a.png")
    result = ToolResultPart("call_1", "read", ToolResult("json", {"lines": [1, None]}))
    request = LLMRequest(
        model=ModelRef(id="m", provider_id="p"),
        system=("Be brief.", "Today is Monday."),
        runs=(
            Segment((LLMMessage("user", (TextPart("hi"), picture)),)),
            Segment((assistant, LLMMessage("tool", (result,)))),
        ),
        tools=(ToolDefinition("read", "reads", {"type": "object"}),),
        tool_choice="auto",
        options={"openai": {"promptCacheKey": "k"}},
        headers={"authorization": "canary"},
    )
    shown = codec.to_json_value(preview.preview_request(request, agent="build"))
    assert shown == {
        "agent": "build",
        "model": {"id": "m", "providerID": "p"},
        "system": ["Be brief.", "Today is Monday."],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "hi"},
                    {
                        "type": "media",
                        "mediaType": "image/png",
                        "data": "data:,x",
                        "filename": "a.png",
                    },
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "reasoning", "text": "hm", "metadata": metadata},
                    {"type": "text", "text": "I look"},
                    {
                        "type": "tool-call",
                        "id": "call_1",
                        "name": "read",
                        "input": {"path": "a"},
                        "providerExecuted": False,
                        "metadata": metadata,
                    },
                ],
            },
            {
                "role": "tool",
                "content": [
                    {
                        "type": "tool-result",
                        "id": "call_1",
                        "name": "read",
                        "resultType": "json",
                        "result": {"lines": [1, None]},
                        "providerExecuted": False,
                    }
                ],
            },
        ],
        "tools": [{"name": "read", "description": "reads", "inputSchema": {"type": "object"}}],
        "options": {"openai": {"promptCacheKey": "k"}},
        "toolChoice": "auto",
    }
    assert codec.convert(ProviderRequest, shown) == preview.preview_request(request, agent="build")


@pytest.mark.parametrize("kind", ["json", "text", "error", "content"])
def test_every_kind_of_tool_result_keeps_its_value(kind: str) -> None:
    result = codec.convert(ToolResult, {"type": kind, "value": ["x"]})
    part = ToolResultPart("c", "t", result, True)
    request = LLMRequest(
        model=ModelRef(id="m", provider_id="p"),
        system=(),
        runs=(Segment((LLMMessage("tool", (part,)),)),),
    )
    shown = codec.to_json_value(preview.preview_request(request, agent="a"))
    (only,) = shown["messages"][0]["content"]
    assert (only["resultType"], only["result"], only["providerExecuted"]) == (kind, ["x"], True)
