"""Reads Sessions, messages and events from the data directory or from a server.

The data directory is read without opening a runtime, which would resume interrupted work.
"""

import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Protocol

from perdure.cli import remote
from perdure.cli.problem import Problem
from perdure.cli.remote_source import RemoteSource
from perdure.core import limits
from perdure.host import data_directory
from perdure.host.clock import SystemClock
from perdure.host.data_directory import DATABASE_NAME, DataDirectoryError
from perdure.host.environment import Environment
from perdure.host.ids import SystemIds
from perdure.host.process_locks import SingleProcess
from perdure.ports import DatabaseError
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.errors import DamagedRowError
from perdure.schema.ids import Seq, SessionID
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.store.log.event_store import EventStore
from perdure.store.tables import message_table, session_table
from perdure.store.tables.session_table import SessionFilter

_BEFORE_ALL: Final = Seq(-1)


class SessionSource(Protocol):
    """Stored Sessions, read only."""

    async def sessions(self, limit: int, *, directory: str | None = None) -> tuple[JsonObject, ...]:
        """Return the newest Sessions, of one directory if it is given, at most `limit`."""
        ...

    async def session(self, session_id: str) -> JsonObject: ...
    def messages(self, session_id: str) -> AsyncIterator[JsonObject]: ...
    def events(self, session_id: str) -> AsyncIterator[JsonObject]: ...


@asynccontextmanager
async def open_source(url: str | None, environment: Environment) -> AsyncGenerator[SessionSource]:
    """Open the server at `url`, or without one the data directory."""
    if url is not None:
        async with remote.make_client(url, environment) as client:
            yield RemoteSource(client)
        return
    async with _open_database(environment.data_dir) as database:
        try:
            yield LocalSource(EventStore(database, SystemIds(SystemClock()), SingleProcess()))
        except DamagedRowError as error:
            raise Problem(error.message) from error


@asynccontextmanager
async def open_store(environment: Environment) -> AsyncGenerator[EventStore]:
    """Open the log of the data directory for writing; the first use creates it."""
    try:
        path = data_directory.prepare(environment.data_dir)
        migrate.migrate(path)
        database = SqliteDatabase(path)
    except (DataDirectoryError, DatabaseError) as error:
        raise Problem(str(error)) from error
    async with database:
        yield EventStore(database, SystemIds(SystemClock()), SingleProcess())


class LocalSource:
    """Reads the data directory, also while other processes use it."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._database = store.database

    async def sessions(self, limit: int, *, directory: str | None = None) -> tuple[JsonObject, ...]:
        wanted = SessionFilter(directory=directory)
        rows = await self._database.read(
            lambda tx: session_table.page(tx, wanted, newest_first=True, limit=limit, anchor=None)
        )
        return tuple(codec.decode_any(row.data) for row in rows)

    async def session(self, session_id: str) -> JsonObject:
        found = await self._database.read(
            lambda tx: session_table.load_json(tx, SessionID(session_id))
        )
        if found is None:
            raise Problem(f"there is no Session {session_id}; `perdure sessions` lists the ids")
        return codec.decode_any(found)

    async def messages(self, session_id: str) -> AsyncIterator[JsonObject]:
        rows = await self._database.read(
            lambda tx: message_table.list_after(tx, SessionID(session_id), _BEFORE_ALL)
        )
        for row in rows:
            yield codec.decode_any(row.data)

    async def events(self, session_id: str) -> AsyncIterator[JsonObject]:
        after = Seq(0)
        while True:
            rows = await self._store.read_wire(
                SessionID(session_id), after=after, limit=limits.REPLAY_ROWS_PER_READ
            )
            if not rows:
                return
            for _, wire in rows:
                yield codec.decode_any(wire)
            after, _ = rows[-1]


def _open_database(data_dir: str) -> SqliteDatabase:
    path = os.path.join(data_dir, DATABASE_NAME)
    if not os.path.exists(path):
        raise Problem(
            f"there are no Sessions: {data_dir} holds no database yet; `perdure run` creates it"
        )
    try:
        data_directory.require_database(path)
        migrate.migrate(path)
        return SqliteDatabase(path)
    except (DataDirectoryError, DatabaseError) as error:
        raise Problem(str(error)) from error
