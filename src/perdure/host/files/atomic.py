"""A lock between processes that nobody waits for: whoever does not get it comes back later.

The operating system drops it when its holder dies, however it dies.
"""

import errno
import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def tried(path: str) -> Generator[bool]:
    """Whether the lock at `path` was free; if so it is held until the end of the scope.

    Two scopes of one process exclude each other as well.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            mine = False
        else:
            mine = True
        yield mine
    finally:
        os.close(handle)


def put_in_place(made: str, directory: str) -> bool:
    """Give a directory that was made aside its name; False when that is taken by another one."""
    try:
        os.rename(made, directory)
    except OSError as error:
        # Of another process that was quicker.
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True
