"""Scans a directory for skill files and their names.

Links are followed, each directory is entered once, and the scan is bounded. location.skills.files
reads the files. What cannot be looked at makes the scan incomplete; what is seen to be absent does
not.
"""

import itertools
import os
import stat
from collections.abc import Callable, Iterator
from typing import Final

from perdure.core import limits
from perdure.core.files.paths import is_within
from perdure.core.skills import skill
from perdure.host.files import cached_files
from perdure.host.files.cached_files import NotAFileError, Signature
from perdure.schema.value import Value

NameOf = Callable[[str], str | None]
"""Maps a path below the directory to the name of the skill, `""` for unnamed, None for no skill."""

_SKIPPED: Final = frozenset({".git", "node_modules"})
"""Large directories that hold no skills. Other hidden directories are scanned."""


def authored_name(relative: str) -> str | None:
    """The layout that users write: one `<name>.md` each, or one directory with a SKILL.md each."""
    if "/" not in relative and relative.endswith(".md"):
        return relative.removesuffix(".md")
    return "" if relative.endswith(f"/{skill.FILE_NAME}") else None


class FoundFile(Value):
    path: str
    signature: Signature
    name: str | None
    """The name that its path gives, if any."""


class Scan:
    """One scan; `signatures` and `problems` are filled while `files` is iterated."""

    def __init__(self, directory: str, *, within: str | None, name_of: NameOf) -> None:
        self._directory = directory
        self._within = None if within is None else os.path.realpath(within)
        self._name_of = name_of
        self._entered: set[tuple[int, int]] = set()
        self._entries_left = limits.SKILL_DIRECTORY_ENTRIES_MAX
        self.signatures: dict[str, Signature | None] = {}
        """Signatures of all paths whose change may change the result; None for a missing path."""
        self.problems: dict[str, str] = {}
        self.is_complete = True
        """Whether everything could be looked at."""

    def files(self) -> Iterator[FoundFile]:
        waiting = [""]
        while waiting:
            below = waiting.pop()
            for entry in self._entries(os.path.join(self._directory, below)):
                relative = f"{below}{entry.name}"
                name = self._name_of(relative)
                if self._is_directory(entry):
                    waiting.append(f"{relative}/")
                    if name is not None:
                        self.report_unreadable(entry.path, NotAFileError(entry.path))
                elif name is not None and (found := self._file(entry.path, name)) is not None:
                    yield found

    def report_unreadable(self, path: str, error: OSError) -> None:
        self.is_complete = False
        self.problems[path] = f"cannot be read: {(error.strerror or str(error)).lower()}"

    def _entries(self, path: str) -> list[os.DirEntry[str]]:
        """The entries of a directory, last name first: the stack reverses them."""
        directory = path.rstrip("/")
        try:
            status = os.stat(directory)
            self.signatures[directory] = cached_files.signature(directory)
            if not stat.S_ISDIR(status.st_mode) or not self._enters(directory, status):
                return []
            with os.scandir(directory) as listing:
                found = list(itertools.islice(listing, self._entries_left + 1))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            self.signatures[directory] = None
            return []
        except OSError as error:
            self.report_unreadable(directory, error)
            return []
        if len(found) > self._entries_left:
            self._too_large(f"{limits.SKILL_DIRECTORY_ENTRIES_MAX} entries")
        kept = sorted(found[: self._entries_left], key=lambda entry: entry.name, reverse=True)
        self._entries_left -= len(kept)
        return [entry for entry in kept if entry.name not in _SKIPPED]

    def _enters(self, directory: str, status: os.stat_result) -> bool:
        identity = status.st_dev, status.st_ino
        if identity in self._entered or self._leads_out(directory):
            return False
        if len(self._entered) == limits.SKILL_DIRECTORIES_MAX:
            self._too_large(f"{limits.SKILL_DIRECTORIES_MAX} directories")
            return False
        self._entered.add(identity)
        return True

    def _file(self, path: str, name: str) -> FoundFile | None:
        try:
            self.signatures[path] = signature = cached_files.signature(path)
        except OSError as error:
            self.report_unreadable(path, error)
            return None
        if signature is None or self._leads_out(path):
            return None
        return FoundFile(path, signature, name or None)

    def _leads_out(self, path: str) -> bool:
        if self._within is None:
            return False
        real = os.path.realpath(path)
        if is_within(real, self._within):
            return False
        self.problems[path] = "is left out: it is a link that leads out of the project"
        return True

    def _too_large(self, most: str) -> None:
        self.problems[self._directory] = f"is not searched any further: it has more than {most}"

    def _is_directory(self, entry: os.DirEntry[str]) -> bool:
        try:
            return entry.is_dir()
        except OSError as error:
            self.report_unreadable(entry.path, error)
            return False
