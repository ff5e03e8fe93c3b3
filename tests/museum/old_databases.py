"""What the museum's tests share: real conversations to spoil, and the tools to spoil them with.

A conversation is had with a real server, which is then closed. Nothing here asserts more than that
the preparations worked.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, cast

from perdure.ports import Row, SqlValue
from perdure.store.database import sqlite_connection
from tests.support import fork_server
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

PATIENCE_SECONDS: Final = 30
EXHIBITS: Final = Path(__file__).parent / "exhibits"
STORED_PROJECT: Final = "/museum/project"
"""Stands in an exhibit for the project's directory."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two Sessions: one is going to be damaged, the other must not notice."""

    hurt: str
    sound: str


@dataclass(frozen=True, slots=True)
class Ran:
    status: int
    output: str
    errors: str


async def conversations(folders: ProjectFolders, provider: ScriptedProvider) -> Pair:
    """Each Session has answered one prompt with a tool call and a text, and has one waiting."""
    async with running(folders) as instance:
        api = instance.api
        ids = [await api.create() for _ in range(2)]
        for session in ids:
            provider.then(calls(Call("glob", {"pattern": "*.json"})), text("one ", "file"))
            await api.ask(session, f"what is here, {session}?")
            await api.prompt(session, "and later?", id=waiting(session), resume=False)
    return Pair(*ids)


def waiting(session: str) -> str:
    """The id of the prompt for which no run was asked."""
    return f"msg_waiting_{session[-6:]}"


def execute(path: Path, sql: str, parameters: Mapping[str, SqlValue] | None = None) -> None:
    with closing(sqlite_connection.open_connection(str(path))) as connection:
        connection.execute(sql, parameters)


def fetch(path: Path, sql: str) -> Sequence[Row]:
    with closing(sqlite_connection.open_connection(str(path))) as connection:
        return cast("Sequence[Row]", connection.execute(sql).fetchall())


def files(folder: Path) -> dict[str, bytes]:
    """Everything in a folder, to see that nothing was written."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


async def perdure(folders: ProjectFolders, *arguments: str) -> Ran:
    """Run a command to its end."""
    run = partial(
        fork_server.run,
        variables=folders.variables,
        directory=folders.project,
        input="",
        seconds_max=PATIENCE_SECONDS,
    )
    ran = await asyncio.to_thread(run, arguments)
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def set_up_exhibit(folders: ProjectFolders, version: int) -> None:
    """A data directory as that schema version left it."""
    folders.data.mkdir(mode=0o700)
    script = (EXHIBITS / f"version_{version:04d}.sql").read_text(encoding="utf-8")
    execute(folders.database, script.replace(STORED_PROJECT, str(folders.project)))
