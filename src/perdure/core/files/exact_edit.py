"""Exact edits: replace a passage that occurs exactly as given, or change nothing.

Line endings follow the file: in a CRLF file the strings are read with CRLF. A byte order mark is
kept. There is no fuzzy matching, and no file access.

Invariant: without `replace_all` a passage that occurs twice is never replaced.
"""

from typing import Final, Literal

from perdure.core.limits import EDIT_DIFF_LINES_MAX, EDIT_PATCH_CHARS_MAX
from perdure.schema.value import Value

BOM: Final = "\ufeff"
_PREVIEW_LINES: Final = 6
_PREVIEW_LINE_CHARS: Final = 240
_CONTEXT_LINES: Final = 3

Opcode = tuple[str, int, int, int, int]
"""A difflib opcode: tag, range of old lines, range of new lines."""


class Edited(Value):
    text: str
    replacements: int


class NotFound(Value):
    pass


class Ambiguous(Value):
    places: int


class LineDiff(Value, kw_only=True):
    patch: str
    """Unified diff; empty if it would be too long."""
    additions: int
    deletions: int


def find_fault(*, old: str, new: str) -> Literal["empty", "identical"] | None:
    """What is wrong with the request itself, before reading a file; None if nothing."""
    if not old:
        return "empty"
    return "identical" if old == new else None


def apply(text: str, *, old: str, new: str, replace_all: bool) -> Edited | NotFound | Ambiguous:
    """Replace `old` by `new` in `text`."""
    mark = BOM if text.startswith(BOM) else ""
    body = text[len(mark) :]
    for wanted, replacement in _spellings(body, old=old.removeprefix(BOM), new=new):
        first = body.find(wanted)
        if first < 0:
            continue
        # Overlapping matches count too.
        if not replace_all and body.find(wanted, first + 1) >= 0:
            return Ambiguous(places=max(2, body.count(wanted)))
        edited = body.replace(wanted, replacement).removeprefix(BOM)
        return Edited(text=mark + edited, replacements=body.count(wanted))
    return NotFound()


def preview(*, old: str, new: str) -> str:
    """A few of the removed and added lines."""
    return "\n".join((*_excerpt("-", old), *_excerpt("+", new)))


def line_diff(name: str, *, before: str, after: str) -> LineDiff:
    """The change as a unified diff with its line counts."""
    start, old, new = _split_common(before, after)
    opcodes = _opcodes(old, new)
    patch = ""
    # What is too long to be shown is not put together: a file may have millions of lines.
    if len(old) + len(new) <= EDIT_PATCH_CHARS_MAX:
        patch = _patch(name, _Passage(before, start, old), _Passage(after, start, new), opcodes)
    return LineDiff(
        patch=patch if len(patch) <= EDIT_PATCH_CHARS_MAX else "",
        additions=sum(j2 - j1 for tag, _, _, j1, j2 in opcodes if tag != "equal"),
        deletions=sum(i2 - i1 for tag, i1, i2, _, _ in opcodes if tag != "equal"),
    )


def _spellings(body: str, *, old: str, new: str) -> list[tuple[str, str]]:
    """The strings with the file's line endings, then as given for files with mixed endings."""
    plain = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"))
    if "\r\n" not in body:
        return [plain] if plain[0] else []
    native = (plain[0].replace("\n", "\r\n"), plain[1].replace("\n", "\r\n"))
    return [form for form in (native, (old, new)) if form[0]]


def _excerpt(sign: str, text: str) -> list[str]:
    lines = text.splitlines()
    shown = [f"{sign} {line[:_PREVIEW_LINE_CHARS]}" for line in lines[:_PREVIEW_LINES]]
    more = len(lines) - _PREVIEW_LINES
    return [*shown, f"{sign} ... {more} more lines"] if more > 0 else shown


def _lines(text: str) -> list[str]:
    # Not splitlines: a form feed or a lone carriage return does not end a line of a patch.
    *whole, rest = text.split("\n")
    ended = [f"{line}\n" for line in whole]
    return [*ended, rest] if rest else ended


def _count_lines(text: str) -> int:
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def _split_common(before: str, after: str) -> tuple[int, str, str]:
    """The first line that differs, and both texts from there, without their common end."""
    if before == after:
        return len(before), "", ""
    start = before.rfind("\n", 0, _common_start(before, after)) + 1
    old, new = before[start:], after[start:]
    shared = _common_end(old, new)
    if not (_is_line_start(old, shared) and _is_line_start(new, shared)):
        first_end = old.find("\n", len(old) - shared)
        shared = 0 if first_end < 0 else len(old) - first_end - 1
    return start, old[: len(old) - shared], new[: len(new) - shared]


def _common_start(left: str, right: str) -> int:
    """The number of equal characters, found by halves because comparing slices is fast."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(left: str, right: str) -> int:
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        same = left[len(left) - middle : len(left) - low]
        if same == right[len(right) - middle : len(right) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def _is_line_start(text: str, from_end: int) -> bool:
    at = len(text) - from_end
    return at == 0 or text[at - 1] == "\n"


def _opcodes(old: str, new: str) -> list[Opcode]:
    old_lines, new_lines = _count_lines(old), _count_lines(new)
    # Comparing is quadratic at worst, so a long change becomes one block.
    if old_lines + new_lines > EDIT_DIFF_LINES_MAX:
        return [("replace", 0, old_lines, 0, new_lines)]
    from difflib import SequenceMatcher

    return [*SequenceMatcher(None, _lines(old), _lines(new), autojunk=False).get_opcodes()]


class _Passage(Value):
    """The part of a text that has changed."""

    text: str
    start: int
    changed: str


def _patch(name: str, old: _Passage, new: _Passage, opcodes: list[Opcode]) -> str:
    """The changed passage with the lines around it, as hunks."""
    above = _last_lines(old.text, old.start)
    below = _first_lines(old.text, old.start + len(old.changed))
    first = _count_lines(old.text[: old.start]) - len(above)
    shifted: list[Opcode] = [("equal", 0, len(above), 0, len(above))]
    more = len(above)
    shifted += [
        (tag, a1 + more, a2 + more, b1 + more, b2 + more) for tag, a1, a2, b1, b2 in opcodes
    ]
    _, _, old_end, _, new_end = shifted[-1]
    shifted.append(("equal", old_end, old_end + len(below), new_end, new_end + len(below)))
    old_lines = [*above, *_lines(old.changed), *below]
    new_lines = [*above, *_lines(new.changed), *below]
    groups = _split_at_long_runs(shifted)
    body = [line for group in groups for line in _hunk(group, old_lines, new_lines, first)]
    return "".join((f"--- a/{name}\n", f"+++ b/{name}\n", *map(_patch_line, body)))


def _last_lines(text: str, end: int) -> list[str]:
    """The lines before `end` that are shown as context."""
    start = end
    for _ in range(_CONTEXT_LINES):
        start = text.rfind("\n", 0, max(start - 1, 0)) + 1
    return _lines(text[start:end])


def _first_lines(text: str, start: int) -> list[str]:
    end = start
    for _ in range(_CONTEXT_LINES):
        found = text.find("\n", end)
        end = len(text) if found < 0 else found + 1
    return _lines(text[start:end])


def _split_at_long_runs(opcodes: list[Opcode]) -> list[list[Opcode]]:
    groups: list[list[Opcode]] = [[]]
    for tag, i1, i2, j1, j2 in opcodes:
        if tag == "equal" and i2 - i1 > 2 * _CONTEXT_LINES:
            groups[-1].append((tag, i1, i1 + _CONTEXT_LINES, j1, j1 + _CONTEXT_LINES))
            groups.append([(tag, i2 - _CONTEXT_LINES, i2, j2 - _CONTEXT_LINES, j2)])
        else:
            groups[-1].append((tag, i1, i2, j1, j2))
    return groups


def _hunk(group: list[Opcode], old: list[str], new: list[str], first: int) -> list[str]:
    (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
    lines = [f"@@ -{_span(first + i1, first + i2)} +{_span(first + j1, first + j2)} @@\n"]
    for tag, a1, a2, b1, b2 in group:
        if tag == "equal":
            lines.extend(f" {line}" for line in old[a1:a2])
        else:
            lines.extend(f"-{line}" for line in old[a1:a2])
            lines.extend(f"+{line}" for line in new[b1:b2])
    return lines


def _span(start: int, stop: int) -> str:
    length = stop - start
    begin = start + 1 if length else start
    return f"{begin}" if length == 1 else f"{begin},{length}"


def _patch_line(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
