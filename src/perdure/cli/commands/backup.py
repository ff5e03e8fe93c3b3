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
from typing import Final

from perdure.cli import options, terminal
from perdure.cli.problem import Problem
from perdure.host import data_directory
from perdure.host.credentials import file as credential_file
from perdure.host.credentials.secrets import CURSOR_KEY_NAME, EXPORT_KEY_NAME, PASSWORD_NAME
from perdure.host.data_directory import DATABASE_NAME, DataDirectoryError
from perdure.location.tools.built_in import OUTPUT_DIRECTORY
from perdure.ports import DatabaseError
from perdure.runtime.files.snapshots import CONTENT_DIRECTORY
from perdure.store import migrate
from perdure.store.log import backup
from perdure.store.log.backup import CheckedCopy

FOLDERS: Final = (CONTENT_DIRECTORY, OUTPUT_DIRECTORY, "plans")
"""What Sessions refer to. Trust and caches stay behind: they belong to one machine."""
SECRETS: Final = (credential_file.NAME, CURSOR_KEY_NAME, EXPORT_KEY_NAME, PASSWORD_NAME)


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


def copy_folder(source: str, target: str) -> None:
    """Copy the regular files below `source`, if it exists, into private folders.

    A file that is deleted meanwhile is left out, and so are links.
    """
    if not os.path.isdir(source):
        return
    os.makedirs(target, mode=0o700, exist_ok=True)
    with os.scandir(source) as entries:
        for entry in entries:
            into = os.path.join(target, entry.name)
            if entry.is_dir(follow_symlinks=False):
                copy_folder(entry.path, into)
            elif entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):
                    copy_file(entry.path, into)
    sync(target)


def copy_file(source: str, target: str) -> None:
    """Copy one file, private and synced. Raises OSError."""
    with open(source, "rb") as reader, open(target, "xb", opener=_open_private) as writer:
        shutil.copyfileobj(reader, writer)
        writer.flush()
        os.fsync(writer.fileno())


def sync(directory: str) -> None:
    """Make the names in a directory survive a power loss."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
