"""Non-blocking locks between processes, and atomic creation of directories.

The operating system releases a lock when its holder dies.
"""

import errno
import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def try_lock(path: str) -> Generator[bool]:
    """Try to take the lock at `path` for the scope; yields whether that worked.

    Two scopes of one process exclude each other as well.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            locked = False
        else:
            locked = True
        yield locked
    finally:
        os.close(handle)


def put_in_place(staged: str, directory: str) -> bool:
    """Rename a staged directory to its final name; False when that exists already."""
    try:
        os.rename(staged, directory)
    except OSError as error:
        # Another process was first.
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True
