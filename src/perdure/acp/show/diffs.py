"""Unified diffs as the protocol shows changes: the old and the new text of each place."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from perdure.acp.schema.content import Diff, Location
from perdure.schema.value import State

_HUNK: Final = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")
Status = Literal["added", "modified", "deleted"]


class _Hunk(State):
    line: int
    """The first line of the place in the new text, from 1."""
    old: list[str]
    new: list[str]
    last: str = " "
    """The sign of the last line."""

    def add(self, line: str) -> None:
        sign, text = line[:1] or " ", f"{line[1:]}\n"
        if sign == "\\":
            self._end_without_newline()
            return
        if sign != "+":
            self.old.append(text)
        if sign != "-":
            self.new.append(text)
        self.last = sign

    def _end_without_newline(self) -> None:
        for lines, sign in ((self.old, "+"), (self.new, "-")):
            if lines and self.last != sign:
                lines[-1] = lines[-1].removesuffix("\n")


def show_patch(directory: str, path: str, status: str, patch: str) -> tuple[Diff, ...]:
    """A diff for each place that a unified diff changes; none for one without a place."""
    shown = os.path.join(directory, path)
    return tuple(
        Diff(
            path=shown,
            new_text="".join(hunk.new),
            old_text=None if status == "added" else "".join(hunk.old),
        )
        for hunk in _hunks(patch.split("\n"))
    )


def find_line(patch: str) -> int | None:
    """The first line that a unified diff changes, in the new text."""
    found = _HUNK.search(patch)
    return None if found is None else max(int(found[1]), 1)


def places(directory: str, paths: Iterable[tuple[str, int | None]]) -> tuple[Location, ...]:
    """Files of the Session's directory, each once."""
    found = {os.path.join(directory, path): line for path, line in paths if path}
    return tuple(Location(path, line) for path, line in found.items())


def _hunks(lines: Sequence[str]) -> Iterator[_Hunk]:
    current: _Hunk | None = None
    body = lines[:-1] if lines and not lines[-1] else lines
    for line in body:
        if begun := _HUNK.match(line):
            if current is not None:
                yield current
            current = _Hunk(line=int(begun[1]), old=[], new=[])
        elif current is not None:
            current.add(line)
    if current is not None:
        yield current
