"""Directories that appear whole: made aside, then given their name in one step."""

import errno
import os


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
