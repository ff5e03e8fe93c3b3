"""Parts that all V1 endpoints share: the version of the contract, and their declaration."""

from typing import Final

from perdure.protocol.endpoint import REFUSALS, Endpoint, Method, Scope, Success
from perdure.schema.codec import JsonValue, Payload
from perdure.schema.errors import (
    DamagedRowError,
    NotFoundError,
    ServiceUnavailableError,
    SessionBusyError,
    SessionNotFoundError,
)

CONTRACT_VERSION: Final = "1.18.33"
"""The version of OpenCode whose V1 routes are served; sent where V1 names a version."""


def declare(
    method: Method,
    path: str,
    operation: str,
    result: JsonValue,
    *,
    params: type[Payload] | None = None,
    query: type[Payload] | None = None,
    body: type[Payload] | None = None,
    body_optional: bool = False,
) -> Endpoint:
    """An Endpoint whose answer is the value itself. One below a Session must name a real one."""
    scope: Scope = "session" if "{sessionID}" in path else "none"
    return Endpoint(
        operation_id=f"v1.{operation}",
        method=method,
        path=path,
        group="v1",
        scope=scope,
        success=Success("no_content") if result is None else Success("bare", result),
        params=params,
        query=query,
        body=body,
        body_optional=body_optional,
        errors=(
            *REFUSALS,
            NotFoundError,
            SessionNotFoundError,
            SessionBusyError,
            DamagedRowError,
            ServiceUnavailableError,
        ),
    )
