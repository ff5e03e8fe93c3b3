"""The whole HTTP contract: every endpoint there is, in reading order."""

from typing import Final

from perdure.protocol import (
    agent,
    catalog,
    command,
    credential,
    event,
    fs,
    health,
    inbox,
    integration,
    location,
    message,
    permission,
    pty,
    question,
    reference,
    revert,
    session,
    session_change,
    skill,
    todo,
)
from perdure.protocol.endpoint import Endpoint

API: Final[tuple[Endpoint, ...]] = (
    *health.ENDPOINTS,
    *location.ENDPOINTS,
    *session.ENDPOINTS,
    *session_change.ENDPOINTS,
    *revert.ENDPOINTS,
    *inbox.ENDPOINTS,
    *message.ENDPOINTS,
    *todo.ENDPOINTS,
    *permission.ENDPOINTS,
    *question.ENDPOINTS,
    *event.ENDPOINTS,
    *agent.ENDPOINTS,
    *catalog.ENDPOINTS,
    *integration.ENDPOINTS,
    *credential.ENDPOINTS,
    *skill.ENDPOINTS,
    *reference.ENDPOINTS,
    *command.ENDPOINTS,
    *fs.ENDPOINTS,
    *pty.ENDPOINTS,
)
