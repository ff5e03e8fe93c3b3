"""Scans a directory tree for the states of its files, within limits.

Used around commands, which change files without naming them. A file with the stamps (times, size,
inode) of an earlier scan is not read again. `.git`, ignored files, Perdure's own directories and
names that are not UTF-8 are left out. Links have a state of their own and are never followed.

Invariant: a state belongs to the stamps stored with it; a file not read in time is `unknown`.
"""

import os
import stat
import time
from collections.abc import Mapping
from typing import Final

from msgspec import field

from perdure.core import limits
from perdure.core.files import ignore
from perdure.core.files.file_state import ABSENT, OTHER, UNKNOWN, FileState
from perdure.core.files.ignore import IgnoreRule
from perdure.core.files.revert import FileChange
from perdure.host.files.restorable import RestorableFiles
from perdure.schema.value import State, Value

_REPOSITORY: Final = ".git"
_IGNORE_FILE: Final = ".gitignore"
Stamps = tuple[int, int, int, int, int]
"""Modification time, change time, size, inode, permissions."""
_CHANGED: Final = 1


class ScannedFile(Value):
    stamps: Stamps
    state: FileState


Tree = dict[str, ScannedFile]
"""The scanned files by absolute path."""


class TreeTooLargeError(Exception):
    """The tree has more files than the limit."""


class _DirectoryRules(Value):
    """The ignore rules of a directory, for everything below it."""

    directory: str
    rules: tuple[IgnoreRule, ...]


class _ScanState(State):
    """The state of one running scan."""

    root: str
    known: Mapping[str, ScannedFile]
    read_until: float
    walk_until: float
    trusted_before: int
    bytes_left: int = limits.SNAPSHOT_TREE_BYTES_MAX
    found: Tree = field(default_factory=dict[str, ScannedFile])


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
        """Canonical directories that are never scanned."""

    def scan(self, root: str, known: Mapping[str, ScannedFile], *, now_nanos: int) -> Tree:
        """Scan everything below the canonical `root`. Raises TreeTooLargeError or OSError.

        `now_nanos` is the current time of the file system's clock.
        """
        scan = _ScanState(
            root=root,
            known=known,
            read_until=time.monotonic() + limits.SNAPSHOT_SCAN_SECONDS_MAX,
            walk_until=time.monotonic() + limits.SNAPSHOT_WALK_SECONDS_MAX,
            trusted_before=now_nanos - limits.SNAPSHOT_SETTLED_NANOS,
        )
        stack: list[tuple[str, tuple[_DirectoryRules, ...]]] = [(root, _rules_above(root))]
        while stack:
            directory, inherited = stack.pop()
            try:
                with os.scandir(directory) as found:
                    entries = list(found)
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                continue
            stack += self._visit(scan, directory, entries, inherited)
            if len(scan.found) > self._files_max:
                raise TreeTooLargeError(f"it holds more than {self._files_max} files")
        return scan.found

    def _visit(
        self,
        scan: _ScanState,
        directory: str,
        entries: list[os.DirEntry[str]],
        inherited: tuple[_DirectoryRules, ...],
    ) -> list[tuple[str, tuple[_DirectoryRules, ...]]]:
        """Record the files of a directory; returns the directories below it."""
        names = {entry.name for entry in entries}
        rules = (
            (*inherited, *_read_rules(directory, _IGNORE_FILE))
            if _IGNORE_FILE in names
            else inherited
        )
        below: list[tuple[str, tuple[_DirectoryRules, ...]]] = []
        for entry in entries:
            if time.monotonic() > scan.walk_until:
                raise TreeTooLargeError("scanning it takes too long")
            is_directory = entry.is_dir(follow_symlinks=False)
            if not self._is_wanted(entry, rules, is_directory=is_directory):
                continue
            if is_directory:
                below.append((entry.path, rules))
            else:
                self._record(scan, entry)
        return below

    def _is_wanted(
        self, entry: os.DirEntry[str], rules: tuple[_DirectoryRules, ...], *, is_directory: bool
    ) -> bool:
        if entry.name == _REPOSITORY or entry.path in self._own or not _is_text(entry.name):
            return False
        return not _is_ignored(entry.path, rules, is_directory=is_directory)

    def _record(self, scan: _ScanState, entry: os.DirEntry[str]) -> None:
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return
        stamps = _stamps(status)
        before = scan.known.get(entry.path)
        if (
            before is not None
            and before.stamps == stamps
            and status.st_mtime_ns < scan.trusted_before
        ):
            scan.found[entry.path] = before
            return
        scan.found[entry.path] = ScannedFile(stamps, self._state(scan, entry.path, status))

    def _state(self, scan: _ScanState, path: str, status: os.stat_result) -> FileState:
        if stat.S_ISREG(status.st_mode):
            scan.bytes_left -= status.st_size
            if scan.bytes_left < 0 or time.monotonic() > scan.read_until:
                return UNKNOWN
        elif not stat.S_ISLNK(status.st_mode):
            return OTHER
        return self._files.read_state(scan.root, path, bytes_max=limits.SNAPSHOT_FILE_BYTES_MAX)


def compare_trees(root: str, before: Tree, after: Tree, *, since_nanos: int) -> list[FileChange]:
    """The changes between two scans, the first begun at `since_nanos`, in path order."""
    found: list[FileChange] = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if new is not None and old is None and new.stamps[_CHANGED] < since_nanos:
            # The file is older, and was ignored in the first scan: the ignore rules changed.
            continue
        if old is not None and new is not None and old.stamps == new.stamps:
            continue
        earlier = ABSENT if old is None else old.state
        later = ABSENT if new is None else new.state
        if not earlier.same(later) and not (earlier == OTHER == later):
            found.append(FileChange(root=root, path=path, before=earlier, after=later))
    return found


def _rules_above(root: str) -> tuple[_DirectoryRules, ...]:
    """The rules of the directories above, outermost first, from the repository's root."""
    levels: list[str] = []
    current = root
    while not os.path.exists(os.path.join(current, _REPOSITORY)):
        if current == os.path.dirname(current):
            # Not in a repository: only rules inside the tree count.
            return ()
        current = os.path.dirname(current)
        levels.insert(0, current)
    own = _read_rules(current, f"{_REPOSITORY}/info/exclude")
    return (*own, *(rules for level in levels for rules in _read_rules(level, _IGNORE_FILE)))


def _read_rules(directory: str, name: str) -> tuple[_DirectoryRules, ...]:
    try:
        with open(
            os.path.join(directory, name), encoding="utf-8", errors="surrogateescape", newline=""
        ) as file:
            text = file.read(limits.SNAPSHOT_FILE_BYTES_MAX)
    except OSError:
        return ()
    rules = ignore.parse_ignore(text)
    return (_DirectoryRules(directory, rules),) if rules else ()


def _is_ignored(path: str, rules: tuple[_DirectoryRules, ...], *, is_directory: bool) -> bool:
    for level in reversed(rules):
        relative = path[len(level.directory) :].lstrip("/")
        verdict = ignore.ignored(level.rules, relative, is_directory=is_directory)
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
