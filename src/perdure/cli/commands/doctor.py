"""`perdure doctor`: reports paths and versions, and checks the database and the configuration.

Reads only: nothing is created, migrated or repaired without `--repair`. Secrets are named, never
shown.
"""

import asyncio
import os
import platform
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Final, Literal, cast

import apsw

from perdure.cli import options, terminal
from perdure.cli.problem import FAILED_STATUS, Problem
from perdure.core.sandbox.settings import SandboxSettings
from perdure.host import data_directory
from perdure.host.credentials import secrets
from perdure.host.credentials.secrets import SecretFileError
from perdure.host.data_directory import DATABASE_NAME, PROCESSES_NAME, DataDirectoryError
from perdure.host.environment import Environment
from perdure.host.process.runner import LocalProcesses, find_ripgrep
from perdure.host.process_locks import ProcessLocks
from perdure.host.sandbox.local_sandbox import LocalSandbox
from perdure.location.config.config import Configuration
from perdure.location.config.trust import TrustedAhead, TrustFileError
from perdure.location.project import project
from perdure.ports import DatabaseError
from perdure.ports.sandbox import FILTERING_WALLS, Wall
from perdure.schema import redaction
from perdure.schema.value import Value
from perdure.store import migrate
from perdure.store.database import sqlite_connection
from perdure.store.database.sqlite import SqliteTransaction
from perdure.store.database.sqlite_connection import Connection
from perdure.store.log import repair as store_repair
from perdure.version import __version__

_PACKAGES: Final = ("apsw", "httptools", "httpx2", "msgspec")
_CHECKS: Final = ("quick_check", "integrity_check")


_WALLS: Final[dict[Wall, str]] = {
    "namespaces": "namespaces: own files, processes and network; secrets are hidden",
    "bubblewrap": "bubblewrap: own files, processes and network; secrets are hidden; a command"
    " takes a little longer to start",
    "seatbelt": "sandbox-exec: files, network and signals. It cannot hide other processes, or allow"
    " single hosts of the network",
    "landlock": "landlock: files and sockets. It cannot keep commands from changing git hooks and"
    " the modes of files, or from seeing the names of other processes, or allow single hosts of"
    " the network",
}
"""For each kind of sandbox: what it bounds, and what it cannot do."""


class Finding(Value):
    """One line of the report."""

    subject: str
    text: str
    state: Literal["fine", "broken"] = "fine"


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "doctor",
        "Check versions, paths, the database and the configuration of this directory.\n"
        "A line that starts with `!` is a problem.",
        examples="perdure doctor\nperdure doctor --repair",
    )
    parser.add_argument(
        "--repair",
        action="store_true",
        help="copy the database, then save what damaged pages left and rebuild damaged Sessions"
        " from their event logs",
    )
    given = parser.parse_args(argv)
    environment = options.read_environment(given.data_dir)
    repaired = tuple(repair(environment)) if given.repair else ()
    findings = (*repaired, *examine(environment, os.getcwd()))
    for finding in findings:
        mark = " " if finding.state == "fine" else "!"
        # A finding may quote a configuration or the answer of another program.
        text = redaction.redact(finding.text)
        terminal.print_output(f"{mark} {finding.subject:20}{text}\n")
    broken = any(finding.state == "broken" for finding in findings)
    return FAILED_STATUS if broken else 0


def examine(environment: Environment, directory: str) -> Iterator[Finding]:
    """Check everything and change nothing."""
    yield from _versions()
    yield from _sandbox(environment, directory)
    yield from _paths(environment)
    yield from _database(os.path.join(environment.data_dir, DATABASE_NAME))
    yield from _configuration(environment, directory)


def repair(environment: Environment) -> Iterator[Finding]:
    """Rebuild projections from the log. `examine` reports damage that this cannot repair."""
    path = os.path.join(environment.data_dir, DATABASE_NAME)
    if not os.path.exists(path):
        return
    try:
        data_directory.require_database(path)
        _require_stopped(environment.data_dir)
        _require_known_schema(path)
        done = asyncio.run(store_repair.repair(path))
    except sqlite_connection.DamagedDatabaseError as error:
        raise Problem(
            f"{path} cannot be repaired, because its first pages are damaged. Restore the data"
            " directory from a backup; nothing was changed."
        ) from error
    except (DataDirectoryError, DatabaseError) as error:
        raise Problem(str(error)) from error
    yield Finding("backup", done.backup)
    for table in done.recovered:
        places = f", {table.damaged_places} damaged places" if table.damaged_places else ""
        yield Finding("recovered", f"{table.name}: {table.rows} rows{places}")
    for name in done.created:
        yield Finding("rebuilt", name)
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
    yield Finding(
        "ripgrep",
        find_ripgrep()
        or "not found; searching is slower without it; install ripgrep or perdure[tools]",
    )


def _sandbox(environment: Environment, directory: str) -> Iterator[Finding]:
    settings = Configuration(environment).read(directory, root=project.find_root(directory))
    yield Finding("sandbox mode", settings.sandbox.mode)
    trials = asyncio.run(LocalSandbox(LocalProcesses()).trials())
    for trial in trials:
        if trial.problem:
            yield Finding("sandbox", f"{trial.wall} cannot be used here: {trial.problem}")
        else:
            yield Finding("sandbox", _WALLS[trial.wall])
    wall: Wall | None = next((trial.wall for trial in trials if not trial.problem), None)
    if wall is None:
        yield Finding("sandbox", "none: commands can reach all that you can; rules still apply")
    elif settings.sandbox.mode != "danger-full-access":
        yield Finding("sandbox network", _network(settings.sandbox, wall))


def _network(settings: SandboxSettings, wall: Wall) -> str:
    if settings.network:
        return "all of it"
    if settings.hosts is None:
        return "none, but for hosts that you are asked about" if wall in FILTERING_WALLS else "none"
    if wall not in FILTERING_WALLS:
        return f"none: {wall} cannot enforce the list of hosts in `sandbox.network`"
    listed = ", ".join(map(str, settings.hosts.entries))
    return f"through a filtering proxy, to {listed or 'no host'}"


def _paths(environment: Environment) -> Iterator[Finding]:
    yield Finding("data directory", environment.data_dir)
    yield Finding("config directory", environment.config_dir)
    if environment.variables.get("OPENCODE_SERVER_PASSWORD"):
        yield Finding("server password", "in OPENCODE_SERVER_PASSWORD")
        return
    try:
        generated = secrets.find_server_password(environment.data_dir)
    except SecretFileError as error:
        yield Finding("server password", str(error), "broken")
    else:
        path = os.path.join(environment.data_dir, secrets.PASSWORD_NAME)
        yield Finding(
            "server password", path if generated else "none yet; `perdure serve` makes one"
        )


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
        yield Finding(
            "database",
            "belongs to another program; choose another directory with --data-dir",
            "broken",
        )
        return
    version = connection.pragma("user_version")
    known = f"version {version} (this perdure supports up to {migrate.SCHEMA_VERSION})"
    newer = isinstance(version, int) and version > migrate.SCHEMA_VERSION
    yield Finding("schema", known, "broken" if newer else "fine")
    if newer:
        return
    missing = migrate.find_missing_parts(connection)
    yield from (
        Finding("schema", f"{name} is missing; run `perdure doctor --repair`", "broken")
        for name in missing
    )
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


def _require_stopped(data_dir: str) -> None:
    """Refuse while another process uses the database: its file may be replaced."""
    with ProcessLocks(os.path.join(data_dir, PROCESSES_NAME), f"doctor{os.getpid()}") as locks:
        if locks.others():
            raise DatabaseError(
                f"Another process uses {data_dir}. Stop it (`perdure serve`, `perdure run`), then"
                " repair; nothing was changed."
            )


def _require_known_schema(path: str) -> None:
    """Refuse a database of another program or a newer version before anything is changed."""
    try:
        migrate.migrate(path)
    except migrate.IncompleteDatabaseError:
        # A repair is what restores missing tables.
        return


def _column(connection: Connection, sql: str) -> list[str]:
    rows = cast("Sequence[tuple[object]]", connection.execute(sql).fetchall())
    return [str(value) for (value,) in rows]


def _configuration(environment: Environment, directory: str) -> Iterator[Finding]:
    yield Finding("directory", directory)
    configuration = Configuration(environment)
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
    yield from _trusted_ahead(configuration.trust.ahead)
    for wish in settings.ungranted:
        yield Finding(
            "not trusted", f"{wish.path} wants to {wish.description}; `perdure trust` allows it"
        )


def _trusted_ahead(ahead: TrustedAhead) -> Iterator[Finding]:
    if ahead.everywhere:
        yield Finding("trusted ahead", "every directory (PERDURE_TRUSTED)")
    for directory in ahead.directories:
        yield Finding("trusted ahead", f"{directory} and everything below it (PERDURE_TRUSTED)")
    for entry in ahead.ignored:
        yield Finding(
            "trusted ahead", f"PERDURE_TRUSTED: {entry} is ignored: give an absolute path", "broken"
        )
