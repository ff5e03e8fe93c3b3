"""The whole HTTP contract: every endpoint there is, in reading order."""

from typing import Final

from perdure.protocol import event, health, location
from perdure.protocol.approval import permission, question
from perdure.protocol.endpoint import Endpoint
from perdure.protocol.files import fs, pty
from perdure.protocol.models import catalog, credential, integration
from perdure.protocol.session import (
    changes,
    children,
    inbox,
    job,
    message,
    recovery,
    revert,
    session,
    todo,
    usage,
)
from perdure.protocol.settings import agent, command, reference, skill

API: Final[tuple[Endpoint, ...]] = (
    *health.ENDPOINTS,
    *location.ENDPOINTS,
    *session.ENDPOINTS,
    *changes.ENDPOINTS,
    *revert.ENDPOINTS,
    *recovery.ENDPOINTS,
    *inbox.ENDPOINTS,
    *message.ENDPOINTS,
    *todo.ENDPOINTS,
    *job.ENDPOINTS,
    *children.ENDPOINTS,
    *usage.ENDPOINTS,
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
