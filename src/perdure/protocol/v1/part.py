"""Parts of a V1 message: text, reasoning, files, tool calls, and the marks around a step."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import JsonObject, Record
from perdure.schema.models.model import TokenUsage


class V1Span(Record):
    start: int
    end: int | UnsetType = UNSET


class V1Part(Record):
    """The fields of every part. Clients sort the parts of a message by `id`."""

    id: str
    session_id: str
    message_id: str


class V1Text(V1Part, tag_field="type", tag="text"):
    text: str
    synthetic: bool | UnsetType = UNSET
    time: V1Span | UnsetType = UNSET


class V1Reasoning(V1Part, tag_field="type", tag="reasoning"):
    text: str
    time: V1Span


class V1SourceText(Record):
    value: str
    start: int
    end: int


class V1FileSource(Record, tag_field="type", tag="file"):
    path: str
    text: V1SourceText


class V1File(V1Part, tag_field="type", tag="file"):
    mime: str
    url: str
    filename: str | UnsetType = UNSET
    source: V1FileSource | UnsetType = UNSET


class V1Agent(V1Part, tag_field="type", tag="agent"):
    name: str
    source: V1SourceText | UnsetType = UNSET


class V1Pending(Record, tag_field="status", tag="pending"):
    input: JsonObject
    raw: str


class V1Running(Record, tag_field="status", tag="running"):
    input: JsonObject
    time: V1Span
    title: str | UnsetType = UNSET
    metadata: JsonObject | UnsetType = UNSET


class V1Completed(Record, tag_field="status", tag="completed"):
    input: JsonObject
    output: str
    title: str
    metadata: JsonObject
    time: V1Span
    attachments: tuple[V1File, ...] | UnsetType = UNSET


class V1Failed(Record, tag_field="status", tag="error"):
    input: JsonObject
    error: str
    time: V1Span
    metadata: JsonObject | UnsetType = UNSET


class V1Tool(V1Part, tag_field="type", tag="tool"):
    call_id: str
    tool: str
    state: V1Pending | V1Running | V1Completed | V1Failed


class V1StepStart(V1Part, tag_field="type", tag="step-start"):
    snapshot: str | UnsetType = UNSET


class V1StepFinish(V1Part, tag_field="type", tag="step-finish"):
    reason: str
    cost: float
    tokens: TokenUsage
    snapshot: str | UnsetType = UNSET


class V1Compaction(V1Part, tag_field="type", tag="compaction"):
    auto: bool


AnyV1Part = (
    V1Text | V1Reasoning | V1File | V1Agent | V1Tool | V1StepStart | V1StepFinish | V1Compaction
)
V1PartType = Literal["text", "file", "agent", "subtask"]
