"""Tool calls: their states, content and metadata."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import JsonObject, JsonValue, Record

ProviderMetadata = dict[str, JsonObject]
"""Provider metadata by namespace, replayed only to the same model."""


class TextContent(Record, tag_field="type", tag="text"):
    text: str


class FileContent(Record, tag_field="type", tag="file"):
    """A file part. `uri` is a data URI, an http(s) URL or a managed file URI."""

    uri: str
    mime: str
    name: str | UnsetType = UNSET


ToolContent = TextContent | FileContent


class AttachedContent(Record):
    """Attached content of one attachment, read when the prompt was promoted."""

    content: tuple[ToolContent, ...]
    file: int | UnsetType = UNSET
    """Index of the prompt's file; unset for a path that only the text mentions."""


class CallProvider(Record):
    """Who executed a call, with metadata to send back to the provider."""

    executed: bool
    metadata: ProviderMetadata | UnsetType = UNSET


class PartProvider(Record):
    """Metadata of the call, kept after settlement, and of its result."""

    executed: bool
    metadata: ProviderMetadata | UnsetType = UNSET
    result_metadata: ProviderMetadata | UnsetType = UNSET


class ErrorInfo(Record):
    """A failure as stored and shown. The only `type` means that it is text for reading."""

    type: Literal["unknown"]
    message: str


class RetryError(Record):
    """Why a request failed that is sent again."""

    message: str
    is_retryable: bool
    status_code: int | UnsetType = UNSET
    response_headers: dict[str, str] | UnsetType = UNSET
    response_body: str | UnsetType = UNSET
    metadata: dict[str, str] | UnsetType = UNSET


def error_info(message: str) -> ErrorInfo:
    return ErrorInfo(type="unknown", message=message)


class PendingState(Record, tag_field="status", tag="pending"):
    """A call whose input is still raw text and may be invalid JSON."""

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
