"""Problems of a configuration document, and their positions in the text.

A problem names the key in its current spelling; the text may use an older one, so the position is
looked up under both. Texts are only searched when there is a problem, or to show where a value
comes from.
"""

from collections.abc import Iterable, Iterator

from msgspec import structs

from perdure.core import limits
from perdure.core.config_file import legacy
from perdure.core.text import jsonc
from perdure.core.text.jsonc import Address, Position
from perdure.schema import redaction
from perdure.schema.value import Value


class Problem(Value):
    """A part of a document that was left out, and where."""

    path: str
    message: str
    line: int | None = None
    column: int | None = None
    at: Address = ()
    """The address of the key; empty for the whole document."""

    @property
    def shown(self) -> str:
        """The message without secrets: it may quote what is in the document."""
        return redaction.redact(self.message)

    def __str__(self) -> str:
        place = (self.path, self.line, self.column)
        text_line = ":".join(str(part) for part in place if part is not None) + f": {self.shown}"
        # A file name need not be UTF-8, but the output may have to be.
        return text_line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class Lines:
    """Positions of the keys in a text. The text is parsed on first use."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._positions: jsonc.Positions | None = None

    def position_of(self, address: Address) -> Position | None:
        """The position of a key, or of the nearest enclosing key in the text."""
        if not self._text:
            return None
        if self._positions is None:
            self._positions = jsonc.Positions(self._text)
        found: Position | None = None
        spellings: list[Address] = [()]
        for part in address:
            longer = ((*above, name) for above in spellings for name in _names(part))
            spellings = [spelling for spelling in longer if self._positions.position_of(spelling)]
            if not spellings:
                break
            found = self._positions.position_of(spellings[0])
        return found


def format_address(address: Address) -> str:
    """`("permissions", 1, "effect")` -> `permissions[1].effect`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in address)
    return "".join(parts).removeprefix(".")


def with_positions(problems: Iterable[Problem], text: bytes) -> tuple[Problem, ...]:
    """The problems of one document with positions, limited in number."""
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
    place = lines.position_of(problem.at) if problem.line is None else None
    if place is None:
        return problem
    return structs.replace(problem, line=place.line, column=place.column)


def _names(part: str | int) -> Iterator[str | int]:
    yield part
    if isinstance(part, str):
        yield from legacy.OLDER_NAMES.get(part, ())
