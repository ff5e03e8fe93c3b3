"""Permission requests on the command line: a question at the terminal, or a refusal that says why.

Both are answered through the client, whether the Session runs here or on a server. What is asked
for was written by a model; it is shown on one line, cleaned.
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
_UNATTENDED: Final = (
    "This needs a person's approval, and nobody is there to give it. A permission rule that allows"
    " it would let it pass."
)


async def answer_at_terminal(event: JsonObject, client: WireClient) -> None:
    """Ask, and pass the answer on. Anything but a clear yes is a no."""
    request = event["data"]
    question = f"Allow {_wish(request)}?\n{_lasting(request)}[y]es, [a]lways, [N]o: "
    reply = _REPLIES.get((await terminal.ask(question)).lower(), "reject")
    await _reply(client, request, reply)


async def refuse(event: JsonObject, client: WireClient) -> None:
    """Nobody here can be asked: tell the model so, rather than leave the work waiting."""
    request = event["data"]
    terminal.note(f"refused {_wish(request)}: nobody is there to be asked\n")
    await _reply(client, request, "reject", message=_UNATTENDED)


async def leave_to_others(event: JsonObject, client: WireClient) -> None:
    """Somebody else may answer, until the time for it is over."""
    terminal.note(f"waiting for somebody to allow {_wish(event['data'])}\n")


async def _reply(
    client: WireClient, request: JsonObject, reply: Reply, *, message: str | None = None
) -> None:
    permissions = client.sessions.permissions
    try:
        await permissions.reply(request["sessionID"], request["id"], reply, message=message)
    except DeclaredError as error:
        if error.tag != "PermissionNotFoundError":
            raise
        terminal.note("It is settled already.\n")


def _wish(request: JsonObject) -> str:
    return terminal.one_line(f"{request['action']} {', '.join(request['resources'])}")


def _lasting(request: JsonObject) -> str:
    patterns: list[str] = request.get("save", [])
    if not patterns:
        return ""
    return f"  always means: {terminal.one_line(', '.join(patterns))}\n"
