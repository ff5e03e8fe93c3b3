"""The directories between a Location and the root of its project.

Above the Location the walk stops at a world-writable directory such as /tmp: files there are not
part of the user's project.
"""

import os
import stat
from typing import Final

from perdure.host.files import cached_files

DISABLE: Final = "OPENCODE_DISABLE_PROJECT_CONFIG"
"""Variable that disables reading configuration of a project, with `1` or `true`."""


def list_upwards(directory: str, root: str) -> list[str]:
    """The directories from `directory` up to `root`, the nearest first. Raises OSError."""
    chain = [directory]
    while chain[-1] != root:
        parent = os.path.dirname(chain[-1])
        if parent == chain[-1] or _is_world_writable(parent):
            break
        chain.append(parent)
    return chain


def list_downwards(directory: str, root: str) -> list[str]:
    """The same directories, beginning at the root. Raises OSError."""
    return list_upwards(directory, root)[::-1]


def link_bounds(directory: str, root: str) -> str:
    """The directory that links of `directory` must not leave: the project's root, else itself.

    Raises OSError.
    """
    return cached_files.real_path(directory if root == "/" else root)


def is_disabled(value: str | None) -> bool:
    """Whether this value of `OPENCODE_DISABLE_PROJECT_CONFIG` disables discovery."""
    return (value or "").lower() in {"1", "true"}


def _is_world_writable(directory: str) -> bool:
    try:
        return bool(os.stat(directory).st_mode & stat.S_IWOTH)
    except (FileNotFoundError, NotADirectoryError):
        return True
