"""Finds the Session that a user names: by its id, the beginning of one, or `last`."""

import os
from collections.abc import Sequence
from typing import Final, Protocol

from perdure.cli import suggestion, terminal
from perdure.cli.problem import Problem
from perdure.client import DeclaredError
from perdure.schema.codec import JsonObject

LAST: Final = "last"
_ID_CHARS: Final = 30
_LOOKED_AT_MAX: Final = 1_000
_CANDIDATES_SHOWN: Final = 3


class SessionList(Protocol):
    """Sessions: one by its id, or all, newest first."""

    async def session(self, session_id: str) -> JsonObject: ...

    async def sessions(
        self, limit: int, *, directory: str | None = None
    ) -> Sequence[JsonObject]: ...


async def find_session(listed: SessionList, name: str, *, is_local: bool = True) -> str:
    """Return the id of the Session that `name` stands for; raise Problem if there is none.

    `last` is the Session that changed last, here in this directory.
    """
    if name == LAST:
        return await find_last(listed, is_local=is_local)
    if name.startswith("ses_") and len(name) >= _ID_CHARS:
        # A whole id; its use tells whether there is such a Session.
        return name
    found = [str(session["id"]) for session in await listed.sessions(_LOOKED_AT_MAX)]
    matching = [each for each in found if each.startswith(name)]
    if name in matching:
        return name
    if len(matching) == 1:
        return matching[0]
    shown = terminal.one_line(name)
    if matching:
        several = ", ".join(matching[:_CANDIDATES_SHOWN])
        raise Problem(f"{shown} is the beginning of {len(matching)} Sessions: {several}")
    if name.startswith("ses_") and await _exists(listed, name):
        return name
    close = suggestion.did_you_mean(name, [LAST, *found])
    raise Problem(f"there is no Session {shown}{close or ';'} `perdure sessions` lists the ids")


async def _exists(listed: SessionList, session_id: str) -> bool:
    """Whether there is a Session with exactly this id, however old."""
    try:
        await listed.session(session_id)
    except (Problem, DeclaredError):
        return False
    return True


async def find_last(listed: SessionList, *, is_local: bool = True) -> str:
    """Return the id of the Session of this directory that changed last; raise Problem without one.

    Subagents and archived Sessions do not count.
    """
    directory = find_directory() if is_local else None
    found = [
        session
        for session in await listed.sessions(_LOOKED_AT_MAX, directory=directory)
        if "parentID" not in session and "archived" not in session["time"]
    ]
    if found:
        return max(found, key=lambda session: session["time"]["updated"])["id"]
    where = terminal.one_line(directory) if directory is not None else "the server"
    raise Problem(f"there is no Session of {where} yet; `perdure sessions` lists those of others")


def find_directory() -> str:
    """Return the working directory; raise Problem if it was deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError as error:
        raise Problem("the working directory no longer exists; change to another one") from error
