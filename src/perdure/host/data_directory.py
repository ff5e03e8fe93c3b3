"""Prepares the data directory: private, writable, and on a local disk.

A directory that could lose data is refused, with its path and the remedy in the message.
"""

import os
import stat
from typing import Final

from perdure.core.files.paths import is_within

DATABASE_NAME: Final = "perdure.db"
SESSION_SERVERS_NAME: Final = "session-mcp"
PROCESSES_NAME: Final = "processes"
"""The folder with the locks of processes; each makes it once it has found the database complete."""

# Locks and shared memory are unreliable on these.
_NETWORK_FILESYSTEMS: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p", "fuse.sshfs", "fuse.s3fs", "ncpfs"}
)


class DataDirectoryError(Exception):
    """The data directory cannot be used; the message says which and what to do."""


def prepare(directory: str) -> str:
    """Prepare the directory and its database file; returns the path of that file."""
    prepare_directory(directory)
    return _private_file(os.path.join(directory, DATABASE_NAME))


def prepare_directory(directory: str) -> None:
    """Create the directory if needed, private to the user."""
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        _make_private(directory)
    except OSError as error:
        raise DataDirectoryError(
            f"Cannot create the data directory {directory}: {error.strerror}."
            " Choose another with --data-dir or PERDURE_DATA_DIR."
        ) from error
    _require_writable(directory)
    require_local(directory, _mounts())
    require_database(os.path.join(directory, DATABASE_NAME))


def require_database(path: str) -> None:
    """Refuse a database that was lost: SQLite would take an empty file for a new database.

    A log beside it holds what was stored last, and would be deleted. A missing database without a
    log is a new one, even in a used directory: people delete it to begin anew.
    """
    # In this order: another process may be creating all of them at this moment, the file first.
    was_used = os.path.isdir(os.path.join(os.path.dirname(path), PROCESSES_NAME))
    log, size = _size(f"{path}-wal"), _size(path)
    if size:
        return
    if log:
        raise DataDirectoryError(
            f"{path} is {'missing' if size is None else 'empty'}, but its log {path}-wal holds"
            f" {log} bytes that were stored and would be lost. Put the database back, or restore"
            " both files from a backup. To begin anew, move the log away."
        )
    if was_used and size == 0:
        raise DataDirectoryError(
            f"{path} is empty, although its directory was used before: what was stored there is"
            " gone. Restore the file from a backup. To begin anew, delete it."
        )


def require_local(directory: str, mounts: list[tuple[str, str]]) -> None:
    """Refuse network file systems; `mounts` are (mount point, type)."""
    path = os.path.realpath(directory)
    inside = [
        (len(point), order, kind)
        for order, (point, kind) in enumerate(mounts)
        if is_within(path, point)
    ]
    if not inside:
        return
    # The deepest mount point contains the path; a later mount hides an earlier one.
    _, _, kind = max(inside)
    if kind in _NETWORK_FILESYSTEMS:
        raise DataDirectoryError(
            f"{directory} is on a network file system ({kind}), where SQLite can lose data."
            " Choose a local directory with --data-dir or PERDURE_DATA_DIR."
        )


def _make_private(directory: str) -> None:
    """Make the directory private; refuse one that holds other files."""
    if not stat.S_IMODE(os.stat(directory).st_mode) & 0o077:
        return
    with os.scandir(directory) as entries:
        names = {entry.name for entry in entries}
    if names and DATABASE_NAME not in names:
        raise DataDirectoryError(
            f"{directory} holds other files and is open to other users. Choose an empty or new"
            " directory with --data-dir or PERDURE_DATA_DIR."
        )
    os.chmod(directory, 0o700)


def _require_writable(directory: str) -> None:
    read_only = os.statvfs(directory).f_flag & os.ST_RDONLY
    if read_only or not os.access(directory, os.W_OK | os.X_OK):
        raise DataDirectoryError(
            f"{directory} is read-only. Make it writable, or choose another with --data-dir or"
            " PERDURE_DATA_DIR."
        )


def _private_file(path: str) -> str:
    # Created before SQLite opens it, so that it is never readable by others.
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        if stat.S_IMODE(os.stat(path).st_mode) != 0o600:
            os.chmod(path, 0o600)
    except OSError as error:
        raise DataDirectoryError(
            f"Cannot write {path}: {error.strerror}. Check its owner and permissions."
        ) from error
    return path


def _size(path: str) -> int | None:
    """The size of a file; None when it does not exist."""
    try:
        return os.stat(path).st_size
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DataDirectoryError(
            f"Cannot look at {path}: {error.strerror}. Check its owner and permissions."
        ) from error


def _mounts() -> list[tuple[str, str]]:
    try:
        with open("/proc/mounts", encoding="utf-8", errors="surrogateescape") as file:
            fields = [line.split(" ") for line in file]
    except OSError:
        # This system has no mount table, so nothing can be checked.
        return []
    return [(parts[1].replace("\\040", " "), parts[2]) for parts in fields if len(parts) > 2]


def session_servers_path(data_dir: str, session_id: str) -> str:
    """Where the MCP servers are stored that a client gave to a Session."""
    return os.path.join(data_dir, SESSION_SERVERS_NAME, f"{session_id}.json")


def has_session_servers(data_dir: str, session_id: str) -> bool:
    return os.path.lexists(session_servers_path(data_dir, session_id))
