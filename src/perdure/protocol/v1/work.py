"""What V1 clients do with Sessions besides prompts: commands, diffs, and a list of all projects."""

from typing import Annotated, Final

from msgspec import Meta

from perdure.protocol.v1.endpoint import declare
from perdure.protocol.v1.file import V1FileDiff
from perdure.protocol.v1.message import V1Message, V1ModelChoice, V1PartInput
from perdure.protocol.v1.session import V1Session
from perdure.schema.codec import Payload, Record


class RunV1Command(Payload):
    command: str
    arguments: str
    message_id: str | None = None
    agent: str | None = None
    model: str | None = None
    variant: str | None = None
    parts: tuple[V1PartInput, ...] | None = None


class RunV1Shell(Payload):
    command: str
    agent: str | None = None
    message_id: str | None = None
    model: V1ModelChoice | None = None


class InitV1Session(Payload):
    model_id: str | None = None
    provider_id: str | None = None
    message_id: str | None = None


class DiffV1Session(Payload):
    message_id: str | None = None


class V1ProjectName(Record):
    id: str
    worktree: str


class V1GlobalSession(V1Session, kw_only=True):
    project: V1ProjectName | None


class ListAllV1Sessions(Payload):
    """`cursor` is the time of the last Session of the page before."""

    roots: str | None = None
    start: float | None = None
    cursor: float | None = None
    search: str | None = None
    limit: Annotated[int, Meta(ge=1)] | None = None
    archived: str | None = None


_SESSION: Final = "/session/{sessionID}"

COMMAND: Final = declare(
    "POST", f"{_SESSION}/command", "session.command", V1Message, body=RunV1Command
)
SHELL: Final = declare("POST", f"{_SESSION}/shell", "session.shell", V1Message, body=RunV1Shell)
INIT: Final = declare(
    "POST", f"{_SESSION}/init", "session.init", bool, body=InitV1Session, body_optional=True
)
DIFF: Final = declare(
    "GET", f"{_SESSION}/diff", "session.diff", tuple[V1FileDiff, ...], query=DiffV1Session
)

LIST_ALL: Final = declare(
    "GET",
    "/experimental/session",
    "experimental.session.list",
    tuple[V1GlobalSession, ...],
    query=ListAllV1Sessions,
)

ENDPOINTS: Final = (COMMAND, SHELL, INIT, DIFF, LIST_ALL)
