"""Going back with files: which paths a revert moves to which state, and which it leaves alone.

A revert knows what the Session itself did, change by change. A path goes back to what it was before
the first change after the boundary, if every state since then is the Session's own: nobody else
changed it in between or since. Anything else is a conflict, which is shown, and the file stays.

Invariant: no path is moved away from a state that the Session did not leave.
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
CHANGED_BETWEEN: Final = "somebody else changed it between two changes of this Session"
NOT_KEPT: Final = "what it was before is not kept"
CHANGED_STAGED: Final = "it has been changed since the revert was staged"

_ID_BYTES: Final = 20


class FileChange(Value, kw_only=True):
    """What a step did to a path."""

    root: str
    """The directory below which the path is reached, without links."""
    path: str
    before: FileState
    after: FileState


class StagedFile(Value, kw_only=True):
    """A path that a staged revert has moved."""

    root: str
    path: str
    base: FileState
    """What was there when the revert was first staged."""
    staged: FileState
    """What the revert left there."""


class Move(Value, kw_only=True):
    """From the state that a path is found in to the one that is wanted."""

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
    """How to stage, or to stage again. `changes` are those after the boundary, in order."""
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
    """The id of the files of a Session after one more change."""
    said = "\0".join((snapshot, change.path, file_state.encode(change.after)))
    return hashlib.blake2b(said.encode(), digest_size=_ID_BYTES).hexdigest()


def _is_unchanged(item: StagedFile, now: FileState) -> bool:
    # A revert that was cut off may have left it at its base.
    return now.same(item.staged) or now.same(item.base)


def _plan_path(
    rows: Sequence[FileChange], item: StagedFile | None, now: FileState
) -> tuple[Move | None, Conflict | None]:
    """Where a path goes, as if nothing were staged: what no longer belongs there to its base."""
    base = now if item is None else item.base
    wanted = _target_state(rows, base) if rows else base
    conflict = wanted if isinstance(wanted, Conflict) else None
    target = base if isinstance(wanted, Conflict) else wanted
    if item is None and (conflict is not None or now.same(target)):
        return None, conflict
    root, path = (rows[0].root, rows[0].path) if item is None else (item.root, item.path)
    return Move(root=root, path=path, base=base, found=now, wanted=target), conflict


def _target_state(rows: Sequence[FileChange], now: FileState) -> FileState | Conflict:
    """What a path goes back to; the state it is in, when that is it already."""
    first, last = rows[0], rows[-1]
    if not first.before.is_kept:
        return Conflict(first.path, NOT_KEPT)
    if now.same(first.before):
        return now
    if any(not one.after.same(two.before) for one, two in pairwise(rows)):
        return Conflict(first.path, CHANGED_BETWEEN)
    # A process that died may have noted its last change without making it.
    if not (now.same(last.after) or now.same(last.before)):
        return Conflict(first.path, CHANGED_SINCE)
    return first.before


Status = Literal["added", "modified", "deleted"]


def diff_move(move: Move, name: str, *, before: bytes | None, after: bytes | None) -> FileDiff:
    """`before` and `after` are what the path holds; None is nothing."""
    status = _status(move)
    old, new = _text(before), _text(after)
    if old is None or new is None:
        patch = f"Binary files a/{name} and b/{name} differ\n"
        return FileDiff(path=name, status=status, additions=0, deletions=0, patch=patch)
    if old == new:
        # Only its permissions, or what kind of thing it is.
        return FileDiff(path=name, status=status, additions=0, deletions=0, patch="")
    diff = exact_edit.line_diff(name, before=old, after=new)
    return FileDiff(
        path=name,
        status=status,
        additions=diff.additions,
        deletions=diff.deletions,
        patch=diff.patch,
    )


def join_patches(files: tuple[FileDiff, ...]) -> str:
    """All patches in one text, as many as fit."""
    shown: list[str] = []
    room = limits.REVERT_DIFF_BYTES_MAX
    for file in files:
        room -= len(file.patch.encode())
        if room >= 0:
            shown.append(file.patch.strip())
    return "\n".join(filter(None, shown))


def _status(move: Move) -> Status:
    if move.base.kind == "absent":
        return "added"
    return "deleted" if move.wanted.kind == "absent" else "modified"


def _text(data: bytes | None) -> str | None:
    """None when it is not text."""
    if data is None:
        return ""
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
