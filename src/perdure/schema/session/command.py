"""A slash command that a client asks a Session to run."""

from perdure.schema.ids import MessageID
from perdure.schema.models.model import ModelRef
from perdure.schema.session.prompt import FileInput
from perdure.schema.value import Value


class CommandRequest(Value, kw_only=True):
    """A command by name. What it is configured with takes precedence over `agent` and `model`."""

    name: str
    arguments: str = ""
    id: MessageID | None = None
    agent: str | None = None
    model: ModelRef | None = None
    files: tuple[FileInput, ...] = ()
