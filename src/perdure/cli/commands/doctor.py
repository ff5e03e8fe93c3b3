"""`perdure doctor`: where things are, which versions run, and whether what is kept is sound.

Looks only: nothing is made, migrated or repaired, unless `--repair` asks for it. Secrets are
named, never shown.
"""

import asyncio
import os
import platform
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Final, Literal, cast

import apsw

from perdure import __version__
from perdure.cli import options, terminal
from perdure.cli.problem import FAILED_STATUS, Problem
from perdure.host.credentials import secrets
from perdure.host.credentials.secrets import SecretFileError
from perdure.host.data_directory import DATABASE_NAME
from perdure.host.environment import Environment
from perdure.host.process.runner import find_ripgrep
from perdure.location.config.config import Configuration
from perdure.location.config.trust import TrustFileError
from perdure.location.project import project
from perdure.ports import DatabaseError
from perdure.schema.value import Value
from perdure.store import migrate
from perdure.store.database import sqlite_connection
from perdure.store.database.sqlite import SqliteTransaction
from perdure.store.database.sqlite_connection import Connection
from perdure.store.log import repair as store_repair

_PACKAGES: Final = ("apsw", "httptools", "httpx2", "msgspec")
_CHECKS: Final = ("quick_check", "integrity_check")


class Finding(Value):
    """One line of the report."""

    subject: str
    says: str
    state: Literal["fine", "broken"] = "fine"


def main(argv: list[str]) -> int:
    made = options.parser("doctor", "Check this installation.")
    made.add_argument(
        "--repair",
        action="store_true",
        help="make what can be read of damaged Sessions anew from their log; a copy is kept",
    )
    given = made.parse_args(argv)
    surroundings = options.surroundings(given.data_dir)
    repaired = tuple(repair(surroundings)) if given.repair else ()
    findings = (*repaired, *examine(surroundings, os.getcwd()))
    for finding in findings:
        mark = " " if finding.state == "fine" else "!"
        terminal.say(f"{mark} {finding.subject:20}{finding.says}\n")
    broken = any(finding.state == "broken" for finding in findings)
    return FAILED_STATUS if broken else 0


def examine(surroundings: Environment, directory: str) -> Iterator[Finding]:
    yield from _versions()
    yield from _places(surroundings)
    yield from _database(os.path.join(surroundings.data_dir, DATABASE_NAME))
    yield from _configuration(surroundings, directory)


def repair(surroundings: Environment) -> Iterator[Finding]:
    """Restore projections from the log. What is damaged beyond that is found by `examine`."""
    path = os.path.join(surroundings.data_dir, DATABASE_NAME)
    if not os.path.exists(path):
        return
    try:
        _require_ours(path)
        done = asyncio.run(store_repair.repair(path))
    except DatabaseError as error:
        raise Problem(str(error)) from error
    yield Finding("copy made", done.backup)
    for name in done.created:
        yield Finding("made anew", name)
    for session_id in done.restored:
        yield Finding("restored", session_id)


def _versions() -> Iterator[Finding]:
    yield Finding("perdure", __version__)
    yield Finding("python", f"{platform.python_version()} on {platform.platform()}")
    library = apsw.sqlite_lib_version()
    try:
        sqlite_connection.require_safe_version(library)
        yield Finding("SQLite", library)
    except sqlite_connection.UnsafeSqliteError as error:
        yield Finding("SQLite", str(error), "broken")
    for package in _PACKAGES:
        yield Finding(package, metadata.version(package))
    yield Finding("ripgrep", find_ripgrep() or "not found; searching is slower without it")


def _places(surroundings: Environment) -> Iterator[Finding]:
    yield Finding("data directory", surroundings.data_dir)
    yield Finding("config directory", surroundings.config_dir)
    if surroundings.variables.get("OPENCODE_SERVER_PASSWORD"):
        yield Finding("server password", "in OPENCODE_SERVER_PASSWORD")
        return
    try:
        made = secrets.find_server_password(surroundings.data_dir)
    except SecretFileError as error:
        yield Finding("server password", str(error), "broken")
    else:
        place = os.path.join(surroundings.data_dir, secrets.PASSWORD_NAME)
        yield Finding("server password", place if made else "none yet; serve makes one")


def _database(path: str) -> Iterator[Finding]:
    if not os.path.exists(path):
        yield Finding("database", f"{path} (none yet)")
        return
    yield Finding("database", f"{path} ({os.path.getsize(path)} bytes)")
    try:
        opened = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        connection = cast("Connection", opened)
        try:
            yield from _checks(connection)
        finally:
            connection.close()
    except (apsw.Error, DatabaseError) as error:
        yield Finding("database", f"cannot be read: {error}", "broken")


def _checks(connection: Connection) -> Iterator[Finding]:
    if connection.pragma("application_id") != sqlite_connection.APPLICATION_ID:
        yield Finding("database", "belongs to another program", "broken")
        return
    version = connection.pragma("user_version")
    known = f"{version} (this perdure knows {migrate.SCHEMA_VERSION})"
    newer = isinstance(version, int) and version > migrate.SCHEMA_VERSION
    yield Finding("schema", known, "broken" if newer else "fine")
    if newer:
        return
    missing = migrate.find_missing_parts(connection)
    yield from (Finding("schema", f"lacks {name}", "broken") for name in missing)
    if not missing:
        yield from _rows(connection)
    for check in _CHECKS:
        problems = _column(connection, f"PRAGMA {check}")
        if problems == ["ok"]:
            yield Finding(check, "ok")
        else:
            yield from (Finding(check, problem, "broken") for problem in problems)


def _rows(connection: Connection) -> Iterator[Finding]:
    (sessions,) = _column(connection, "SELECT count(*) FROM session")
    yield Finding("sessions", sessions)
    for error in asyncio.run(
        store_repair.find_damaged_rows(SqliteTransaction(connection, DATABASE_NAME))
    ):
        yield Finding(f"row of {error.table}", error.message, "broken")


def _require_ours(path: str) -> None:
    """Refuse what is not a database of this version, before anything is copied or changed."""
    try:
        migrate.migrate(path)
    except migrate.IncompleteDatabaseError:
        # That is what a repair is for.
        return


def _column(connection: Connection, sql: str) -> list[str]:
    rows = cast("Sequence[tuple[object]]", connection.execute(sql).fetchall())
    return [str(value) for (value,) in rows]


def _configuration(surroundings: Environment, directory: str) -> Iterator[Finding]:
    yield Finding("directory", directory)
    configuration = Configuration(surroundings)
    settings = configuration.read(directory, root=project.find_root(directory))
    if not settings.problems:
        yield Finding("configuration", "no problems")
    for problem in settings.problems:
        yield Finding("configuration", str(problem), "broken")
    try:
        trusted = len(configuration.trust.grants())
    except TrustFileError as error:
        yield Finding("trusted files", str(error), "broken")
    else:
        yield Finding("trusted files", str(trusted))
    for wish in settings.ungranted:
        yield Finding("not trusted", f"{wish.path} would {wish.says}; see: perdure trust")
