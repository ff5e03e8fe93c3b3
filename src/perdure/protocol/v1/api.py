"""The whole V1 contract: every V1 endpoint, in reading order; the last are those not offered."""

from typing import Final

from perdure.protocol.endpoint import Endpoint
from perdure.protocol.v1 import (
    approval,
    catalog,
    credential,
    event,
    file,
    instance,
    location,
    mcp,
    message,
    pty,
    refused,
    session,
    tui,
    work,
)

V1_API: Final[tuple[Endpoint, ...]] = (
    *instance.ENDPOINTS,
    *catalog.ENDPOINTS,
    *location.ENDPOINTS,
    *session.ENDPOINTS,
    *message.ENDPOINTS,
    *work.ENDPOINTS,
    *approval.ENDPOINTS,
    *credential.ENDPOINTS,
    *file.ENDPOINTS,
    *mcp.ENDPOINTS,
    *pty.ENDPOINTS,
    *tui.ENDPOINTS,
    *event.ENDPOINTS,
    *refused.ENDPOINTS,
)
