"""`perdure storage`: shows what takes up disk space, deletes old Sessions and shrinks the database.

`--delete-older-than` lists the Sessions that it would delete, and deletes them only with `--yes`.
`--reclaim` returns the space of deleted Sessions from the database file to the disk.
"""

import argparse
import os
from collections.abc import Iterator
from typing import Final

from perdure.cli import options, session_client, terminal
from perdure.cli.problem import Problem
from perdure.cli.session_source import open_source
from perdure.host import data_directory
from perdure.host.clock import SystemClock
from perdure.host.data_directory import DATABASE_NAME, DataDirectoryError
from perdure.host.environment import Environment
from perdure.ports import DatabaseError
from perdure.schema.codec import JsonObject
from perdure.store import migrate, storage
from perdure.store.storage import DatabaseUsage

_DAY_MILLIS: Final = 24 * 60 * 60 * 1_000
_LISTED_MAX: Final = 1_000_000


def main(argv: list[str]) -> int:
    given = _parse(argv)
    environment = options.read_environment(given.data_dir)
    path = _find_database(environment)
    if given.delete_older_than is not None:
        session_client.run(_delete_old(environment, given))
    if given.reclaim:
        terminal.show_status("shrinking the database")
        _reclaim(path)
        terminal.clear_status()
    terminal.print_output("".join(f"{line}\n" for line in _report(path, environment.data_dir)))
    return 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = options.make_parser(
        "storage",
        "Show what takes up disk space in the data directory, and free some of it.",
        examples="perdure storage\nperdure storage --delete-older-than 90 --yes --reclaim",
    )
    parser.add_argument(
        "--delete-older-than",
        metavar="DAYS",
        type=int,
        help="list Sessions unchanged for DAYS days; delete them with --yes",
    )
    parser.add_argument(
        "--archived", action="store_true", help="with --delete-older-than: archived Sessions only"
    )
    parser.add_argument(
        "--yes", action="store_true", help="with --delete-older-than: delete the listed Sessions"
    )
    parser.add_argument(
        "--reclaim", action="store_true", help="shrink the database file to what it holds"
    )
    given = parser.parse_args(argv)
    if given.delete_older_than is None and (given.archived or given.yes):
        parser.error("--archived and --yes need --delete-older-than")
    if given.delete_older_than is not None and given.delete_older_than < 0:
        parser.error("--delete-older-than takes a number of days that is not negative")
    return given


def _find_database(environment: Environment) -> str:
    path = os.path.join(environment.data_dir, DATABASE_NAME)
    if not os.path.exists(path):
        raise Problem(
            f"there are no Sessions: {environment.data_dir} holds no database yet; `perdure run`"
            " creates it"
        )
    try:
        data_directory.require_database(path)
        migrate.migrate(path)
    except (DataDirectoryError, DatabaseError) as error:
        raise Problem(str(error)) from error
    return path


async def _delete_old(environment: Environment, given: argparse.Namespace) -> None:
    before = SystemClock().now_millis() - given.delete_older_than * _DAY_MILLIS
    async with open_source(None, environment) as source:
        old = [
            session
            for session in await source.sessions(_LISTED_MAX)
            if session["time"]["updated"] <= before
            and ("archived" in session["time"] or not given.archived)
        ]
    outcome = "deleted" if given.yes else "would be deleted with --yes"
    async with session_client.open_client(None, environment) as client:
        for session in _roots(old):
            if given.yes:
                await client.sessions.delete(session["id"])
            title = terminal.one_line(session["title"])
            terminal.print_output(f"{terminal.one_line(session['id'])}  {title}: {outcome}\n")


def _roots(sessions: list[JsonObject]) -> Iterator[JsonObject]:
    """Return the Sessions whose parent is not listed: deleting a parent deletes its children."""
    ids = {session["id"] for session in sessions}
    return (session for session in sessions if session.get("parentID") not in ids)


def _reclaim(path: str) -> None:
    try:
        storage.compact(path)
    except DatabaseError as error:
        raise Problem(f"{error}; nothing was changed") from error


def _report(path: str, data_dir: str) -> Iterator[str]:
    try:
        found = storage.load_usage(path)
    except DatabaseError as error:
        raise Problem(str(error)) from error
    size, free = _format_size(found.file_bytes), _format_size(found.free_bytes)
    yield f"database      {size}, of which {free} are free"
    yield f"  log         {_format_size(found.log_bytes)}"
    yield f"  sessions    {found.sessions}, of which {found.archived} are archived"
    yield f"  events      {found.events}"
    yield from _largest(found)
    for name, files, size in _folders(data_dir):
        yield f"{terminal.one_line(name):13} {_format_size(size)} in {files} files"


def _largest(found: DatabaseUsage) -> Iterator[str]:
    for session in found.largest:
        yield f"    {terminal.one_line(session.session_id)}  {session.events} events"


def _folders(data_dir: str) -> Iterator[tuple[str, int, int]]:
    """Return name, number of files and size of each folder in the data directory."""
    with os.scandir(data_dir) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    for name in names:
        sizes = list(_file_sizes(os.path.join(data_dir, name)))
        if sizes:
            yield name, len(sizes), sum(sizes)


def _file_sizes(folder: str) -> Iterator[int]:
    for directory, _, files in os.walk(folder):
        for name in files:
            try:
                yield os.lstat(os.path.join(directory, name)).st_size
            except FileNotFoundError:
                # Another process deleted the file meanwhile.
                continue


def _format_size(count: int) -> str:
    amount = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if amount < 1_024:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1_024
    return f"{amount:.1f} GiB"
