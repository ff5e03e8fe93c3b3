"""What a revert does to files, as a person is shown it: from what was there to what is put back.

Bytes that are not text have no lines; a patch too long to be read is left out, its counts are not.
"""

from typing import Literal

from perdure.core import exact_edit, limits
from perdure.core.revert import Move
from perdure.schema.session import FileDiff

Status = Literal["added", "modified", "deleted"]


def of_move(move: Move, name: str, *, before: bytes | None, after: bytes | None) -> FileDiff:
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


def joined(files: tuple[FileDiff, ...]) -> str:
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
