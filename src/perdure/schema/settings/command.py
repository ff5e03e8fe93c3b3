"""A command: a named prompt that a user can run with a slash."""

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record
from perdure.schema.models.model import ModelRef


class CommandInfo(Record):
    name: str
    template: str
    """The prompt. `$ARGUMENTS` stands for the text typed after the name."""
    description: str | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    model: ModelRef | UnsetType = UNSET
    subtask: bool | UnsetType = UNSET
