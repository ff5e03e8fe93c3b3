"""Exact edits: replace a passage of a text that is found as it was given, or change nothing.

Line endings follow the file: in a CRLF file the strings are read with CRLF. A byte order mark
stays where it is. No fuzzy matching, and nothing here touches a file.

Invariant: without `replace_all` a passage that could mean two places is never replaced.
"""

import difflib
from typing import Final, Literal

from perdure.core.limits import EDIT_DIFF_LINES_MAX, EDIT_PATCH_CHARS_MAX
from perdure.schema.value import Value

BOM: Final = "\ufeff"
_PREVIEW_LINES: Final = 6
_PREVIEW_LINE_CHARS: Final = 240
_CONTEXT_LINES: Final = 3

Opcode = tuple[str, int, int, int, int]
"""What happened to a range of old lines and the new lines in its place, as difflib says it."""


class Edited(Value):
    text: str
    replacements: int


class NotFound(Value):
    pass


class Ambiguous(Value):
    places: int


class LineDiff(Value, kw_only=True):
    patch: str
    """Unified; empty when it would be longer than is worth keeping."""
    additions: int
    deletions: int


def find_fault(*, old: str, new: str) -> Literal["empty", "identical"] | None:
    """What is wrong with the request itself, before any file is looked at."""
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
        # Overlapping places count: either could have been meant.
        if not replace_all and body.find(wanted, first + 1) >= 0:
            return Ambiguous(places=max(2, body.count(wanted)))
        edited = body.replace(wanted, replacement).removeprefix(BOM)
        return Edited(text=mark + edited, replacements=body.count(wanted))
    return NotFound()


def preview(*, old: str, new: str) -> str:
    """A few lines of what went and what came."""
    return "\n".join((*_excerpt("-", old), *_excerpt("+", new)))


def line_diff(name: str, *, before: str, after: str) -> LineDiff:
    """The change as a unified diff with its line counts."""
    old, new = _lines(before), _lines(after)
    body = [line for group in _groups(old, new) for line in _hunk(group, old, new)]
    patch = "".join((f"--- a/{name}\n", f"+++ b/{name}\n", *map(_patch_line, body)))
    return LineDiff(
        patch=patch if len(patch) <= EDIT_PATCH_CHARS_MAX else "",
        additions=sum(line.startswith("+") for line in body),
        deletions=sum(line.startswith("-") for line in body),
    )


def _spellings(body: str, *, old: str, new: str) -> list[tuple[str, str]]:
    """The strings in the file's line endings; then as given, for a file that mixes both."""
    plain = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"))
    if "\r\n" not in body:
        return [plain] if plain[0] else []
    native = (plain[0].replace("\n", "\r\n"), plain[1].replace("\n", "\r\n"))
    return [form for form in (native, (old, new)) if form[0]]


def _excerpt(sign: str, text: str) -> list[str]:
    lines = text.splitlines()
    shown = [f"{sign} {line[:_PREVIEW_LINE_CHARS]}" for line in lines[:_PREVIEW_LINES]]
    left = len(lines) - _PREVIEW_LINES
    return [*shown, f"{sign} ... {left} more lines"] if left > 0 else shown


def _lines(text: str) -> list[str]:
    # Not splitlines: a form feed or a lone carriage return does not end a line of a patch.
    *whole, rest = text.split("\n")
    ended = [f"{line}\n" for line in whole]
    return [*ended, rest] if rest else ended


def _groups(old: list[str], new: list[str]) -> list[list[Opcode]]:
    """Runs of changes with their context. What both share at the ends is never compared."""
    start = _common_lines(old, new)
    end = _common_lines(old[start:][::-1], new[start:][::-1])
    old_end, new_end = len(old) - end, len(new) - end
    top, bottom = min(start, _CONTEXT_LINES), min(end, _CONTEXT_LINES)
    inner: list[Opcode] = [("replace", start, old_end, start, new_end)]
    # Comparing is quadratic at worst, so a long change is shown as one block instead.
    if old_end - start + new_end - start <= EDIT_DIFF_LINES_MAX:
        matcher = difflib.SequenceMatcher(
            None, old[start:old_end], new[start:new_end], autojunk=False
        )
        inner = [
            (tag, i1 + start, i2 + start, j1 + start, j2 + start)
            for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        ]
    above: Opcode = ("equal", start - top, start, start - top, start)
    below: Opcode = ("equal", old_end, old_end + bottom, new_end, new_end + bottom)
    return _split_at_long_runs([above, *inner, below])


def _split_at_long_runs(opcodes: list[Opcode]) -> list[list[Opcode]]:
    groups: list[list[Opcode]] = [[]]
    for tag, i1, i2, j1, j2 in opcodes:
        if tag == "equal" and i2 - i1 > 2 * _CONTEXT_LINES:
            groups[-1].append((tag, i1, i1 + _CONTEXT_LINES, j1, j1 + _CONTEXT_LINES))
            groups.append([(tag, i2 - _CONTEXT_LINES, i2, j2 - _CONTEXT_LINES, j2)])
        else:
            groups[-1].append((tag, i1, i2, j1, j2))
    return groups


def _hunk(group: list[Opcode], old: list[str], new: list[str]) -> list[str]:
    (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
    lines = [f"@@ -{_span(i1, i2)} +{_span(j1, j2)} @@\n"]
    for tag, a1, a2, b1, b2 in group:
        if tag == "equal":
            lines.extend(f" {line}" for line in old[a1:a2])
        else:
            lines.extend(f"-{line}" for line in old[a1:a2])
            lines.extend(f"+{line}" for line in new[b1:b2])
    return lines


def _common_lines(left: list[str], right: list[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(left), len(right)))


def _span(start: int, stop: int) -> str:
    length = stop - start
    begin = start + 1 if length else start
    return f"{begin}" if length == 1 else f"{begin},{length}"


def _patch_line(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
