"""Patches: changes of several files in one text, parsed completely and applied to texts.

A passage is matched exactly first, then with less regard for spaces and typographic characters,
because models reproduce those badly. The first match at or after the previous change counts. No
file access here.

Invariant: a patch with one malformed line changes nothing, and a change that does not fit is an
error, never a guess. The time is linear in the patch and the file.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from perdure.core.files.exact_edit import BOM
from perdure.core.limits import PATCH_LINES_MAX, PATCH_SEARCHED_LINES_MAX
from perdure.lazy_pattern import lazy_pattern
from perdure.schema.value import Value

_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_ADD: Final = "*** Add File: "
_DELETE: Final = "*** Delete File: "
_UPDATE: Final = "*** Update File: "
_MOVE: Final = "*** Move to: "
_END_OF_FILE: Final = "*** End of File"
_HEREDOC: Final = lazy_pattern(r"(?:\w+\s+)?<<-?\s*(['\"]?)(\w+)\1\n(.*)\n\2", re.DOTALL)
_TYPOGRAPHY: Final = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2009\u202f\u3000", " "),
        "\u2026": "...",
    }
)


class PatchError(ValueError):
    """The patch is malformed, or does not fit what it is applied to."""


class Chunk(Value, kw_only=True):
    """Old lines and their replacement; `context` is a line to find first."""

    context: str | None
    old: tuple[str, ...]
    new: tuple[str, ...]
    at_end: bool


class AddFile(Value):
    path: str
    content: str


class DeleteFile(Value):
    path: str


class UpdateFile(Value):
    path: str
    chunks: tuple[Chunk, ...]
    move_to: str | None = None


Change = AddFile | DeleteFile | UpdateFile


def parse(text: str) -> tuple[Change, ...]:
    """Parse a patch. Raises PatchError that names the line."""
    plain = text.replace("\r\n", "\n").strip()
    if plain.count("\n") >= PATCH_LINES_MAX:
        raise PatchError(f"it has more than {PATCH_LINES_MAX} lines; split it")
    wrapped = _HEREDOC.fullmatch(plain)
    return _Parser((wrapped[3] if wrapped else plain).strip().split("\n")).changes()


def apply(text: str, chunks: Sequence[Chunk]) -> str:
    """`text` with the chunks applied; it ends with a newline. Raises PatchError."""
    mark = BOM if text.startswith(BOM) else ""
    body = text.removeprefix(BOM)
    if body.count("\n") >= PATCH_LINES_MAX:
        raise PatchError(f"the file has more than {PATCH_LINES_MAX} lines; change it otherwise")
    ending = "\r\n" if "\r\n" in body else "\n"
    lines = body.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    result: list[str] = []
    done = 0
    for start, length, new in _places(_Lines(lines), chunks):
        result += lines[done:start]
        result += new
        done = start + length
    result += lines[done:]
    return mark + ending.join([*result, ""])


class _Parser:
    def __init__(self, lines: list[str]) -> None:
        if lines[0].strip() != _BEGIN or lines[-1].strip() != _END:
            raise PatchError(f"a patch begins with '{_BEGIN}' and ends with '{_END}'")
        self._lines = lines[:-1]
        self._at = 1

    def changes(self) -> tuple[Change, ...]:
        changes: list[Change] = []
        while self._at < len(self._lines):
            changes.append(self._change())
        return tuple(changes)

    def _change(self) -> Change:
        line = self._lines[self._at]
        if line.startswith(_ADD):
            return AddFile(self._path(_ADD), self._added())
        if line.startswith(_DELETE):
            return DeleteFile(self._path(_DELETE))
        if line.startswith(_UPDATE):
            return self._update()
        raise self._error(f"expected a file header such as '{_UPDATE}path', not {line[:80]!r}")

    def _update(self) -> UpdateFile:
        path = self._path(_UPDATE)
        move_to = self._path(_MOVE) if self._next_starts_with(_MOVE) else None
        chunks: list[Chunk] = []
        while self._at < len(self._lines) and not self._next_starts_with("*** "):
            chunks.append(self._chunk(first=not chunks))
        if not chunks and move_to is None:
            raise self._error(f"the update of {path} changes nothing")
        return UpdateFile(path, tuple(chunks), move_to)

    def _chunk(self, *, first: bool) -> Chunk:
        context = None
        line = self._lines[self._at]
        if line.startswith("@@"):
            context = line[2:].removeprefix(" ").rstrip() or None
            self._at += 1
        elif not first:
            raise self._error(f"a line of a change begins with ' ', '-' or '+', not {line[:80]!r}")
        old: list[str] = []
        new: list[str] = []
        begun = self._at
        while self._take_line(old, new):
            pass
        if self._at == begun:
            raise self._error("a change has at least one line that begins with ' ', '-' or '+'")
        at_end = self._next_starts_with(_END_OF_FILE)
        self._at += at_end
        return Chunk(context=context, old=tuple(old), new=tuple(new), at_end=at_end)

    def _take_line(self, old: list[str], new: list[str]) -> bool:
        if self._at >= len(self._lines):
            return False
        line = self._lines[self._at]
        # An empty line counts as an empty context line: models often omit its leading space.
        sign, text = line[:1] or " ", line[1:]
        if sign not in " -+":
            return False
        if sign != "+":
            old.append(text)
        if sign != "-":
            new.append(text)
        self._at += 1
        return True

    def _added(self) -> str:
        lines: list[str] = []
        while self._next_starts_with("+"):
            lines.append(self._lines[self._at][1:])
            self._at += 1
        return "".join(f"{line}\n" for line in lines)

    def _path(self, header: str) -> str:
        path = self._lines[self._at].removeprefix(header).strip()
        if not path:
            raise self._error("a file header names a path")
        self._at += 1
        return path

    def _next_starts_with(self, text: str) -> bool:
        return self._at < len(self._lines) and self._lines[self._at].startswith(text)

    def _error(self, message: str) -> PatchError:
        return PatchError(f"line {self._at + 1} of the patch: {message}")


_Key = Callable[[str], str]
_KEYS: Final[tuple[_Key, ...]] = (
    lambda line: line,
    str.rstrip,
    str.strip,
    lambda line: line.translate(_TYPOGRAPHY).strip(),
)


class _Lines:
    """The lines of a file, in which passages are found.

    For each way of comparing, a text has one character for each line, the same for equal lines.
    So a passage is a substring, which the interpreter finds in linear time whatever it holds.
    """

    def __init__(self, lines: list[str]) -> None:
        self.count = len(lines)
        self._lines = lines
        self._texts: list[tuple[str, dict[str, str]]] = []
        self._searched = 0

    def find(self, wanted: tuple[str, ...], cursor: int, *, at_end: bool) -> int | None:
        last = self.count - len(wanted)
        if last < cursor:
            return None
        for number, key in enumerate(_KEYS):
            text, characters = self._text(number, key)
            passage = "".join([characters.get(key(line), "") for line in wanted])
            if len(passage) < len(wanted):
                continue  # The file has no such line.
            if at_end and text.endswith(passage):
                return last
            start = text.find(passage, cursor)
            if start >= 0:
                return start
            self._note_search(cursor)
        return None

    def _text(self, number: int, key: _Key) -> tuple[str, dict[str, str]]:
        if number == len(self._texts):
            characters: dict[str, str] = {}
            whole = [
                characters.setdefault(line, chr(len(characters))) for line in map(key, self._lines)
            ]
            self._texts.append(("".join(whole), characters))
        return self._texts[number]

    def _note_search(self, cursor: int) -> None:
        """Count a search that went to the end in vain: a patch may ask for thousands of them."""
        self._searched += self.count - cursor
        if self._searched > PATCH_SEARCHED_LINES_MAX:
            raise PatchError("it has too many changes for a file of this length; split it")


def _places(lines: _Lines, chunks: Sequence[Chunk]) -> list[tuple[int, int, tuple[str, ...]]]:
    """For each chunk: its first line, how many lines it replaces, and the new lines."""
    found: list[tuple[int, int, tuple[str, ...]]] = []
    cursor = 0
    for number, chunk in enumerate(chunks, start=1):
        if chunk.context is not None:
            at = lines.find((chunk.context,), cursor, at_end=False)
            if at is None:
                raise PatchError(f"change {number}: there is no line {chunk.context[:120]!r}")
            cursor = at + 1
        if not chunk.old:
            found.append((lines.count, 0, chunk.new))
            cursor = lines.count
            continue
        start, old, new = _place(lines, chunk, cursor, number)
        found.append((start, len(old), new))
        cursor = start + len(old)
    return found


def _place(
    lines: _Lines, chunk: Chunk, cursor: int, number: int
) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
    candidates = [(chunk.old, chunk.new)]
    if len(chunk.old) > 1 and chunk.old[-1] == "":
        # An empty last line often means the end of the file.
        new = chunk.new[:-1] if chunk.new and chunk.new[-1] == "" else chunk.new
        candidates.append((chunk.old[:-1], new))
    for old, new in candidates:
        start = lines.find(old, cursor, at_end=chunk.at_end)
        if start is not None:
            return start, old, new
    first_line = next(filter(str.strip, chunk.old), "")
    raise PatchError(f"change {number}: these lines are not there: {first_line[:120]!r} ...")
