"""A command: a prompt with a name, which clients offer to whoever types a slash."""

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record
from perdure.schema.models.model import ModelRef


class CommandInfo(Record):
    name: str
    template: str
    """The prompt. `$ARGUMENTS` stands for what was typed after the name."""
    description: str | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    model: ModelRef | UnsetType = UNSET
    subtask: bool | UnsetType = UNSET
