"""Directories of this user alone, in places where every user may make one."""

import os
import stat
from contextlib import suppress


def make(path: str) -> bool:
    """Make a directory, unless it is there; False if it is not this user's own."""
    with suppress(OSError):
        os.mkdir(path, 0o700)
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def shared_root(temp_dir: str) -> str:
    """The directory of this user below the one for temporary files."""
    return os.path.join(temp_dir, f"perdure-{os.getuid()}")
