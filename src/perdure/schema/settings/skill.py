"""A skill: instructions for one kind of task, given to the model on request."""

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record


class SkillInfo(Record):
    name: str
    location: str
    """The file it was read from."""
    content: str
    """Its text, without the front matter."""
    description: str | UnsetType = UNSET
    slash: bool | UnsetType = UNSET
    """Whether a person may call it as a command."""
