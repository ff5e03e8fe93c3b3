"""Operations on a Session as a whole: rename, archive, fork, delete, resume, snapshot.

These are extensions of the published contract, in its style.
"""

from typing import Annotated, Final

from msgspec import Meta

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.protocol.session.message import MESSAGES_LIMIT_MAX
from perdure.schema.codec import Payload
from perdure.schema.errors import (
    DamagedRowError,
    MessageNotFoundError,
    ServiceUnavailableError,
    SessionNotFoundError,
)
from perdure.schema.ids import SuppliedMessageID, SuppliedSessionID
from perdure.schema.session.session import SessionInfo
from perdure.schema.session.snapshot import SessionSnapshot


class RenameSession(Payload, frozen=True):
    title: str


class ForkSession(Payload, frozen=True):
    """Copies up to and including a message or a sequence; everything if neither is given."""

    id: SuppliedSessionID | None = None
    message_id: SuppliedMessageID | None = None
    seq: Annotated[int, Meta(ge=0)] | None = None


class TakeSnapshot(Payload, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=MESSAGES_LIMIT_MAX)] | None = None


_GROUP: Final = "sessions"
_ON_SESSION: Final = (*REFUSALS, SessionNotFoundError, DamagedRowError)

RENAME: Final = Endpoint(
    operation_id="v2.session.rename",
    method="PATCH",
    path="/api/session/{sessionID}",
    other_routes=(("POST", "/api/session/{sessionID}/rename"),),
    group=_GROUP,
    scope="session",
    body=RenameSession,
    success=Success("data", SessionInfo),
    errors=_ON_SESSION,
)
DELETE: Final = Endpoint(
    operation_id="v2.session.delete",
    method="DELETE",
    path="/api/session/{sessionID}",
    group=_GROUP,
    scope="session",
    success=Success("no_content"),
    errors=(*_ON_SESSION, ServiceUnavailableError),
)
ARCHIVE: Final = Endpoint(
    operation_id="v2.session.archive",
    method="POST",
    path="/api/session/{sessionID}/archive",
    group=_GROUP,
    scope="session",
    success=Success("no_content"),
    errors=_ON_SESSION,
)
UNARCHIVE: Final = Endpoint(
    operation_id="v2.session.unarchive",
    method="POST",
    path="/api/session/{sessionID}/unarchive",
    group=_GROUP,
    scope="session",
    success=Success("no_content"),
    errors=_ON_SESSION,
)
FORK: Final = Endpoint(
    operation_id="v2.session.fork",
    method="POST",
    path="/api/session/{sessionID}/fork",
    group=_GROUP,
    scope="session",
    body=ForkSession,
    body_optional=True,
    success=Success("data", SessionInfo),
    errors=(*_ON_SESSION, MessageNotFoundError),
)
RESUME: Final = Endpoint(
    operation_id="v2.session.resume",
    method="POST",
    path="/api/session/{sessionID}/resume",
    group=_GROUP,
    scope="session",
    success=Success("no_content"),
    errors=_ON_SESSION,
)
SNAPSHOT: Final = Endpoint(
    operation_id="v2.session.snapshot",
    method="GET",
    path="/api/session/{sessionID}/snapshot",
    group=_GROUP,
    scope="session",
    query=TakeSnapshot,
    success=Success("data", SessionSnapshot),
    errors=_ON_SESSION,
)

ENDPOINTS: Final = (RENAME, DELETE, ARCHIVE, UNARCHIVE, FORK, RESUME, SNAPSHOT)
