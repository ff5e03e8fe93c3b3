"""`perdure storage`: what is kept here, how much room it takes, and getting some of it back.

Nothing is deleted by looking. `--delete-older-than` names what would go and deletes it only with
`--yes`; `--reclaim` gives back the room that deleted Sessions left in the database.
"""

import argparse
import os
from collections.abc import Iterator
from typing import Final

from perdure.cli import options, session_client, terminal
from perdure.cli.problem import Problem
from perdure.cli.session_source import open_archive
from perdure.host.clock import SystemClock
from perdure.host.data_directory import DATABASE_NAME
from perdure.host.environment import Environment
from perdure.ports import DatabaseError
from perdure.schema.codec import JsonObject
from perdure.store import migrate, storage
from perdure.store.storage import DatabaseUsage

_DAY_MILLIS: Final = 24 * 60 * 60 * 1_000
_LISTED_MAX: Final = 1_000_000


def main(argv: list[str]) -> int:
    given = _parsed(argv)
    surroundings = options.surroundings(given.data_dir)
    path = _database(surroundings)
    if given.delete_older_than is not None:
        session_client.run(_delete_old(surroundings, given))
    if given.reclaim:
        _reclaim(path)
    terminal.say("".join(f"{line}\n" for line in _report(path, surroundings.data_dir)))
    return 0


def _parsed(argv: list[str]) -> argparse.Namespace:
    made = options.parser("storage", "What is kept here, and how much room it takes.")
    made.add_argument(
        "--delete-older-than",
        metavar="DAYS",
        type=int,
        help="Sessions that nothing happened to for so long; names them, and deletes with --yes",
    )
    made.add_argument("--archived", action="store_true", help="of those, only archived ones")
    made.add_argument("--yes", action="store_true", help="delete them")
    made.add_argument(
        "--reclaim", action="store_true", help="give the room of deleted Sessions back to the disk"
    )
    given = made.parse_args(argv)
    if given.delete_older_than is None and (given.archived or given.yes):
        made.error("--archived and --yes are about --delete-older-than")
    if given.delete_older_than is not None and given.delete_older_than < 0:
        made.error("--delete-older-than takes a number of days")
    return given


def _database(surroundings: Environment) -> str:
    path = os.path.join(surroundings.data_dir, DATABASE_NAME)
    if not os.path.exists(path):
        raise Problem(f"there are no Sessions: {surroundings.data_dir} holds no database yet")
    try:
        migrate.migrate(path)
    except DatabaseError as error:
        raise Problem(str(error)) from error
    return path


async def _delete_old(surroundings: Environment, given: argparse.Namespace) -> None:
    before = SystemClock().now_millis() - given.delete_older_than * _DAY_MILLIS
    async with open_archive(None, surroundings) as archive:
        old = [
            session
            for session in await archive.sessions(_LISTED_MAX)
            if session["time"]["updated"] <= before
            and ("archived" in session["time"] or not given.archived)
        ]
    word = "deleted" if given.yes else "would go with --yes"
    async with session_client.open_client(None, surroundings) as client:
        for session in _roots(old):
            if given.yes:
                await client.sessions.delete(session["id"])
            title = terminal.one_line(session["title"])
            terminal.say(f"{terminal.one_line(session['id'])}  {title}: {word}\n")


def _roots(sessions: list[JsonObject]) -> Iterator[JsonObject]:
    """Those that do not go with another one anyway."""
    ids = {session["id"] for session in sessions}
    return (session for session in sessions if session.get("parentID") not in ids)


def _reclaim(path: str) -> None:
    try:
        storage.compact(path)
    except DatabaseError as error:
        raise Problem(f"{error}. Nothing was changed.") from error


def _report(path: str, data_dir: str) -> Iterator[str]:
    try:
        found = storage.load_usage(path)
    except DatabaseError as error:
        raise Problem(str(error)) from error
    yield f"database      {_size(found.file_bytes)}, of which {_size(found.free_bytes)} are free"
    yield f"  log         {_size(found.log_bytes)}"
    yield f"  sessions    {found.sessions}, of which {found.archived} are archived"
    yield f"  events      {found.events}"
    yield from _largest(found)
    for name, files, size in _folders(data_dir):
        yield f"{terminal.one_line(name):13} {_size(size)} in {files} files"


def _largest(found: DatabaseUsage) -> Iterator[str]:
    for session in found.largest:
        yield f"    {terminal.one_line(session.session_id)}  {session.events} events"


def _folders(data_dir: str) -> Iterator[tuple[str, int, int]]:
    """The folders beside the database, with what lies below each."""
    with os.scandir(data_dir) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    for name in names:
        sizes = list(_sizes(os.path.join(data_dir, name)))
        if sizes:
            yield name, len(sizes), sum(sizes)


def _sizes(folder: str) -> Iterator[int]:
    for directory, _, files in os.walk(folder):
        for name in files:
            try:
                yield os.lstat(os.path.join(directory, name)).st_size
            except FileNotFoundError:
                # Somebody is at work here.
                continue


def _size(count: int) -> str:
    amount = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if amount < 1_024:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1_024
    return f"{amount:.1f} GiB"
