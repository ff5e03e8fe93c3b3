"""Paths through which an agent could change what governs it.

They are known by name, whether or not they exist: a configuration that is not there yet would count
as soon as it is. What protection means is decided in core.approval.rules and
tools.files.path_access.

Invariant: spellings that some file system takes for the same name are protected alike.
"""

import unicodedata
from typing import Final

_CONFIGURATION: Final = frozenset({"opencode.json", "opencode.jsonc"})
_PLANS: Final = "plans"
"""Below `.opencode`: texts that agents write for people, and that nothing reads as settings."""


def is_protected(path: str) -> bool:
    """Whether changing the file at this canonical path needs a person's word each time."""
    names = _folded(path).split("/")
    for name, below in zip(names, [*names[1:], ""], strict=True):
        if name == ".git" or (name == ".opencode" and below != _PLANS):
            return True
    return names[-1] in _CONFIGURATION


def _folded(path: str) -> str:
    # Some file systems ignore case, and some ignore characters that nobody sees.
    visible = (char for char in path if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFKC", "".join(visible)).casefold()


def is_within(path: str, root: str) -> bool:
    """Whether the normalised `path` is `root` or lies below it."""
    return path == root or path.startswith(root.rstrip("/") + "/")
