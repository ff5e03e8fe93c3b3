"""Parses what `git diff --raw --numstat -p -z` prints: status, counts and patch of each file.

With -z each name stands as it is, ended by a NUL: no quoting to undo. The three parts follow each
other, and the patches are in the order of the others.
"""

import re
from collections.abc import Iterator
from typing import Final

from perdure.lazy_pattern import lazy_pattern
from perdure.schema.files.vcs import ChangeStatus
from perdure.schema.session.session import FileDiff

_RAW: Final = lazy_pattern(rb":\d+ \d+ [0-9a-f]+(?:\.\.\.)? [0-9a-f]+(?:\.\.\.)? ([A-Z])\d*")
_PATCH: Final = lazy_pattern(rb"^(?=diff --git )", re.MULTILINE)
_STATUS: Final[dict[bytes, ChangeStatus]] = {b"A": "added", b"D": "deleted"}


def parse(output: bytes, *, truncated: bool = False) -> tuple[FileDiff, ...]:
    """The changed files, in the order of git. Raises ValueError for another output.

    Of an output that is `truncated`, the patches that are not whole are left out.
    """
    head, _, tail = output.partition(b"\0\0")
    patches = [each for each in _PATCH.split(tail) if each]
    kinds: dict[bytes, bytes] = {}
    counts: dict[bytes, tuple[int, int]] = {}
    fields = iter(head.split(b"\0"))
    for field in fields:
        raw = _RAW.fullmatch(field)
        if raw is not None:
            kinds[next(fields, b"")] = raw[1]
        elif field:
            added, deleted, name = _split_counts(field)
            counts[name] = (added, deleted)
    if kinds.keys() != counts.keys():
        raise ValueError("the lists of a git diff do not fit together")
    return tuple(_join(kinds, counts, patches[:-1] if truncated else patches))


def _join(
    kinds: dict[bytes, bytes], counts: dict[bytes, tuple[int, int]], patches: list[bytes]
) -> Iterator[FileDiff]:
    place = 0
    for name, kind in kinds.items():
        # A file that became a link is told as a removal and an addition.
        parts = 2 if kind == b"T" else 1
        patch = b"".join(patches[place : place + parts])
        place += parts
        added, deleted = counts[name]
        yield FileDiff(
            path=name.decode(errors="replace"),
            status=_STATUS.get(kind, "modified"),
            additions=added,
            deletions=deleted,
            patch=patch.decode(errors="replace"),
        )


def _split_counts(field: bytes) -> tuple[int, int, bytes]:
    added, deleted, name = field.split(b"\t", 2)
    # A binary file has no lines to count.
    return (0 if added == b"-" else int(added), 0 if deleted == b"-" else int(deleted), name)
