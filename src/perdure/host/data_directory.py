"""The data directory: ours alone, private, and on a disk that a database can live on.

Refuses what would lose data later, with the path and the remedy in the message.
"""

import os
import stat
from typing import Final

from perdure.core.files.paths import is_within

DATABASE_NAME: Final = "perdure.db"

# Locks and shared memory do not work, or lie, on these.
_NETWORK_FILESYSTEMS: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p", "fuse.sshfs", "fuse.s3fs", "ncpfs"}
)


class DataDirectoryError(Exception):
    """The data directory cannot be used; the message says which and what to do."""


def prepare(directory: str) -> str:
    """Make the directory if need be, private to the user; the path of the database in it."""
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        _make_private(directory)
    except OSError as error:
        raise DataDirectoryError(
            f"Cannot make the data directory {directory}: {error.strerror}."
            " Choose another with --data-dir or PERDURE_DATA_DIR."
        ) from error
    _require_writable(directory)
    require_local(directory, _mounts())
    return _private_file(os.path.join(directory, DATABASE_NAME))


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
    # The deepest mount point holds the path; of two on one point, the later covers the other.
    _, _, kind = max(inside)
    if kind in _NETWORK_FILESYSTEMS:
        raise DataDirectoryError(
            f"{directory} is on a network file system ({kind}), where SQLite can lose data."
            " Choose a local directory with --data-dir or PERDURE_DATA_DIR."
        )


def _make_private(directory: str) -> None:
    """Close our own directory to others; refuse one that is plainly for something else."""
    if not stat.S_IMODE(os.stat(directory).st_mode) & 0o077:
        return
    with os.scandir(directory) as entries:
        names = {entry.name for entry in entries}
    if names and DATABASE_NAME not in names:
        raise DataDirectoryError(
            f"{directory} holds other files and is open to other users. Choose a directory of its"
            " own with --data-dir or PERDURE_DATA_DIR."
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
    # Made before SQLite opens it, so that it is never readable by others, not even for a moment.
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        if stat.S_IMODE(os.stat(path).st_mode) != 0o600:
            os.chmod(path, 0o600)
    except OSError as error:
        raise DataDirectoryError(
            f"Cannot write {path}: {error.strerror}. Check its owner and permissions."
        ) from error
    return path


def _mounts() -> list[tuple[str, str]]:
    try:
        with open("/proc/mounts", encoding="utf-8", errors="surrogateescape") as file:
            fields = [line.split(" ") for line in file]
    except OSError:
        # No such table on this system: nothing is known to be wrong.
        return []
    return [(parts[1].replace("\\040", " "), parts[2]) for parts in fields if len(parts) > 2]
