"""Commands of the user: run in the Session's directory and told to its model."""

from typing import Final

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.codec import Payload
from perdure.schema.errors import (
    DamagedRowError,
    PromptConflictError,
    ServiceUnavailableError,
    SessionBusyError,
    SessionNotFoundError,
)
from perdure.schema.ids import SuppliedMessageID
from perdure.schema.session.message import ShellMessage


class RunShellCommand(Payload, frozen=True):
    """`id` is that of the message; a retry with the same id runs nothing again."""

    command: str
    id: SuppliedMessageID | None = None


RUN: Final = Endpoint(
    operation_id="v2.session.shell",
    method="POST",
    path="/api/session/{sessionID}/shell",
    group="sessions",
    scope="session",
    body=RunShellCommand,
    success=Success("data", ShellMessage),
    errors=(
        *REFUSALS,
        SessionNotFoundError,
        DamagedRowError,
        SessionBusyError,
        PromptConflictError,
        ServiceUnavailableError,
    ),
)

ENDPOINTS: Final = (RUN,)
