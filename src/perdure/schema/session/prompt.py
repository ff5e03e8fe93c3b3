"""Prompts to a Session, and their delivery."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record

Delivery = Literal["steer", "queue"]
"""`steer` joins the work in progress at the next boundary; `queue` waits until it is done."""


class TextSource(Record):
    """The position in the prompt's text that names an attachment."""

    start: int
    end: int
    text: str


class AgentMention(Record):
    name: str
    source: TextSource | UnsetType = UNSET


class FileInput(Record):
    """An attachment as the caller names it. The server derives its media type."""

    uri: str
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    source: TextSource | UnsetType = UNSET
    mime: str | UnsetType = UNSET
    """What older clients take it for. The server goes by the content."""


class FileAttachment(Record):
    """An attachment as stored."""

    uri: str
    mime: str
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    source: TextSource | UnsetType = UNSET


class PromptInput(Record):
    text: str
    files: tuple[FileInput, ...] | UnsetType = UNSET
    agents: tuple[AgentMention, ...] | UnsetType = UNSET


class Prompt(Record):
    """A prompt as admitted. Equality of two prompts is equality of these values."""

    text: str
    files: tuple[FileAttachment, ...] | UnsetType = UNSET
    agents: tuple[AgentMention, ...] | UnsetType = UNSET
