"""Tells which Protected paths a command has changed, as far as its text names them.

A courtesy to the model and the person who reads along, and no protection: what a command may write
is decided by its permission and by the sandbox.
"""

import posixpath
from typing import Final

from perdure.core.approval import protected_paths
from perdure.core.limits import BASH_WARNINGS_MAX
from perdure.lazy_pattern import lazy_pattern
from perdure.ports import Filesystem
from perdure.schema.value import Value

_SEPARATORS: Final = lazy_pattern(r"[\s'\"`;|&()<>=]+")
_ABSENT: Final = (-1, -1)


class ProtectedFiles(Value, kw_only=True):
    """The Protected paths that a command names, as they were before it ran."""

    filesystem: Filesystem
    directory: str
    before: dict[str, tuple[int, int]]
    """By the word of the command: time of modification and size."""

    async def list_changed(self) -> tuple[str, ...]:
        """One line for each that the command has created, changed or removed."""
        lines: list[str] = []
        for word, before in self.before.items():
            found = protected_paths.find_protection(word)
            changed = before != await _stamp(self.filesystem, self.directory, word)
            if found is not None and changed:
                lines.append(f"Warning: the command changed {word}: {found.why}.")
        return tuple(lines)


async def observe(filesystem: Filesystem, command: str, directory: str) -> ProtectedFiles:
    """Look at the Protected paths that a command names, before it runs."""
    words = dict.fromkeys(_SEPARATORS.split(command))
    named = [word for word in words if protected_paths.find_protection(word) is not None]
    stamps = {word: await _stamp(filesystem, directory, word) for word in named[:BASH_WARNINGS_MAX]}
    return ProtectedFiles(filesystem=filesystem, directory=directory, before=stamps)


async def _stamp(filesystem: Filesystem, directory: str, word: str) -> tuple[int, int]:
    try:
        status = await filesystem.stat(posixpath.join(directory, word))
    except (OSError, ValueError):
        return _ABSENT
    return status.modified_ns, status.size
