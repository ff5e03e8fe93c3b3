"""Integration operations: list providers, and connect one by key or by login.

A login is an attempt that is queried, completed or cancelled by its id.
"""

from typing import Final

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.codec import ConfidentialPayload, Payload
from perdure.schema.errors import (
    AttemptNotFoundError,
    IntegrationNotFoundError,
    ServiceUnavailableError,
)
from perdure.schema.models.integration import Attempt, AttemptStatus, IntegrationInfo


class ConnectKey(ConfidentialPayload, frozen=True):
    key: str
    label: str | None = None


class ConnectOAuth(Payload, frozen=True):
    """`inputs` answers the prompts of the method, by their keys."""

    method_id: str
    inputs: dict[str, str]
    label: str | None = None


class CompleteAttempt(Payload, frozen=True):
    code: str | None = None

    def __repr__(self) -> str:
        return "CompleteAttempt(...)"


_GROUP: Final = "integrations"
_ON_STORED: Final = (*REFUSALS, ServiceUnavailableError)
_ON_INTEGRATION: Final = (*_ON_STORED, IntegrationNotFoundError)
_ON_ATTEMPT: Final = (*REFUSALS, AttemptNotFoundError)

LIST: Final = Endpoint(
    operation_id="v2.integration.list",
    method="GET",
    path="/api/integration",
    group=_GROUP,
    scope="location",
    success=Success("location_data", tuple[IntegrationInfo, ...]),
    errors=_ON_STORED,
)
GET: Final = Endpoint(
    operation_id="v2.integration.get",
    method="GET",
    path="/api/integration/{integrationID}",
    group=_GROUP,
    scope="location",
    success=Success("location_data", IntegrationInfo),
    errors=_ON_INTEGRATION,
)
CONNECT_KEY: Final = Endpoint(
    operation_id="v2.integration.connect.key",
    method="POST",
    path="/api/integration/{integrationID}/connect/key",
    group=_GROUP,
    scope="location",
    body=ConnectKey,
    success=Success("no_content"),
    errors=_ON_INTEGRATION,
)
CONNECT_OAUTH: Final = Endpoint(
    operation_id="v2.integration.connect.oauth",
    method="POST",
    path="/api/integration/{integrationID}/connect/oauth",
    group=_GROUP,
    scope="location",
    body=ConnectOAuth,
    success=Success("location_data", Attempt),
    errors=_ON_INTEGRATION,
)
ATTEMPT_STATUS: Final = Endpoint(
    operation_id="v2.integration.attempt.status",
    method="GET",
    path="/api/integration/attempt/{attemptID}",
    group=_GROUP,
    scope="location",
    success=Success("location_data", AttemptStatus),
    errors=_ON_ATTEMPT,
)
ATTEMPT_CANCEL: Final = Endpoint(
    operation_id="v2.integration.attempt.cancel",
    method="DELETE",
    path="/api/integration/attempt/{attemptID}",
    group=_GROUP,
    scope="location",
    success=Success("no_content"),
)
ATTEMPT_COMPLETE: Final = Endpoint(
    operation_id="v2.integration.attempt.complete",
    method="POST",
    path="/api/integration/attempt/{attemptID}/complete",
    group=_GROUP,
    scope="location",
    body=CompleteAttempt,
    body_optional=True,
    success=Success("no_content"),
    errors=(*_ON_ATTEMPT, ServiceUnavailableError),
)

ENDPOINTS: Final = (
    LIST,
    GET,
    CONNECT_KEY,
    CONNECT_OAUTH,
    ATTEMPT_STATUS,
    ATTEMPT_CANCEL,
    ATTEMPT_COMPLETE,
)
