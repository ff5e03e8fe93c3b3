"""File descriptors of this process: how many it may open, and how many may be connections."""

import errno
import resource
from typing import Final

from perdure.core import limits

_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE})


def connections_max(descriptors_max: int | None = None) -> int:
    """How many connections leave enough of the descriptors for everything else.

    `descriptors_max` is the process's own limit (`ulimit -n`) if it is not given.
    """
    count = _limit() if descriptors_max is None else descriptors_max
    reserved = max(
        limits.DESCRIPTORS_RESERVED_MIN, count * limits.DESCRIPTORS_RESERVED_PERCENT // 100
    )
    least = count * limits.DESCRIPTORS_CONNECTED_PERCENT_MIN // 100
    return min(max(count - reserved, least, 1), limits.CONNECTIONS_MAX)


def are_exhausted(error: OSError) -> bool:
    """Whether an operation failed because the process or the system can open no more files."""
    return error.errno in _EXHAUSTED


def _limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limits.CONNECTIONS_MAX * 2 if soft == resource.RLIM_INFINITY else soft
