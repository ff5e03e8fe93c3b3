"""Permission requests on the command line: a question at the terminal, or a refusal that says why.

What is asked for was written by a model; it is shown on one line, cleaned.
"""

import sys
from typing import Final

from perdure.cli import terminal
from perdure.cli.problem import Problem
from perdure.client import PerdureClient
from perdure.embedded import EmbeddedPerdure
from perdure.location.permissions import PermissionNotFoundError
from perdure.schema.codec import JsonObject
from perdure.schema.permission import Reply

_REPLIES: Final[dict[str, Reply]] = {
    "y": "once",
    "yes": "once",
    "a": "always",
    "always": "always",
}


async def answer_at_terminal(event: JsonObject, perdure: EmbeddedPerdure) -> None:
    """Ask, and pass the answer on. Anything but a clear yes is a no."""
    request = event["data"]
    question = f"Allow {_wish(request)}?\n{_lasting(request)}[y]es, [a]lways, [N]o: "
    reply = _REPLIES.get((await terminal.ask(question)).lower(), "reject")
    try:
        await perdure.permissions.reply(
            request["id"], reply, directory=event["location"]["directory"]
        )
    except PermissionNotFoundError:
        sys.stderr.write("It is settled already.\n")


async def refuse(event: JsonObject, client: PerdureClient) -> None:
    """Nobody here can answer a server's request: end the work rather than leave it waiting."""
    request = event["data"]
    await client.sessions.interrupt(request["sessionID"])
    raise Problem(
        f"the server asks for permission to {_wish(request)}, which cannot be given from here;"
        " the Session was interrupted. A permission rule in its configuration would allow it."
    )


def _wish(request: JsonObject) -> str:
    return terminal.one_line(f"{request['action']} {', '.join(request['resources'])}")


def _lasting(request: JsonObject) -> str:
    patterns: list[str] = request.get("save", [])
    if not patterns:
        return ""
    return f"  always means: {terminal.one_line(', '.join(patterns))}\n"
