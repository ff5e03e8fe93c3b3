"""V1 routes that are known and not offered: each answers 400 and says why.

An unknown path answers 404, which a client may take for a server of another kind.
"""

from typing import Final

from perdure.protocol.endpoint import Endpoint, Method
from perdure.protocol.v1.endpoint import declare

_SHARING: Final = "Sharing is not offered: this server sends no conversation to other machines"
_WORKSPACES: Final = "Workspaces are not offered: a Session works in a directory of this machine"
_MCP: Final = (
    "Which MCP servers there are is decided by the configuration, because they are programs that"
    " run: edit `mcp` in opencode.json; a change counts from the next turn on"
)
_BROWSER: Final = (
    "The server opens no browser: begin with POST /mcp/{name}/auth, and open the address that it"
    " answers"
)
_COPIES: Final = "Copies of a project are not offered: create a work tree with git"
_SYNC: Final = "Synchronising servers is not offered: the log of a Session has one owner"
_CONSOLE: Final = "OpenCode accounts are not offered: this server belongs to no organisation"
_CONFIG: Final = (
    "The configuration cannot be changed over HTTP: it grants permissions. Edit opencode.json in"
    " the project or in the configuration directory; a change counts from the next request on"
)
_HISTORY: Final = (
    "History is not rewritten: the log of a Session only grows. Revert to an earlier message, or"
    " exclude a message from what the model is sent (PATCH /api/session/{sessionID}/message/"
    "{messageID})"
)
_CONTROL: Final = (
    "Remote control of the terminal client by a queue is not offered; use /tui/publish"
)
_UPGRADE: Final = (
    "The server does not upgrade itself; install a new version with your package manager"
)
_BACKGROUND: Final = (
    "A call that runs cannot be sent to the background; the model starts such jobs itself"
)
_PROJECT: Final = "Names, icons and start commands of projects are not stored"
_GIT: Final = "The server does not change repositories; run git in a terminal"

REASONS: Final[tuple[tuple[Method, str, str, str], ...]] = (
    ("POST", "/session/{sessionID}/share", "session.share", _SHARING),
    ("DELETE", "/session/{sessionID}/share", "session.unshare", _SHARING),
    ("DELETE", "/session/{sessionID}/message/{messageID}", "session.deleteMessage", _HISTORY),
    (
        "DELETE",
        "/session/{sessionID}/message/{messageID}/part/{partID}",
        "part.delete",
        _HISTORY,
    ),
    ("PATCH", "/session/{sessionID}/message/{messageID}/part/{partID}", "part.update", _HISTORY),
    ("PATCH", "/config", "config.update", _CONFIG),
    ("PATCH", "/global/config", "global.config.update", _CONFIG),
    ("POST", "/global/upgrade", "global.upgrade", _UPGRADE),
    ("PATCH", "/project/{projectID}", "project.update", _PROJECT),
    ("POST", "/project/git/init", "project.initGit", _GIT),
    ("POST", "/vcs/apply", "vcs.apply", _GIT),
    ("POST", "/mcp", "mcp.add", _MCP),
    ("POST", "/mcp/{name}/auth/authenticate", "mcp.auth.authenticate", _BROWSER),
    ("POST", "/mcp/{name}/disconnect", "mcp.disconnect", _MCP),
    (
        "POST",
        "/experimental/session/{sessionID}/background",
        "experimental.session.background",
        _BACKGROUND,
    ),
    ("GET", "/tui/control/next", "tui.control.next", _CONTROL),
    ("POST", "/tui/control/response", "tui.control.response", _CONTROL),
    ("POST", "/sync/start", "sync.start", _SYNC),
    ("POST", "/sync/replay", "sync.replay", _SYNC),
    ("POST", "/sync/steal", "sync.steal", _SYNC),
    ("POST", "/sync/history", "sync.history.list", _SYNC),
    ("GET", "/experimental/console/orgs", "experimental.console.listOrgs", _CONSOLE),
    ("POST", "/experimental/console/switch", "experimental.console.switchOrg", _CONSOLE),
    ("POST", "/experimental/workspace", "experimental.workspace.create", _WORKSPACES),
    ("POST", "/experimental/workspace/sync-list", "experimental.workspace.syncList", _WORKSPACES),
    ("POST", "/experimental/workspace/warp", "experimental.workspace.warp", _WORKSPACES),
    ("DELETE", "/experimental/workspace/{id}", "experimental.workspace.remove", _WORKSPACES),
    ("POST", "/experimental/worktree", "worktree.create", _COPIES),
    ("DELETE", "/experimental/worktree", "worktree.remove", _COPIES),
    ("POST", "/experimental/worktree/reset", "worktree.reset", _COPIES),
    ("POST", "/experimental/project/{projectID}/copy", "projectCopy.create", _COPIES),
    ("DELETE", "/experimental/project/{projectID}/copy", "projectCopy.remove", _COPIES),
    ("POST", "/experimental/project/{projectID}/copy/refresh", "projectCopy.refresh", _COPIES),
    (
        "POST",
        "/experimental/project/{projectID}/copy/generate-name",
        "projectCopy.generateName",
        _COPIES,
    ),
)

ENDPOINTS: Final[tuple[Endpoint, ...]] = tuple(
    declare(method, path, operation, bool) for method, path, operation, _ in REASONS
)
WHY: Final = {f"v1.{operation}": reason for _, _, operation, reason in REASONS}
"""The reason of each, by its operation id."""
