"""Permission operations: pending requests, replies, and saved approvals.

Requests belong to a Session and are answered there. A Location lists those of all its Sessions.
Saved approvals belong to a Session, an agent, a project, or to everything.
"""

from typing import Annotated, Final

from msgspec import Meta

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.approval.permission import (
    PermissionDecision,
    PermissionRequest,
    PermissionSource,
    Reply,
    SavedRule,
    Scope,
)
from perdure.schema.codec import JsonObject, Payload
from perdure.schema.errors import (
    DamagedRowError,
    PermissionConflictError,
    PermissionNotFoundError,
    ServiceUnavailableError,
    SessionNotFoundError,
)
from perdure.schema.ids import ProjectID, SuppliedPermissionID

APPROVAL_SECONDS_MAX: Final = 10 * 365 * 24 * 3600


class CreatePermission(Payload, frozen=True):
    """Evaluated for `agent`; without one, for the agent of the Session."""

    action: str
    resources: tuple[str, ...]
    id: SuppliedPermissionID | None = None
    save: tuple[str, ...] | None = None
    metadata: JsonObject | None = None
    source: PermissionSource | None = None
    agent: str | None = None


class ReplyPermission(Payload, frozen=True):
    """`message` tells the model what to do instead; it is used only with `reject`.

    `scope` says how far an `always` reaches (the project, unless given), `seconds` how long.
    """

    reply: Reply
    message: str | None = None
    scope: Scope | None = None
    seconds: Annotated[int, Meta(gt=0, le=APPROVAL_SECONDS_MAX)] | None = None


class PermissionParams(Payload, frozen=True):
    request_id: SuppliedPermissionID


class ListSaved(Payload, frozen=True):
    """Without a project, the Location's is used."""

    project_id: ProjectID | None = None


_GROUP: Final = "permissions"
_ON_SESSION: Final = (*REFUSALS, SessionNotFoundError, DamagedRowError)
_ON_REQUEST: Final = (*_ON_SESSION, PermissionNotFoundError)

CREATE: Final = Endpoint(
    operation_id="v2.session.permission.create",
    method="POST",
    path="/api/session/{sessionID}/permission",
    group=_GROUP,
    scope="session",
    body=CreatePermission,
    success=Success("data", PermissionDecision),
    errors=(*_ON_SESSION, PermissionConflictError, ServiceUnavailableError),
)
LIST: Final = Endpoint(
    operation_id="v2.session.permission.list",
    method="GET",
    path="/api/session/{sessionID}/permission",
    group=_GROUP,
    scope="session",
    success=Success("data", tuple[PermissionRequest, ...]),
    errors=_ON_SESSION,
)
GET: Final = Endpoint(
    operation_id="v2.session.permission.get",
    method="GET",
    path="/api/session/{sessionID}/permission/{requestID}",
    group=_GROUP,
    scope="session",
    params=PermissionParams,
    success=Success("data", PermissionRequest),
    errors=_ON_REQUEST,
)
REPLY: Final = Endpoint(
    operation_id="v2.session.permission.reply",
    method="POST",
    path="/api/session/{sessionID}/permission/{requestID}/reply",
    group=_GROUP,
    scope="session",
    params=PermissionParams,
    body=ReplyPermission,
    success=Success("no_content"),
    errors=_ON_REQUEST,
)
LIST_REQUESTS: Final = Endpoint(
    operation_id="v2.permission.request.list",
    method="GET",
    path="/api/permission/request",
    group=_GROUP,
    scope="location",
    success=Success("location_data", tuple[PermissionRequest, ...]),
)
LIST_SAVED: Final = Endpoint(
    operation_id="v2.permission.saved.list",
    method="GET",
    path="/api/permission/saved",
    group=_GROUP,
    scope="location",
    query=ListSaved,
    success=Success("data", tuple[SavedRule, ...]),
)
REMOVE_SAVED: Final = Endpoint(
    operation_id="v2.permission.saved.remove",
    method="DELETE",
    path="/api/permission/saved/{id}",
    group=_GROUP,
    success=Success("no_content"),
)

ENDPOINTS: Final = (CREATE, LIST, GET, REPLY, LIST_REQUESTS, LIST_SAVED, REMOVE_SAVED)
