"""Opens the client for commands that read or change a Session without running it.

The embedded host is opened with `resumes=False`: it would otherwise resume interrupted work and
interrupt it again when the command ends.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import TypeVar

from perdure.cli import remote
from perdure.cli.problem import Problem
from perdure.client import WireClient
from perdure.embedded.host import open_wire_host
from perdure.host.credentials.secrets import SecretFileError
from perdure.host.data_directory import DATABASE_NAME, DataDirectoryError
from perdure.host.environment import Environment
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


def _require_database(data_dir: str) -> None:
    if not os.path.exists(os.path.join(data_dir, DATABASE_NAME)):
        raise Problem(
            f"there are no Sessions: {data_dir} holds no database yet; `perdure run` creates it"
        )
