"""Looks at paths that fail with a chosen error, by the library of failing_paths.c."""

import ctypes
import errno
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

ERRORS: Final = frozenset(errno.errorcode) - {errno.ENOENT, errno.ENOTDIR, errno.EINTR}
"""Every error that is no absence. Python itself repeats a call that was interrupted."""


@contextmanager
def failing_below(path: str, error: int) -> Generator[None]:
    """Within the scope, looking at the path and at all below it fails."""
    library = ctypes.CDLL(None)
    library.fail_below(path.encode(), error)
    try:
        yield
    finally:
        library.fail_below(b"", 0)


def count_failures() -> int:
    return int(ctypes.CDLL(None).failures())
