"""Answers permission requests: asks at the terminal, refuses, or leaves them to another client.

Every answer goes through the client, whether the Session runs in this process or on a server. The
model wrote the text of the request, so it is cleaned, and each part shown on one line.
"""

from typing import Final

from perdure.cli import terminal
from perdure.client import DeclaredError, WireClient
from perdure.schema.approval.permission import Reply
from perdure.schema.codec import JsonObject

_REPLIES: Final[dict[str, Reply]] = {
    "y": "once",
    "yes": "once",
    "a": "always",
    "always": "always",
}
_DIFF_LINES_MAX: Final = 100
_UNATTENDED: Final = (
    "This needs a person's approval, and nobody is there to give it. A permission rule that allows"
    " it would let it pass."
)


async def answer_at_terminal(event: JsonObject, client: WireClient) -> None:
    """Ask the user and send the answer. Everything except yes and always is a no."""
    request = event["data"]
    question = render_question(request)
    reply = _REPLIES.get((await terminal.ask(question)).lower(), "reject")
    await _reply(client, request, reply)


def render_question(request: JsonObject) -> str:
    """The question for a request; of a protected file with why it is asked and the difference."""
    about = f"{_describe_protected(request)}Allow {_describe(request)}?\n"
    return f"{about}{_describe_always(request)}[y]es, [a]lways, [N]o: "


async def refuse(event: JsonObject, client: WireClient) -> None:
    """Refuse because there is no terminal to ask at; otherwise the work would wait for ever."""
    request = event["data"]
    terminal.print_note(
        f"refused {_describe(request)}: there is no terminal to ask at; allow it with a permission"
        " rule, or use --permission-timeout to let another client answer\n"
    )
    await _reply(client, request, "reject", message=_UNATTENDED)


async def wait_for_other_client(event: JsonObject, client: WireClient) -> None:
    """Wait for another client to answer. The runtime refuses at the `--permission-timeout`."""
    terminal.print_note(f"waiting for another client to allow {_describe(event['data'])}\n")


async def _reply(
    client: WireClient, request: JsonObject, reply: Reply, *, message: str | None = None
) -> None:
    permissions = client.sessions.permissions
    try:
        await permissions.reply(request["sessionID"], request["id"], reply, message=message)
    except DeclaredError as error:
        if error.tag != "PermissionNotFoundError":
            raise
        terminal.print_note("The request was already answered by another client, or it expired.\n")


def _describe(request: JsonObject) -> str:
    return terminal.one_line(f"{request['action']} {', '.join(request['resources'])}")


def _describe_protected(request: JsonObject) -> str:
    metadata: JsonObject = request.get("metadata", {})
    if metadata.get("protected") is not True:
        return ""
    lines = str(metadata.get("diff", "")).splitlines()
    shown = [f"  {terminal.one_line(line)}" for line in lines[:_DIFF_LINES_MAX]]
    if len(lines) > len(shown):
        shown.append(f"  ({len(lines) - len(shown)} more lines)")
    reason = terminal.one_line(str(metadata.get("reason", "")))
    return "\n".join(["This is asked in any case. " + reason, *shown, ""])


def _describe_always(request: JsonObject) -> str:
    patterns: list[str] = request.get("save", [])
    if not patterns:
        return ""
    return f"  always means: {terminal.one_line(', '.join(patterns))}\n"
