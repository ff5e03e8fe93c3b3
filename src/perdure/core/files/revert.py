"""File reverts: which paths return to which state, and which are conflicts.

A revert uses the recorded file changes of the Session. A path returns to its state before the
first change after the boundary, if only the Session has changed it since. Otherwise it is a
conflict, which is reported, and the file stays.

Invariant: a path is only moved from a state that the Session itself left.
"""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal

from perdure.core import limits
from perdure.core.files import exact_edit, file_state
from perdure.core.files.file_state import FileState
from perdure.schema.session.session import FileDiff
from perdure.schema.value import Value

CHANGED_SINCE: Final = "it has been changed since"
CHANGED_BETWEEN: Final = "another program changed it between two changes of this Session"
NOT_KEPT: Final = "what it was before is not kept"
CHANGED_STAGED: Final = "it has been changed since the revert was staged"

_ID_BYTES: Final = 20


class FileChange(Value, kw_only=True):
    """A change of one path by a step."""

    root: str
    """The directory that contains the path, reached without following links."""
    path: str
    before: FileState
    after: FileState


class StagedFile(Value, kw_only=True):
    """A path that a staged revert has changed."""

    root: str
    path: str
    base: FileState
    """The state when the revert was first staged."""
    staged: FileState
    """The state that the revert left."""


class Move(Value, kw_only=True):
    """A path's move from the found state to the wanted one."""

    root: str
    path: str
    base: FileState
    found: FileState
    wanted: FileState

    @property
    def changes(self) -> bool:
        return not self.found.same(self.wanted)


class Conflict(Value):
    path: str
    reason: str


class RevertPlan(Value):
    moves: tuple[Move, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


def plan_revert(
    changes: Sequence[FileChange],
    staged: Mapping[str, StagedFile],
    now: Mapping[str, FileState],
) -> RevertPlan:
    """How to stage a revert, also again. `changes` are those after the boundary, in order."""
    rows: dict[str, list[FileChange]] = {}
    for change in changes:
        rows.setdefault(change.path, []).append(change)
    moves: list[Move] = []
    conflicts: list[Conflict] = []
    for path in sorted(rows.keys() | staged.keys()):
        item = staged.get(path)
        if item is not None and not _is_unchanged(item, now[path]):
            conflicts.append(Conflict(path, CHANGED_STAGED))
            continue
        move, conflict = _plan_path(rows.get(path, []), item, now[path])
        moves += () if move is None else (move,)
        conflicts += () if conflict is None else (conflict,)
    return RevertPlan(tuple(moves), tuple(conflicts))


def next_snapshot(snapshot: str, change: FileChange) -> str:
    """The id of the Session's file snapshot after one more change."""
    content = "\0".join((snapshot, change.path, file_state.encode(change.after)))
    return hashlib.blake2b(content.encode(), digest_size=_ID_BYTES).hexdigest()


def _is_unchanged(item: StagedFile, now: FileState) -> bool:
    # An interrupted revert may have left it at its base.
    return now.same(item.staged) or now.same(item.base)


def _plan_path(
    rows: Sequence[FileChange], item: StagedFile | None, now: FileState
) -> tuple[Move | None, Conflict | None]:
    """The move of a path as if nothing were staged; without changes it returns to its base."""
    base = now if item is None else item.base
    wanted = _target_state(rows, base) if rows else base
    conflict = wanted if isinstance(wanted, Conflict) else None
    target = base if isinstance(wanted, Conflict) else wanted
    if item is None and (conflict is not None or now.same(target)):
        return None, conflict
    root, path = (rows[0].root, rows[0].path) if item is None else (item.root, item.path)
    return Move(root=root, path=path, base=base, found=now, wanted=target), conflict


def _target_state(rows: Sequence[FileChange], now: FileState) -> FileState | Conflict:
    """The state that a path returns to; the current one if it is already there."""
    first, last = rows[0], rows[-1]
    if not first.before.is_kept:
        return Conflict(first.path, NOT_KEPT)
    if now.same(first.before):
        return now
    if any(not one.after.same(two.before) for one, two in pairwise(rows)):
        return Conflict(first.path, CHANGED_BETWEEN)
    # A process that died may have recorded its last change without making it.
    if not (now.same(last.after) or now.same(last.before)):
        return Conflict(first.path, CHANGED_SINCE)
    return first.before


Status = Literal["added", "modified", "deleted"]


def diff_move(move: Move, name: str, *, before: bytes | None, after: bytes | None) -> FileDiff:
    """The diff of a move; `before` and `after` are the contents, None if absent."""
    status = _status(move)
    old, new = _text(before), _text(after)
    if old is None or new is None:
        patch = f"Binary files a/{name} and b/{name} differ\n"
        return FileDiff(path=name, status=status, additions=0, deletions=0, patch=patch)
    if old == new:
        # Only the permissions or the kind changed.
        return FileDiff(path=name, status=status, additions=0, deletions=0, patch="")
    diff = exact_edit.line_diff(name, before=old, after=new)
    return FileDiff(
        path=name,
        status=status,
        additions=diff.additions,
        deletions=diff.deletions,
        patch=diff.patch,
    )


def diff_without_content(move: Move, name: str) -> FileDiff:
    """The diff of a move whose contents are not known: that the path changed, and how."""
    return FileDiff(path=name, status=_status(move), additions=0, deletions=0, patch="")


def join_patches(files: tuple[FileDiff, ...]) -> str:
    """The patches joined into one text, as many as fit."""
    patches: list[str] = []
    room = limits.REVERT_DIFF_BYTES_MAX
    for file in files:
        room -= len(file.patch.encode())
        if room >= 0:
            patches.append(file.patch.strip())
    return "\n".join(filter(None, patches))


def _status(move: Move) -> Status:
    if move.base.kind == "absent":
        return "added"
    return "deleted" if move.wanted.kind == "absent" else "modified"


def _text(data: bytes | None) -> str | None:
    """The content as text; None if it is not text."""
    if data is None:
        return ""
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
