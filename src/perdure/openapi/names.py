"""What the public client calls things. Each name was chosen; none follows from a server's id.

Groups are plural (`sessions`), because a group holds many of its kind. `leading` parameters may be
given by position though the contract does not require them. `shorthand` names a parameter and the
one field of it that usually is all of it.
"""

from collections.abc import Mapping
from typing import Final

from perdure.schema import query
from perdure.schema.approval import permission
from perdure.schema.codec import JsonValue
from perdure.schema.files import fs
from perdure.schema.models import integration
from perdure.schema.session import message, prompt, request_preview, tool
from perdure.schema.settings import reference
from perdure.schema.value import Value


class PublicName(Value, kw_only=True):
    group: tuple[str, ...]
    method: str
    summary: str
    leading: tuple[str, ...] = ()
    shorthand: tuple[str, str] | None = None
    patient: bool = False
    """The answer comes when the work is over, however long that takes."""


class Alias(Value):
    """A union that has a name of its own. Unions do not know theirs, so that it stands here."""

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
    "v2.health.get": _name("health.get", "Whether the server is up."),
    "v2.health.detail": _name(
        "health.detail", "How the server is, for whoever operates it: memory, latencies, problems."
    ),
    "v2.location.get": _name("locations.get", "The Location with its project."),
    "v2.location.trust": _name(
        "locations.trust", "What the Location's configuration asks for and nobody granted."
    ),
    "v2.session.create": _name(
        "sessions.create", "A new Session; an `id` that exists gives the one that has it."
    ),
    "v2.session.list": _name(
        "sessions.list", "Sessions, the newest first. A `cursor` is a whole query and stands alone."
    ),
    "v2.session.active": _name(
        "sessions.active", "What the server's own process is running, by Session id."
    ),
    "v2.session.get": _name("sessions.get", "One Session."),
    "v2.session.switchAgent": _name(
        "sessions.switch_agent", "Work with another agent from the next turn on."
    ),
    "v2.session.switchModel": _name(
        "sessions.switch_model", "Work with another model from the next turn on."
    ),
    "v2.session.move": _name(
        "sessions.move",
        "Work in another directory of the project, with or without uncommitted changes.",
        shorthand=("destination", "directory"),
        patient=True,
    ),
    "v2.session.prompt": _name(
        "sessions.prompt",
        "Admit a prompt; the receipt. `text` is short for a `prompt` of nothing else.",
        shorthand=("prompt", "text"),
    ),
    "v2.session.interrupt": _name(
        "sessions.interrupt", "Stop what runs. An idle Session stays as it is."
    ),
    "v2.session.compact": _name(
        "sessions.compact",
        "Condense the older part of what the model is shown; returns when it is done.",
        patient=True,
    ),
    "v2.session.wait": _name(
        "sessions.wait", "Return when nothing runs for this Session.", patient=True
    ),
    "v2.session.context": _name("sessions.context", "The messages that the model is shown."),
    "v2.session.providerContext": _name(
        "sessions.provider_context",
        "What the model was told, would be told next, and the request as it stands.",
    ),
    "v2.session.history": _name(
        "sessions.history", "Durable events after a sequence, as many as asked for."
    ),
    "v2.session.events": _name(
        "sessions.events",
        "Durable events after a sequence, then those to come. To resume, ask after the last.",
    ),
    "v2.session.rename": _name("sessions.rename", "Give a Session another title."),
    "v2.session.delete": _name(
        "sessions.delete", "Everything of it, for good, with the Sessions that it started."
    ),
    "v2.session.archive": _name("sessions.archive", "Put a Session away; it can still be read."),
    "v2.session.unarchive": _name("sessions.unarchive", "Take a Session out of the archive."),
    "v2.session.fork": _name(
        "sessions.fork",
        "A new Session that begins with a copy of this one, up to a message or a sequence.",
    ),
    "v2.session.resume": _name("sessions.resume", "Run what is pending."),
    "v2.session.snapshot": _name(
        "sessions.snapshot",
        "The Session, its newest messages and its inbox at one `seq`; follow `events` after it.",
    ),
    "v2.session.messages": _name(
        "sessions.messages", "Projected messages, the newest first unless asked otherwise."
    ),
    "v2.session.message": _name("sessions.message", "One projected message."),
    "v2.session.usage": _name(
        "sessions.usage", "What it has used by itself and with all below it, model by model."
    ),
    "v2.session.budget": _name(
        "sessions.set_budget", "What it may use with all below it, in place of any bound before."
    ),
    "v2.session.children": _name(
        "sessions.children",
        "The Sessions that its subagents work in, in the order of their making.",
    ),
    "v2.session.todo": _name("sessions.todos", "What the model means to do, as it last said."),
    "v2.session.recovery.get": _name(
        "sessions.recovery.get", "Whether a crash left something for a person to decide."
    ),
    "v2.session.recovery.decide": _name(
        "sessions.recovery.decide",
        "Send what may have been sent again, or give it up; 409 when nothing waits.",
    ),
    "v2.session.revert.stage": _name(
        "sessions.revert.stage",
        "Make a message the last that will stay; staging again moves the boundary.",
    ),
    "v2.session.revert.clear": _name(
        "sessions.revert.clear", "Keep everything. Without a staged revert this does nothing."
    ),
    "v2.session.revert.commit": _name(
        "sessions.revert.commit",
        "Take away what came later. Without a staged revert this does nothing.",
    ),
    "v2.session.inbox.list": _name(
        "sessions.inbox.list", "Steers, then the queue, each in the order of promotion."
    ),
    "v2.session.inbox.revise": _name(
        "sessions.inbox.revise",
        "Say something else, or deliver it otherwise; `steer` lets a queued prompt join now.",
    ),
    "v2.session.inbox.cancel": _name(
        "sessions.inbox.cancel", "Take back a prompt that was not promoted yet."
    ),
    "v2.session.inbox.reorder": _name(
        "sessions.inbox.reorder", "Let these exchange their places, to be promoted in this order."
    ),
    "v2.session.job.list": _name("sessions.jobs.list", "Commands in the background, newest first."),
    "v2.session.job.get": _name("sessions.jobs.get", "A job, with the end of what it printed."),
    "v2.session.job.cancel": _name(
        "sessions.jobs.cancel", "End a job and all that it started; the Session is told."
    ),
    "v2.session.permission.create": _name(
        "sessions.permissions.create",
        "An id and the effect of the rules. A request of that id waits only after `ask`.",
    ),
    "v2.session.permission.list": _name(
        "sessions.permissions.list",
        "Requests of a Session and its subagents that wait; `sessionID` says whose.",
    ),
    "v2.session.permission.get": _name("sessions.permissions.get", "One request that waits."),
    "v2.session.permission.reply": _name(
        "sessions.permissions.reply",
        "Settle a request. A `reject` stops the run, or with a `message` tells the model why.",
    ),
    "v2.session.question.list": _name(
        "sessions.questions.list",
        "What a Session and its subagents want to know from a person; `sessionID` says whose.",
    ),
    "v2.session.question.reply": _name(
        "sessions.questions.reply",
        "A list of labels for each question, in order; an empty one leaves it open.",
    ),
    "v2.session.question.reject": _name(
        "sessions.questions.reject", "Do not answer. The run that asked stops."
    ),
    "v2.permission.request.list": _name(
        "permissions.requests", "Requests that wait in all Sessions of a Location."
    ),
    "v2.permission.saved.list": _name(
        "permissions.saved",
        "Approvals of a project; without one, of the project that the Location belongs to.",
        "project_id",
    ),
    "v2.permission.saved.remove": _name(
        "permissions.remove_saved", "Forget an approval. One that is gone already is no error."
    ),
    "v2.question.request.list": _name(
        "questions.requests", "What the Sessions of a Location want to know."
    ),
    "v2.event.subscribe": _name(
        "events.subscribe", "What happens in the server from now on. Nothing is replayed."
    ),
    "v2.agent.list": _name("agents.list", "The agents of a Location."),
    "v2.model.list": _name("models.list", "The models that a Location can use."),
    "v2.provider.list": _name("providers.list", "The providers of a Location."),
    "v2.provider.get": _name("providers.get", "One provider."),
    "v2.integration.list": _name("integrations.list", "Providers that take a credential."),
    "v2.integration.get": _name("integrations.get", "One provider that takes a credential."),
    "v2.integration.connect.key": _name(
        "integrations.connect_key",
        "Store a key in place of what is stored; it is sent to this provider's address alone.",
    ),
    "v2.integration.connect.oauth": _name(
        "integrations.connect_oauth", "Begin to log in: open the `url` of the answer in a browser."
    ),
    "v2.integration.attempt.status": _name("integrations.attempt", "How a login is going."),
    "v2.integration.attempt.complete": _name(
        "integrations.complete_attempt", "Finish a login, with a code if it asks for one.", "code"
    ),
    "v2.integration.attempt.cancel": _name(
        "integrations.cancel_attempt", "End a login. One that is gone already is no error."
    ),
    "v2.credential.update": _name(
        "credentials.update", "Rename what is stored. It can never be read."
    ),
    "v2.credential.remove": _name(
        "credentials.remove", "Forget a credential. One that is gone already is no error."
    ),
    "v2.skill.list": _name("skills.list", "The skills of a Location, each with its whole text."),
    "v2.reference.list": _name("references.list", "What the projects of a Location refer to."),
    "v2.command.list": _name(
        "commands.list", "The commands of a Location, for whoever types a slash."
    ),
    "v2.fs.read": _name("files.read", "The bytes of a file of the Location.", "path"),
    "v2.fs.list": _name("files.list", "The entries of a folder of the Location.", "path"),
    "v2.fs.find": _name("files.find", "Paths that resemble `query`, the best first."),
    "v2.pty.list": _name(
        "terminals.list", "Terminals of a Location that run, and those that exited lately."
    ),
    "v2.pty.create": _name(
        "terminals.create", "Start a program; without one, the user's shell.", "command", "args"
    ),
    "v2.pty.get": _name("terminals.get", "One terminal."),
    "v2.pty.update": _name("terminals.update", "Rename a terminal, resize it, or both."),
    "v2.pty.remove": _name("terminals.remove", "End the program and forget the terminal."),
    "v2.pty.connectToken": _name(
        "terminals.connect_token", "A ticket with which somebody else may connect, once and soon."
    ),
    "v2.pty.connect": _name("terminals.connect", "What is printed and typed, over a WebSocket."),
}

ALIASES: Final = (
    Alias("Delivery", "perdure.schema.session.prompt", prompt.Delivery),
    Alias("Reply", "perdure.schema.approval.permission", permission.Reply),
    Alias("Effect", "perdure.schema.approval.permission", permission.Effect),
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
