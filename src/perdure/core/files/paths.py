"""Protected paths: files through which an agent could change its own rules.

They are recognised by name, even if they do not exist yet, because a new configuration file would
take effect. core.approval.rules and tools.files.path_access enforce the protection.

Invariant: spellings that some file system treats as the same name are protected alike.
"""

import unicodedata
from typing import Final

_CONFIGURATION: Final = frozenset({"opencode.json", "opencode.jsonc"})
_PLANS: Final = "plans"
"""Directory below `.opencode` with texts for people, which are never read as settings."""


def is_protected(path: str) -> bool:
    """Whether each change of this canonical path needs a person's approval."""
    names = _folded(path).split("/")
    for name, below in zip(names, [*names[1:], ""], strict=True):
        if name == ".git" or (name == ".opencode" and below != _PLANS):
            return True
    return names[-1] in _CONFIGURATION


def _folded(path: str) -> str:
    # Some file systems ignore case, and some ignore invisible characters.
    visible = (char for char in path if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFKC", "".join(visible)).casefold()


def is_within(path: str, root: str) -> bool:
    """Whether the normalised `path` is `root` or below it."""
    return path == root or path.startswith(root.rstrip("/") + "/")
