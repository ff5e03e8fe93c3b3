"""The whole HTTP contract: every endpoint there is, in reading order."""

from typing import Final

from perdure.protocol import (
    agent,
    catalog,
    event,
    health,
    location,
    message,
    permission,
    question,
    reference,
    revert,
    session,
    skill,
)
from perdure.protocol.endpoint import Endpoint

API: Final[tuple[Endpoint, ...]] = (
    *health.ENDPOINTS,
    *location.ENDPOINTS,
    *session.ENDPOINTS,
    *revert.ENDPOINTS,
    *message.ENDPOINTS,
    *permission.ENDPOINTS,
    *question.ENDPOINTS,
    *event.ENDPOINTS,
    *agent.ENDPOINTS,
    *catalog.ENDPOINTS,
    *skill.ENDPOINTS,
    *reference.ENDPOINTS,
)
