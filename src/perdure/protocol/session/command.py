"""Slash commands: run by name in a Session. `init` writes or improves AGENTS.md."""

from typing import Final

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.codec import Payload
from perdure.schema.errors import (
    DamagedRowError,
    InboxFullError,
    NotFoundError,
    PromptConflictError,
    SessionNotFoundError,
)
from perdure.schema.ids import SuppliedMessageID
from perdure.schema.models.model import ModelRef
from perdure.schema.session.prompt import FileInput
from perdure.schema.session.receipt import AdmittedPrompt


class RunCommand(Payload, frozen=True):
    """`id` is that of the prompt that the command makes; a retry with it admits nothing again."""

    command: str
    arguments: str | None = None
    id: SuppliedMessageID | None = None
    agent: str | None = None
    model: ModelRef | None = None
    files: tuple[FileInput, ...] | None = None


class InitSession(Payload, frozen=True):
    id: SuppliedMessageID | None = None
    model: ModelRef | None = None


_ERRORS: Final = (
    *REFUSALS,
    SessionNotFoundError,
    NotFoundError,
    DamagedRowError,
    PromptConflictError,
    InboxFullError,
)

RUN: Final = Endpoint(
    operation_id="v2.session.command",
    method="POST",
    path="/api/session/{sessionID}/command",
    group="sessions",
    scope="session",
    body=RunCommand,
    success=Success("data", AdmittedPrompt),
    errors=_ERRORS,
)
INIT: Final = Endpoint(
    operation_id="v2.session.init",
    method="POST",
    path="/api/session/{sessionID}/init",
    group="sessions",
    scope="session",
    body=InitSession,
    body_optional=True,
    success=Success("data", AdmittedPrompt),
    errors=_ERRORS,
)

ENDPOINTS: Final = (RUN, INIT)
