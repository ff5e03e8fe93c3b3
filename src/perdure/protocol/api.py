"""The whole HTTP contract: every endpoint there is, in reading order."""

from typing import Final

from perdure.protocol import event, health, location, project
from perdure.protocol.approval import permission, question
from perdure.protocol.endpoint import Endpoint
from perdure.protocol.files import fs, pty, vcs
from perdure.protocol.models import catalog, credential, integration
from perdure.protocol.session import (
    attention,
    changes,
    children,
    diff,
    inbox,
    job,
    message,
    recovery,
    revert,
    rules,
    session,
    shell,
    todo,
    usage,
)
from perdure.protocol.session import command as session_command
from perdure.protocol.session import mcp as session_mcp
from perdure.protocol.settings import agent, command, mcp, reference, skill

API: Final[tuple[Endpoint, ...]] = (
    *health.ENDPOINTS,
    *location.ENDPOINTS,
    *project.ENDPOINTS,
    *session.ENDPOINTS,
    *attention.ENDPOINTS,
    *changes.ENDPOINTS,
    *revert.ENDPOINTS,
    *recovery.ENDPOINTS,
    *inbox.ENDPOINTS,
    *message.ENDPOINTS,
    *todo.ENDPOINTS,
    *job.ENDPOINTS,
    *children.ENDPOINTS,
    *usage.ENDPOINTS,
    *diff.ENDPOINTS,
    *shell.ENDPOINTS,
    *session_command.ENDPOINTS,
    *rules.ENDPOINTS,
    *session_mcp.ENDPOINTS,
    *permission.ENDPOINTS,
    *question.ENDPOINTS,
    *event.ENDPOINTS,
    *agent.ENDPOINTS,
    *catalog.ENDPOINTS,
    *integration.ENDPOINTS,
    *credential.ENDPOINTS,
    *skill.ENDPOINTS,
    *mcp.ENDPOINTS,
    *reference.ENDPOINTS,
    *command.ENDPOINTS,
    *fs.ENDPOINTS,
    *vcs.ENDPOINTS,
    *pty.ENDPOINTS,
)
