"""Names and summaries of the public client API. Each name is chosen, not derived.

Groups are plural (`sessions`). `leading` parameters may be given by position though the contract
does not require them. `shorthand` names a parameter and the single field that usually is all of it.
"""

from collections.abc import Mapping
from typing import Final

from perdure.schema import query
from perdure.schema.approval import permission
from perdure.schema.codec import JsonValue
from perdure.schema.files import fs
from perdure.schema.models import integration
from perdure.schema.session import message, prompt, request_preview, tool
from perdure.schema.settings import mcp, reference
from perdure.schema.value import Value


class PublicName(Value, kw_only=True):
    group: tuple[str, ...]
    method: str
    summary: str
    leading: tuple[str, ...] = ()
    shorthand: tuple[str, str] | None = None
    patient: bool = False
    """Whether the answer comes only when the work is done, so that clients need no timeout."""


class Alias(Value):
    """A named union. Python unions have no name, so it is given here."""

    name: str
    module: str
    type: JsonValue


def public_name(operation_id: str) -> PublicName:
    found = PUBLIC.get(operation_id)
    if found is None:
        raise ValueError(f"{operation_id} has no public name yet; choose one in openapi/names.py")
    return found


def _name(
    path: str,
    summary: str,
    *leading: str,
    shorthand: tuple[str, str] | None = None,
    patient: bool = False,
) -> PublicName:
    *group, method = path.split(".")
    return PublicName(
        group=tuple(group),
        method=method,
        summary=summary,
        leading=leading,
        shorthand=shorthand,
        patient=patient,
    )


PUBLIC: Final[Mapping[str, PublicName]] = {
    "v2.health.get": _name("health.get", "Check whether the server is up."),
    "v2.health.ready": _name(
        "health.ready", "Check whether prompts can be stored; fails with 503 if not."
    ),
    "v2.health.detail": _name(
        "health.detail", "Get a health report of the server: memory, latencies, problems."
    ),
    "v2.location.get": _name("locations.get", "Get a Location with its project."),
    "v2.location.trust": _name(
        "locations.trust",
        "Get the trust requests of a Location's configuration that are not granted.",
    ),
    "v2.mcp.list": _name(
        "mcp.list", "List the MCP servers of a Location and their states; starts nothing."
    ),
    "v2.mcp.restart": _name("mcp.restart", "Start an MCP server again.", "name"),
    "v2.mcp.login": _name(
        "mcp.login", "Begin a login to a remote MCP server; complete it as an attempt.", "name"
    ),
    "v2.mcp.logout": _name("mcp.logout", "Remove the stored login of an MCP server.", "name"),
    "v2.session.create": _name(
        "sessions.create", "Create a Session; an `id` that already exists returns that Session."
    ),
    "v2.session.list": _name(
        "sessions.list", "List Sessions, newest first. A `cursor` replaces all other parameters."
    ),
    "v2.session.active": _name(
        "sessions.active", "Get the running Sessions of the server's process, by Session id."
    ),
    "v2.session.attention": _name(
        "sessions.attention", "List the Sessions that wait for a person, then those that run."
    ),
    "v2.session.get": _name("sessions.get", "Get one Session."),
    "v2.session.switchAgent": _name(
        "sessions.switch_agent", "Switch to another agent from the next turn on."
    ),
    "v2.session.switchModel": _name(
        "sessions.switch_model", "Switch to another model from the next turn on."
    ),
    "v2.session.move": _name(
        "sessions.move",
        "Move to another directory of the project, with or without uncommitted changes.",
        shorthand=("destination", "directory"),
        patient=True,
    ),
    "v2.session.prompt": _name(
        "sessions.prompt",
        "Admit a prompt; returns the receipt. `text` is short for a `prompt` with only text.",
        shorthand=("prompt", "text"),
    ),
    "v2.session.interrupt": _name(
        "sessions.interrupt", "Interrupt a running Session; no-op if it is idle."
    ),
    "v2.session.compact": _name(
        "sessions.compact",
        "Prune or summarise older messages to free context; returns when done.",
        patient=True,
    ),
    "v2.session.compaction": _name(
        "sessions.compact_with_report",
        "Free context as `compact` does; returns how much that freed, or why it was nothing.",
        patient=True,
    ),
    "v2.session.wait": _name("sessions.wait", "Wait until the Session is idle.", patient=True),
    "v2.session.context": _name("sessions.context", "Get the messages that the model is shown."),
    "v2.session.providerContext": _name(
        "sessions.provider_context",
        "Get what the model was told, what it is told next, and the next request.",
    ),
    "v2.session.history": _name(
        "sessions.history", "Read durable events after a sequence, up to a limit."
    ),
    "v2.session.events": _name(
        "sessions.events",
        "Follow durable events after a sequence. To resume, continue after the last one.",
    ),
    "v2.session.rename": _name("sessions.rename", "Change the title of a Session."),
    "v2.session.delete": _name(
        "sessions.delete", "Delete a Session permanently, with the Sessions that it started."
    ),
    "v2.session.archive": _name("sessions.archive", "Archive a Session; it can still be read."),
    "v2.session.unarchive": _name("sessions.unarchive", "Restore a Session from the archive."),
    "v2.session.fork": _name(
        "sessions.fork",
        "Create a Session with a copy of this one, up to a message or a sequence.",
    ),
    "v2.session.resume": _name("sessions.resume", "Run pending prompts."),
    "v2.session.snapshot": _name(
        "sessions.snapshot",
        "Get the Session, its newest messages and its inbox at one `seq`; then follow `events`.",
    ),
    "v2.session.messages": _name(
        "sessions.messages", "List projected messages, newest first by default."
    ),
    "v2.session.message": _name("sessions.message", "Get one projected message."),
    "v2.session.message.exclude": _name(
        "sessions.exclude_message",
        "Exclude a message or one tool result from what the model is sent, or restore it.",
    ),
    "v2.session.usage": _name(
        "sessions.usage", "Get the usage of a Session alone and with its children, by model."
    ),
    "v2.session.budget": _name(
        "sessions.set_budget",
        "Set the budget of a Session and its children, replacing the previous one.",
    ),
    "v2.session.rules": _name(
        "sessions.set_rules",
        "Set the permission rules of a Session and its children, replacing the previous ones.",
    ),
    "v2.session.mcp.list": _name(
        "sessions.mcp_servers", "List the MCP servers of a Session, those of its Location too."
    ),
    "v2.session.mcp.set": _name(
        "sessions.set_mcp_servers",
        "Give a Session MCP servers of its own, replacing the previous ones.",
    ),
    "v2.session.mcp.restart": _name(
        "sessions.restart_mcp_server", "Start an MCP server of a Session again.", "name"
    ),
    "v2.session.mcp.login": _name(
        "sessions.login_mcp_server", "Begin a login to an MCP server of a Session.", "name"
    ),
    "v2.session.children": _name(
        "sessions.children",
        "List the child Sessions of its subagents, in order of creation.",
    ),
    "v2.session.todo": _name("sessions.todos", "Get the todo list of a Session."),
    "v2.session.recovery.get": _name(
        "sessions.recovery.get",
        "Get whether the Session waits for a recovery decision after a crash.",
    ),
    "v2.session.recovery.decide": _name(
        "sessions.recovery.decide",
        "Retry or abandon a request that may have been sent; 409 if nothing waits.",
    ),
    "v2.session.revert.stage": _name(
        "sessions.revert.stage",
        "Stage a revert to a message; staging again moves the boundary.",
    ),
    "v2.session.revert.clear": _name(
        "sessions.revert.clear", "Clear a staged revert; no-op without one."
    ),
    "v2.session.revert.commit": _name(
        "sessions.revert.commit",
        "Commit a staged revert, removing later messages; no-op without one.",
    ),
    "v2.session.inbox.list": _name(
        "sessions.inbox.list",
        "List pending prompts: steers, then the queue, in order of promotion.",
    ),
    "v2.session.inbox.revise": _name(
        "sessions.inbox.revise",
        "Change a pending prompt or its delivery; `steer` makes a queued prompt join now.",
    ),
    "v2.session.inbox.cancel": _name("sessions.inbox.cancel", "Cancel a pending prompt."),
    "v2.session.inbox.reorder": _name("sessions.inbox.reorder", "Reorder these pending prompts."),
    "v2.session.job.list": _name("sessions.jobs.list", "List background jobs, newest first."),
    "v2.session.job.get": _name("sessions.jobs.get", "Get a job with the end of its output."),
    "v2.session.job.cancel": _name(
        "sessions.jobs.cancel", "End a job and its processes; the Session is notified."
    ),
    "v2.session.permission.create": _name(
        "sessions.permissions.create",
        "Evaluate the rules; returns an id and the effect. With `ask` a request is pending.",
    ),
    "v2.session.permission.list": _name(
        "sessions.permissions.list",
        "List pending requests of a Session and its subagents; `sessionID` names the Session.",
    ),
    "v2.session.permission.get": _name("sessions.permissions.get", "Get one pending request."),
    "v2.session.permission.reply": _name(
        "sessions.permissions.reply",
        "Reply to a request. `reject` stops the run, or with a `message` tells the model why.",
    ),
    "v2.session.question.list": _name(
        "sessions.questions.list",
        "List pending questions of a Session and its subagents; `sessionID` names the Session.",
    ),
    "v2.session.question.reply": _name(
        "sessions.questions.reply",
        "Answer with one list of labels per question, in order; an empty one leaves it open.",
    ),
    "v2.session.question.reject": _name(
        "sessions.questions.reject", "Reject the questions; the run that asked stops."
    ),
    "v2.permission.request.list": _name(
        "permissions.requests", "List pending permission requests in all Sessions of a Location."
    ),
    "v2.permission.saved.list": _name(
        "permissions.saved",
        "List saved approvals of a project, by default the Location's.",
        "project_id",
    ),
    "v2.permission.saved.remove": _name(
        "permissions.remove_saved", "Remove a saved approval; no error if it does not exist."
    ),
    "v2.question.request.list": _name(
        "questions.requests", "List pending questions in all Sessions of a Location."
    ),
    "v2.event.subscribe": _name(
        "events.subscribe", "Follow the live events of the server. Nothing is replayed."
    ),
    "v2.agent.list": _name("agents.list", "List the agents of a Location."),
    "v2.model.list": _name("models.list", "List the models that a Location can use."),
    "v2.provider.list": _name("providers.list", "List the providers of a Location."),
    "v2.provider.get": _name("providers.get", "Get one provider."),
    "v2.integration.list": _name("integrations.list", "List providers that accept a credential."),
    "v2.integration.get": _name("integrations.get", "Get one provider that accepts a credential."),
    "v2.integration.connect.key": _name(
        "integrations.connect_key",
        "Store a key, replacing any stored one; it is sent only to this provider's address.",
    ),
    "v2.integration.connect.oauth": _name(
        "integrations.connect_oauth", "Start a login: open the returned `url` in a browser."
    ),
    "v2.integration.attempt.status": _name(
        "integrations.attempt", "Get the status of a login attempt."
    ),
    "v2.integration.attempt.complete": _name(
        "integrations.complete_attempt", "Complete a login, with a code if it asks for one.", "code"
    ),
    "v2.integration.attempt.cancel": _name(
        "integrations.cancel_attempt", "Cancel a login; no error if it does not exist."
    ),
    "v2.credential.update": _name(
        "credentials.update", "Rename a stored credential. Its secret can never be read."
    ),
    "v2.credential.remove": _name(
        "credentials.remove", "Remove a credential; no error if it does not exist."
    ),
    "v2.skill.list": _name("skills.list", "List the skills of a Location, with their texts."),
    "v2.reference.list": _name("references.list", "List the references of a Location."),
    "v2.command.list": _name("commands.list", "List the slash commands of a Location."),
    "v2.fs.read": _name("files.read", "Read a file of the Location.", "path"),
    "v2.fs.list": _name("files.list", "List a directory of the Location.", "path"),
    "v2.fs.find": _name("files.find", "Find paths similar to `query`, best first."),
    "v2.vcs.get": _name("vcs.get", "Get the branch of a Location and its default branch."),
    "v2.vcs.status": _name("vcs.status", "List the files that are not committed."),
    "v2.vcs.diff": _name(
        "vcs.diff", "Get the diffs of files against the checked-out commit or the default branch."
    ),
    "v2.project.list": _name("projects.list", "List the projects that Sessions worked in."),
    "v2.project.current": _name("projects.current", "Get the project of a Location."),
    "v2.model.default": _name(
        "models.default", "Get the model that a Session uses if none was chosen."
    ),
    "v2.session.command": _name(
        "sessions.command", "Run a slash command by name: its template becomes a prompt."
    ),
    "v2.session.init": _name(
        "sessions.init", "Have the model write or improve AGENTS.md, as the command `init` does."
    ),
    "v2.session.shell": _name(
        "sessions.shell",
        "Run a command in the Session's directory and tell its model; returns when it ends.",
        patient=True,
    ),
    "v2.session.diff": _name(
        "sessions.diff", "Get the files that a Session changed, as unified diffs."
    ),
    "v2.fs.search": _name(
        "files.search", "Search the files of a Location for a regular expression, line by line."
    ),
    "v2.pty.list": _name(
        "terminals.list", "List the running and recently exited terminals of a Location."
    ),
    "v2.pty.create": _name(
        "terminals.create",
        "Start a program in a terminal, by default the user's shell.",
        "command",
        "args",
    ),
    "v2.pty.get": _name("terminals.get", "Get one terminal."),
    "v2.pty.update": _name("terminals.update", "Rename or resize a terminal."),
    "v2.pty.remove": _name("terminals.remove", "End the program and remove the terminal."),
    "v2.pty.connectToken": _name(
        "terminals.connect_token",
        "Create a short-lived ticket for one connection by another client.",
    ),
    "v2.pty.connect": _name("terminals.connect", "Connect to a terminal over a WebSocket."),
}

ALIASES: Final = (
    Alias("Delivery", "perdure.schema.session.prompt", prompt.Delivery),
    Alias("Reply", "perdure.schema.approval.permission", permission.Reply),
    Alias("Effect", "perdure.schema.approval.permission", permission.Effect),
    Alias("McpStatus", "perdure.schema.settings.mcp", mcp.McpStatus),
    Alias("Order", "perdure.schema.query", query.Order),
    Alias("EntryType", "perdure.schema.files.fs", fs.EntryType),
    Alias("ToolContent", "perdure.schema.session.tool", tool.ToolContent),
    Alias("ToolState", "perdure.schema.session.tool", tool.ToolState),
    Alias("AssistantPart", "perdure.schema.session.message", message.AssistantPart),
    Alias("SessionMessage", "perdure.schema.session.message", message.SessionMessage),
    Alias("RequestPart", "perdure.schema.session.request_preview", request_preview.RequestPart),
    Alias("LoginPrompt", "perdure.schema.models.integration", integration.LoginPrompt),
    Alias("IntegrationMethod", "perdure.schema.models.integration", integration.IntegrationMethod),
    Alias("Connection", "perdure.schema.models.integration", integration.Connection),
    Alias("AttemptStatus", "perdure.schema.models.integration", integration.AttemptStatus),
    Alias("ReferenceSource", "perdure.schema.settings.reference", reference.ReferenceSource),
)
