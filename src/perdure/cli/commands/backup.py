"""`perdure backup`: copies the data directory while servers and runs use it.

The database is copied first and checked. Other files are copied after it, so those that the copy
names are there, except what was deleted meanwhile. A backup appears under its name when it is
complete. Credentials are left out unless they are asked for.
"""

import asyncio
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress

from perdure.cli import options, terminal
from perdure.cli.data_files import FOLDERS, SECRETS, copy_file, copy_folder, sync
from perdure.cli.problem import Problem
from perdure.host import data_directory
from perdure.host.data_directory import DATABASE_NAME, DataDirectoryError
from perdure.ports import DatabaseError
from perdure.store import migrate
from perdure.store.log import backup
from perdure.store.log.backup import CheckedCopy


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "backup",
        "Copy all Sessions, and the files that they refer to, into a new directory. Servers and"
        " runs may go on meanwhile. `perdure restore` reads the copy.",
        examples="perdure backup /backups/monday\nperdure backup /backups/monday --secrets",
    )
    parser.add_argument("target", metavar="DIR", help="new directory for the copy")
    parser.add_argument(
        "--secrets",
        action="store_true",
        help="also copy the stored credentials and the password of the server",
    )
    given = parser.parse_args(argv)
    environment = options.read_environment(given.data_dir)
    secrets = SECRETS if given.secrets else ()
    try:
        made = _make(environment.data_dir, os.path.abspath(given.target), secrets)
    except (DataDirectoryError, DatabaseError) as error:
        raise Problem(f"{error}. Nothing was backed up") from error
    except OSError as error:
        raise Problem(f"cannot write the backup: {error}. Nothing was backed up") from error
    terminal.print_output(
        f"{terminal.one_line(given.target)} holds {made.sessions} Sessions with {made.events}"
        f" events, {'with' if given.secrets else 'without'} credentials\n"
    )
    return 0


def _make(data_dir: str, target: str, secrets: Sequence[str]) -> CheckedCopy:
    path = os.path.join(data_dir, DATABASE_NAME)
    if not os.path.exists(path):
        raise Problem(f"there is nothing to back up: {data_dir} holds no database")
    if os.path.lexists(target):
        raise Problem(f"{target} exists already; name a new directory")
    data_directory.require_database(path)
    migrate.migrate(path)
    partial = f"{target}.partial"
    os.mkdir(partial, mode=0o700)
    try:
        made = asyncio.run(backup.copy_checked(path, os.path.join(partial, DATABASE_NAME)))
        for name in FOLDERS:
            copy_folder(os.path.join(data_dir, name), os.path.join(partial, name))
        for name in secrets:
            with suppress(FileNotFoundError):
                copy_file(os.path.join(data_dir, name), os.path.join(partial, name))
        sync(partial)
        os.rename(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    sync(os.path.dirname(target))
    return made
