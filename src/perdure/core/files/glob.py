"""Patterns over relative paths: the globs of search tools. core.files.ignore has ignore rules.

A pattern without a slash applies to names at any depth; with one it starts at the root. `*` and `?`
match inside one name, `**` spans names, `[...]` and `{a,b}` work as in shells. No file access here.

Invariant: matching is polynomial in the pattern and the path; no pattern can stall it.
"""

import re
from collections.abc import Iterator, Sequence

from perdure.core.limits import SEARCH_BRACES_MAX
from perdure.core.text import wildcard
from perdure.lazy_pattern import lazy_pattern
from perdure.schema.value import Value

# None stands for `**`.
Segments = tuple[re.Pattern[str] | None, ...]


class InvalidPatternError(ValueError):
    """The pattern is invalid. The message says why."""


class Glob(Value):
    alternatives: tuple[Segments, ...]

    def matches(self, path: str) -> bool:
        names = path.split("/")
        return any(covers(segments, names) for segments in self.alternatives)


def parse_glob(pattern: str) -> Glob:
    """Parse a glob pattern. Raises InvalidPatternError."""
    return Glob(tuple(_segments(form, anchored="/" in form) for form in _expanded(pattern)))


def covers(segments: Segments, names: Sequence[str]) -> bool:
    """Whether the segments match the names of a path."""
    # Only the latest `**` needs backtracking: matches of earlier ones stay valid.
    at, index, star, mark = 0, 0, -1, 0
    while index < len(names):
        segment = segments[at] if at < len(segments) else None
        if at < len(segments) and segment is None:
            star, mark, at = at, index, at + 1
        elif segment is not None and segment.fullmatch(names[index]):
            at, index = at + 1, index + 1
        elif star >= 0:
            mark += 1
            at, index = star + 1, mark
        else:
            return False
    return all(segment is None for segment in segments[at:])


def _segments(pattern: str, *, anchored: bool) -> Segments:
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    if names and names[-1] == "**":
        names.append("*")
    if not anchored:
        names.insert(0, "**")
    return tuple(None if name == "**" else _name_expression(name) for name in names)


# Without a closing bracket the rest of the name is one token, so that it is read only once.
_TOKEN = lazy_pattern(r"\\.|\[[!^]?+\][^\]]*+\]|\[[!^]?+[^\]]*+\]|\[.*+|\*+|.", re.DOTALL)
_UNBRACKETED = lazy_pattern(r"\\.|\*+|.", re.DOTALL)


def _name_expression(name: str) -> re.Pattern[str]:
    pieces = [""]
    for token in _tokens(name):
        if token.startswith("*"):
            pieces.append("")
        else:
            pieces[-1] += _token_expression(token)
    try:
        return re.compile(wildcard.star_pattern(pieces), re.DOTALL)
    except re.error as error:
        raise InvalidPatternError(f"invalid pattern {name!r}: {error}") from error


def _tokens(name: str) -> Iterator[str]:
    for token in _TOKEN.findall(name):
        if token.startswith("[") and not token.endswith("]"):
            yield from _UNBRACKETED.findall(token)
        else:
            yield token


def _token_expression(token: str) -> str:
    if token == "?":
        return "."
    if token.startswith("[") and len(token) > 1:
        negated = token[1] in "!^"
        members = re.sub(r"([\\\[\]&~|^])", r"\\\1", token[2 if negated else 1 : -1])
        return f"[{'^' if negated else ''}{members}]"
    return re.escape(token[-1])


def _expanded(pattern: str) -> list[str]:
    """All expansions of the `{a,b}` groups of `pattern`."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        form = waiting.pop()
        group = re.search(r"\{([^{},]*+,[^{}]*+)\}", form)
        if group is None:
            done.append(form)
        else:
            before, after = form[: group.start()], form[group.end() :]
            waiting.extend(f"{before}{choice}{after}" for choice in group[1].split(","))
        if len(done) + len(waiting) > SEARCH_BRACES_MAX:
            raise InvalidPatternError(f"more than {SEARCH_BRACES_MAX} alternatives in {pattern!r}")
    return done
