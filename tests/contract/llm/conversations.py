"""Conversations as short as a test wants to write them, and requests that are made of them."""

from collections.abc import Sequence
from typing import Literal

from perdure.llm.message import (
    LLMMessage,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
    split_segments,
)
from perdure.llm.request import LLMRequest
from perdure.schema.codec import JsonValue
from tests.contract.llm.stored_histories import MODEL

ResultType = Literal["json", "text", "error", "content"]


def message(role: Role, *parts: Part | str) -> LLMMessage:
    return LLMMessage(role, tuple(TextPart(p) if isinstance(p, str) else p for p in parts))


def called(id: str, name: str = "read", **input: JsonValue) -> LLMMessage:
    """An answer that is one call."""
    return message("assistant", ToolCallPart(id, name, input))


def result_of(
    id: str, value: JsonValue, type: ResultType = "text", *, name: str = "read"
) -> LLMMessage:
    return message("tool", ToolResultPart(id, name, ToolResult(type, value)))


def asking(*messages: LLMMessage, system: Sequence[str] = (), **fields: JsonValue) -> LLMRequest:
    return LLMRequest(model=MODEL, system=tuple(system), runs=split_segments(messages), **fields)


def worked(*thoughts: ReasoningPart, read: ToolCallPart, glob: ToolCallPart) -> list[LLMMessage]:
    """A prompt, an answer that thinks, speaks and makes two calls, and what came of these."""
    return [
        message("user", "go"),
        message("assistant", *thoughts, "Look: ", read, glob),
        result_of(read.id, "content"),
        result_of(glob.id, {"error": "no"}, "error", name="glob"),
    ]
