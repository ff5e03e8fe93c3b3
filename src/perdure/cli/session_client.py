"""Opens the client for commands that read or change a Session without running it.

The embedded host is opened with `resumes=False`: it would otherwise resume interrupted work and
interrupt it again when the command ends.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import TypeVar

from perdure.cli import remote, session_choice, terminal
from perdure.cli.problem import Problem
from perdure.cli.remote_source import RemoteSource
from perdure.client import WireClient
from perdure.embedded.host import open_wire_host
from perdure.host.credentials.secrets import SecretFileError
from perdure.host.data_directory import DATABASE_NAME, DataDirectoryError
from perdure.host.environment import Environment
from perdure.net.loopback import is_loopback_url
from perdure.ports import DatabaseError

T = TypeVar("T")


def run(work: Coroutine[None, None, T]) -> T:
    """Run `work` and return its result; expected failures become Problems."""
    try:
        with remote.errors_as_problems():
            return asyncio.run(work)
    except (DataDirectoryError, DatabaseError, SecretFileError) as error:
        raise Problem(str(error)) from error


@asynccontextmanager
async def open_client(url: str | None, environment: Environment) -> AsyncGenerator[WireClient]:
    """Open the server at `url`, or without one the data directory, which must hold a database."""
    if url is not None:
        async with remote.make_client(url, environment) as client:
            yield client
        return
    _require_database(environment.data_dir)
    async with open_wire_host(environment=environment, resumes=False) as perdure:
        yield perdure


@asynccontextmanager
async def open_location(
    url: str | None, environment: Environment, *, local_models: bool = False
) -> AsyncGenerator[WireClient]:
    """Open the server at `url`, or without one a host for this directory, also the first time."""
    if url is not None:
        async with remote.make_client(url, environment) as client:
            yield client
        return
    async with open_wire_host(
        environment=environment,
        resumes=False,
        local_models=local_models,
        installed_plugins=True,
    ) as perdure:
        yield perdure


@asynccontextmanager
async def open_session(
    url: str | None, environment: Environment, name: str
) -> AsyncGenerator[tuple[WireClient, str]]:
    """Open a client, and find the Session that the user named; yields its id too."""
    async with open_client(url, environment) as client:
        session_id = await find_session_id(client, name, url=url)
        if session_id != name:
            terminal.print_note(f"session {session_id}\n")
        yield client, session_id


async def find_session_id(client: WireClient, name: str, *, url: str | None) -> str:
    """Return the id of the Session that the user named; raise Problem if there is none."""
    is_local = url is None or is_loopback_url(url)
    return await session_choice.find_session(RemoteSource(client), name, is_local=is_local)


def _require_database(data_dir: str) -> None:
    if not os.path.exists(os.path.join(data_dir, DATABASE_NAME)):
        raise Problem(
            f"there are no Sessions: {data_dir} holds no database yet; `perdure run` creates it"
        )
