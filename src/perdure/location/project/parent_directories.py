"""The directories between a Location and the root of its project: where files that apply may lie.

Above the Location the walk ends at a directory that anybody may write to, such as /tmp: what lies
there is not part of anyone's project.
"""

import os
import stat
from typing import Final

DISABLE: Final = "OPENCODE_DISABLE_PROJECT_CONFIG"
"""Set to `1` or `true`: nothing that came with the directory is read without being asked for."""


def upwards(directory: str, root: str) -> list[str]:
    """The directories from `directory` up to `root`, the nearest first."""
    chain = [directory]
    while chain[-1] != root:
        parent = os.path.dirname(chain[-1])
        if parent == chain[-1] or _anybody_writes(parent):
            break
        chain.append(parent)
    return chain


def downwards(directory: str, root: str) -> list[str]:
    """The same, beginning at the root."""
    return upwards(directory, root)[::-1]


def bounds(directory: str, root: str) -> str:
    """What a file of `directory` may link to: its project; outside of any, that directory."""
    return os.path.realpath(directory if root == "/" else root)


def is_disabled(value: str | None) -> bool:
    """Whether this value of `OPENCODE_DISABLE_PROJECT_CONFIG` disables discovery."""
    return (value or "").lower() in {"1", "true"}


def _anybody_writes(directory: str) -> bool:
    try:
        return bool(os.stat(directory).st_mode & stat.S_IWOTH)
    except OSError:
        return True
