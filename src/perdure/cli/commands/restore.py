"""`perdure restore`: fills an empty data directory from a copy that `perdure backup` made.

The database is put in its place last, so an interrupted restore leaves no database behind.
"""

import asyncio
import os
from contextlib import suppress

from perdure.cli import options, terminal
from perdure.cli.commands.backup import FOLDERS, SECRETS, copy_file, copy_folder, sync
from perdure.cli.problem import Problem
from perdure.host import data_directory
from perdure.host.data_directory import DATABASE_NAME, DataDirectoryError
from perdure.ports import DatabaseError
from perdure.store.log import backup
from perdure.store.log.backup import CheckedCopy


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "restore",
        "Fill an empty data directory from a backup. Work that ran when the backup was made goes"
        " on as after a crash.",
        examples="perdure restore /backups/monday\nperdure restore /backups/monday --data-dir DIR",
    )
    parser.add_argument("source", metavar="DIR", help="a directory that `perdure backup` made")
    given = parser.parse_args(argv)
    environment = options.read_environment(given.data_dir)
    try:
        found = _fill(os.path.abspath(given.source), environment.data_dir)
    except (DataDirectoryError, DatabaseError) as error:
        raise Problem(f"{error}. Nothing was restored") from error
    except OSError as error:
        raise Problem(f"cannot restore {given.source}: {error}") from error
    terminal.print_output(
        f"{terminal.one_line(environment.data_dir)} holds {found.sessions} Sessions with"
        f" {found.events} events\n"
    )
    return 0


def _fill(source: str, data_dir: str) -> CheckedCopy:
    stored = os.path.join(source, DATABASE_NAME)
    if not os.path.isfile(stored):
        raise Problem(f"{source} is no backup: it holds no {DATABASE_NAME}")
    path = os.path.join(data_dir, DATABASE_NAME)
    if os.path.lexists(path):
        raise Problem(
            f"{data_dir} holds a database already; move it away, or name another directory with"
            " --data-dir"
        )
    data_directory.prepare_directory(data_dir)
    fresh = f"{path}.restoring"
    try:
        copy_file(stored, fresh)
        found = asyncio.run(backup.check(fresh))
        for name in FOLDERS:
            copy_folder(os.path.join(source, name), os.path.join(data_dir, name))
        for name in SECRETS:
            with suppress(FileNotFoundError):
                copy_file(os.path.join(source, name), os.path.join(data_dir, name))
        sync(data_dir)
        os.rename(fresh, path)
    finally:
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(fresh + suffix)
    sync(data_dir)
    return found
