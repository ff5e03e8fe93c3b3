"""A client for a command that is about one Session and runs none.

Opening a runtime would resume work that was left waiting, and end it again with the command.
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
    """What `work` returns; what may go wrong on the way is said as a Problem."""
    try:
        with remote.explained():
            return asyncio.run(work)
    except (DataDirectoryError, DatabaseError, SecretFileError) as error:
        raise Problem(str(error)) from error


@asynccontextmanager
async def open_client(url: str | None, surroundings: Environment) -> AsyncGenerator[WireClient]:
    """The server at `url`, or else the data directory, which must be there."""
    if url is not None:
        async with remote.client_for(url, surroundings) as client:
            yield client
        return
    _check(surroundings.data_dir)
    async with open_wire_host(environment=surroundings, resumes=False) as perdure:
        yield perdure


def _check(data_dir: str) -> None:
    if not os.path.exists(os.path.join(data_dir, DATABASE_NAME)):
        raise Problem(f"there are no Sessions: {data_dir} holds no database yet")
