"""The files of a data directory beside the database, and copying them for backups."""

import os
import shutil
from contextlib import suppress
from typing import Final

from perdure.host.credentials import file as credential_file
from perdure.host.credentials.secrets import CURSOR_KEY_NAME, PASSWORD_NAME
from perdure.location.tools.built_in import OUTPUT_DIRECTORY
from perdure.runtime.files.snapshots import CONTENT_DIRECTORY

FOLDERS: Final = (CONTENT_DIRECTORY, OUTPUT_DIRECTORY, "plans")
"""What Sessions refer to. Trust and caches stay behind: they belong to one machine."""
SECRETS: Final = (credential_file.NAME, CURSOR_KEY_NAME, PASSWORD_NAME)


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
