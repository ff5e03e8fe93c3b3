"""What is wrong with a configuration document, and where in its text.

A problem names the key as the program understands it; the text may spell it in an older way, so
the line is looked for under both names. Documents are only searched when there is a problem, or
when somebody asks where a value comes from.
"""

from collections.abc import Iterable, Iterator

from msgspec import structs

from perdure.core import limits
from perdure.core.config_file import legacy
from perdure.core.text import jsonc
from perdure.core.text.jsonc import Address, Position
from perdure.schema.value import Value


class Problem(Value):
    """Something in a document that was left out, and where."""

    path: str
    message: str
    line: int | None = None
    column: int | None = None
    at: Address = ()
    """The key in question; empty when it is the document itself."""

    def __str__(self) -> str:
        place = (self.path, self.line, self.column)
        said = ":".join(str(part) for part in place if part is not None) + f": {self.message}"
        # A file name need not be UTF-8, and whoever prints this may insist.
        return said.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class Lines:
    """Where the keys of one text stand. The text is searched when the first one is asked for."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._positions: jsonc.Positions | None = None

    def of(self, address: Address) -> Position | None:
        """The place of a key, or of the nearest one around it that the text names."""
        if not self._text:
            return None
        if self._positions is None:
            self._positions = jsonc.Positions(self._text)
        found: Position | None = None
        spellings: list[Address] = [()]
        for part in address:
            longer = ((*above, name) for above in spellings for name in _names(part))
            spellings = [spelling for spelling in longer if self._positions.of(spelling)]
            if not spellings:
                break
            found = self._positions.of(spellings[0])
        return found


def format_address(address: Address) -> str:
    """`("permissions", 1, "effect")` -> `permissions[1].effect`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in address)
    return "".join(parts).removeprefix(".")


def with_positions(problems: Iterable[Problem], text: bytes) -> tuple[Problem, ...]:
    """The problems of one document with their places; very many become a few and a count."""
    all_of_them = tuple(problems)
    shown = all_of_them[: limits.CONFIG_PROBLEMS_MAX]
    if not shown:
        return ()
    lines = Lines(text)
    result = tuple(_with_position(problem, lines) for problem in shown)
    hidden = len(all_of_them) - len(shown)
    more = (Problem(shown[0].path, f"has {hidden} more problems"),) if hidden else ()
    return (*result, *more)


def _with_position(problem: Problem, lines: Lines) -> Problem:
    place = lines.of(problem.at) if problem.line is None else None
    if place is None:
        return problem
    return structs.replace(problem, line=place.line, column=place.column)


def _names(part: str | int) -> Iterator[str | int]:
    yield part
    if isinstance(part, str):
        yield from legacy.OLDER_NAMES.get(part, ())
