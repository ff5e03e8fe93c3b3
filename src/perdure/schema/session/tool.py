"""What a tool call leaves behind, in the transcript and for the model."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import JsonObject, JsonValue, Record

ProviderMetadata = dict[str, JsonObject]
"""Provider-native facts by provider namespace, replayed only to the same model."""


class TextContent(Record, tag_field="type", tag="text"):
    text: str


class FileContent(Record, tag_field="type", tag="file"):
    """A file part. `uri` is a data URI, an http(s) URL or a managed file URI."""

    uri: str
    mime: str
    name: str | UnsetType = UNSET


ToolContent = TextContent | FileContent


class AttachedContent(Record):
    """What the model is told of one attachment, as it was read when the prompt was promoted."""

    content: tuple[ToolContent, ...]
    file: int | UnsetType = UNSET
    """Which of the prompt's files it stands for; none, for a path that only its text mentions."""


class CallProvider(Record):
    """Who ran a call, with what the provider needs to see again."""

    executed: bool
    metadata: ProviderMetadata | UnsetType = UNSET


class PartProvider(Record):
    """Call-side metadata survives settlement; the result's stands beside it."""

    executed: bool
    metadata: ProviderMetadata | UnsetType = UNSET
    result_metadata: ProviderMetadata | UnsetType = UNSET


class ErrorInfo(Record):
    """A failure as stored and shown. The one type there is says that it is for reading."""

    type: Literal["unknown"]
    message: str


def error_info(message: str) -> ErrorInfo:
    return ErrorInfo(type="unknown", message=message)


class PendingState(Record, tag_field="status", tag="pending"):
    """Its input is still raw text: it may never become JSON."""

    input: str


class RunningState(Record, tag_field="status", tag="running"):
    input: JsonObject
    structured: JsonObject
    content: tuple[ToolContent, ...]


class CompletedState(Record, tag_field="status", tag="completed"):
    input: JsonObject
    content: tuple[ToolContent, ...]
    output_paths: tuple[str, ...]
    structured: JsonObject
    result: JsonValue | UnsetType = UNSET


class ErrorState(Record, tag_field="status", tag="error"):
    input: JsonObject
    content: tuple[ToolContent, ...]
    structured: JsonObject
    error: ErrorInfo
    result: JsonValue | UnsetType = UNSET


ToolState = PendingState | RunningState | CompletedState | ErrorState
