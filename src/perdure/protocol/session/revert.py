"""Revert operations: stage a revert to a message, then clear or commit it."""

from typing import Final

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.codec import Payload
from perdure.schema.errors import (
    DamagedRowError,
    MessageNotFoundError,
    RevertConflictError,
    ServiceUnavailableError,
    SessionBusyError,
    SessionNotFoundError,
    UnknownError,
)
from perdure.schema.ids import SuppliedMessageID
from perdure.schema.session.session import RevertState


class StageRevert(Payload, frozen=True):
    """`files` defaults to true."""

    message_id: SuppliedMessageID
    files: bool | None = None


_GROUP: Final = "sessions"
_ON_SESSION: Final = (*REFUSALS, SessionNotFoundError, SessionBusyError, DamagedRowError)
_WITH_FILES: Final = (
    *_ON_SESSION,
    RevertConflictError,
    ServiceUnavailableError,
    UnknownError,
)

STAGE: Final = Endpoint(
    operation_id="v2.session.revert.stage",
    method="POST",
    path="/api/session/{sessionID}/revert/stage",
    group=_GROUP,
    scope="session",
    body=StageRevert,
    success=Success("data", RevertState),
    errors=(*_WITH_FILES, MessageNotFoundError),
)
CLEAR: Final = Endpoint(
    operation_id="v2.session.revert.clear",
    method="POST",
    path="/api/session/{sessionID}/revert/clear",
    group=_GROUP,
    scope="session",
    success=Success("no_content"),
    errors=_WITH_FILES,
)
COMMIT: Final = Endpoint(
    operation_id="v2.session.revert.commit",
    method="POST",
    path="/api/session/{sessionID}/revert/commit",
    group=_GROUP,
    scope="session",
    success=Success("no_content"),
    errors=_ON_SESSION,
)

ENDPOINTS: Final = (STAGE, CLEAR, COMMIT)
