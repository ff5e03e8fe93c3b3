"""A look at a whole directory: which files are there, and in what state, as far as it is cheap.

Only for commands, which change files without saying which. A file whose stamps (times, size, inode)
are those of an earlier look is not read again. Left out are `.git`, what git's ignore files name,
our own directories, and names that are not UTF-8. Links are states of their own, never followed.

Invariant: a state is of the very stamps it stands beside; what was not read in time is `unknown`.
"""

import os
import stat
import time
from collections.abc import Mapping
from typing import Final

from msgspec import field

from perdure.core import limits
from perdure.core.files import glob
from perdure.core.files.file_state import ABSENT, OTHER, UNKNOWN, FileState
from perdure.core.files.glob import IgnoreRule
from perdure.core.files.revert import FileChange
from perdure.host.files.restorable import RestorableFiles
from perdure.schema.value import State, Value

_REPOSITORY: Final = ".git"
_IGNORE_FILE: Final = ".gitignore"
Stamps = tuple[int, int, int, int, int]
"""Of content, of anything, size, inode, permissions."""
_CHANGED: Final = 1


class Seen(Value):
    stamps: Stamps
    state: FileState


Tree = dict[str, Seen]
"""What was seen, by absolute path."""


class TreeTooLargeError(Exception):
    """There are more files than are looked at."""


class _Ruled(Value):
    """The ignore rules that a directory adds for everything below it."""

    directory: str
    rules: tuple[IgnoreRule, ...]


class _Look(State):
    """One scan under way."""

    root: str
    known: Mapping[str, Seen]
    read_until: float
    trusted_before: int
    bytes_left: int = limits.SNAPSHOT_TREE_BYTES_MAX
    found: Tree = field(default_factory=dict[str, Seen])


class TreeScanner:
    def __init__(
        self,
        files: RestorableFiles,
        *,
        own: tuple[str, ...] = (),
        files_max: int = limits.SNAPSHOT_TREE_FILES_MAX,
    ) -> None:
        self._files = files
        self._files_max = files_max
        self._own = frozenset(own)
        """Canonical directories that are never looked into."""

    def scan(self, root: str, known: Mapping[str, Seen], *, now_nanos: int) -> Tree:
        """Everything below the canonical `root`. Raises TreeTooLargeError or OSError.

        `now_nanos` is the time that the file system would stamp a file with now.
        """
        look = _Look(
            root=root,
            known=known,
            read_until=time.monotonic() + limits.SNAPSHOT_SCAN_SECONDS_MAX,
            trusted_before=now_nanos - limits.SNAPSHOT_SETTLED_NANOS,
        )
        waiting: list[tuple[str, tuple[_Ruled, ...]]] = [(root, _rules_above(root))]
        while waiting:
            directory, inherited = waiting.pop()
            try:
                with os.scandir(directory) as found:
                    entries = list(found)
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                continue
            waiting += self._visited(look, directory, entries, inherited)
            if len(look.found) > self._files_max:
                raise TreeTooLargeError(f"it holds more than {self._files_max} files")
        return look.found

    def _visited(
        self,
        look: _Look,
        directory: str,
        entries: list[os.DirEntry[str]],
        inherited: tuple[_Ruled, ...],
    ) -> list[tuple[str, tuple[_Ruled, ...]]]:
        """Take the files of a directory; the directories below it."""
        names = {entry.name for entry in entries}
        ruled = (
            (*inherited, *_rules_of(directory, _IGNORE_FILE))
            if _IGNORE_FILE in names
            else inherited
        )
        below: list[tuple[str, tuple[_Ruled, ...]]] = []
        for entry in entries:
            is_directory = entry.is_dir(follow_symlinks=False)
            if not self._is_wanted(entry, ruled, is_directory=is_directory):
                continue
            if is_directory:
                below.append((entry.path, ruled))
            else:
                self._take(look, entry)
        return below

    def _is_wanted(
        self, entry: os.DirEntry[str], ruled: tuple[_Ruled, ...], *, is_directory: bool
    ) -> bool:
        if entry.name == _REPOSITORY or entry.path in self._own or not _is_text(entry.name):
            return False
        return not _is_ignored(entry.path, ruled, is_directory=is_directory)

    def _take(self, look: _Look, entry: os.DirEntry[str]) -> None:
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return
        stamps = _stamps(status)
        before = look.known.get(entry.path)
        if (
            before is not None
            and before.stamps == stamps
            and status.st_mtime_ns < look.trusted_before
        ):
            look.found[entry.path] = before
            return
        look.found[entry.path] = Seen(stamps, self._state(look, entry.path, status))

    def _state(self, look: _Look, path: str, status: os.stat_result) -> FileState:
        if stat.S_ISREG(status.st_mode):
            look.bytes_left -= status.st_size
            if look.bytes_left < 0 or time.monotonic() > look.read_until:
                return UNKNOWN
        elif not stat.S_ISLNK(status.st_mode):
            return OTHER
        return self._files.look(look.root, path, bytes_max=limits.SNAPSHOT_FILE_BYTES_MAX)


def changes(root: str, before: Tree, after: Tree, *, since_nanos: int) -> list[FileChange]:
    """What differs between two looks, the first begun at `since_nanos`, in path order."""
    found: list[FileChange] = []
    for path in sorted(before.keys() | after.keys()):
        one, two = before.get(path), after.get(path)
        if two is not None and one is None and two.stamps[_CHANGED] < since_nanos:
            # It was there before, and only not looked at: what is ignored has changed.
            continue
        if one is not None and two is not None and one.stamps == two.stamps:
            continue
        earlier = ABSENT if one is None else one.state
        later = ABSENT if two is None else two.state
        if not earlier.same(later) and not (earlier == OTHER == later):
            found.append(FileChange(root=root, path=path, before=earlier, after=later))
    return found


def _rules_above(root: str) -> tuple[_Ruled, ...]:
    """What the directories above say, outermost first, from the top of the repository."""
    levels: list[str] = []
    here = root
    while not os.path.exists(os.path.join(here, _REPOSITORY)):
        if here == os.path.dirname(here):
            # Not in a repository: only what the tree itself says counts.
            return ()
        here = os.path.dirname(here)
        levels.insert(0, here)
    own = _rules_of(here, f"{_REPOSITORY}/info/exclude")
    return (*own, *(rules for level in levels for rules in _rules_of(level, _IGNORE_FILE)))


def _rules_of(directory: str, name: str) -> tuple[_Ruled, ...]:
    try:
        with open(os.path.join(directory, name), encoding="utf-8", errors="replace") as file:
            text = file.read(limits.SNAPSHOT_FILE_BYTES_MAX)
    except OSError:
        return ()
    rules = glob.parse_ignore(text)
    return (_Ruled(directory, rules),) if rules else ()


def _is_ignored(path: str, ruled: tuple[_Ruled, ...], *, is_directory: bool) -> bool:
    for level in reversed(ruled):
        relative = path[len(level.directory) :].lstrip("/")
        verdict = glob.ignored(level.rules, relative, is_directory=is_directory)
        if verdict is not None:
            return verdict
    return False


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _stamps(status: os.stat_result) -> Stamps:
    return (
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_size,
        status.st_ino,
        stat.S_IMODE(status.st_mode),
    )
