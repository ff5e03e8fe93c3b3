"""Content blocks: what a prompt is made of, and what messages and tool calls show."""

from msgspec import UNSET, UnsetType

from perdure.acp.wire.wire_value import WireValue
from perdure.schema.codec import JsonObject


class TextBlock(WireValue, tag_field="type", tag="text"):
    text: str


class ImageBlock(WireValue, tag_field="type", tag="image"):
    data: str
    mime_type: str
    uri: str | None = None


class AudioBlock(WireValue, tag_field="type", tag="audio"):
    data: str
    mime_type: str


class ResourceLink(WireValue, tag_field="type", tag="resource_link"):
    uri: str
    name: str
    mime_type: str | None = None
    description: str | None = None


class Resource(WireValue):
    """Has a `text`, or a `blob` in base64."""

    uri: str
    mime_type: str | None = None
    text: str | UnsetType = UNSET
    blob: str | UnsetType = UNSET


class EmbeddedResource(WireValue, tag_field="type", tag="resource"):
    resource: Resource


ContentBlock = TextBlock | ImageBlock | AudioBlock | ResourceLink | EmbeddedResource


class Content(WireValue, tag_field="type", tag="content"):
    content: ContentBlock


class Diff(WireValue, tag_field="type", tag="diff"):
    """One place of a file: what stood there, None if the file is new, and what stands there."""

    path: str
    new_text: str
    old_text: str | None = None


ToolContent = Content | Diff


class Location(WireValue):
    """A place that a tool call is about, so that an editor can follow it."""

    path: str
    line: int | None = None


def text_content(text: str) -> Content:
    return Content(TextBlock(text))


Raw = JsonObject | UnsetType
