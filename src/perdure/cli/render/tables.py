"""Tables for people: columns that line up, headings on a terminal, and times of this place.

In a pipe there are no headings, so that each line is one thing.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from perdure.cli import terminal
from perdure.cli.style import Span, Style

_GAP: Final = "  "
_LAST_COLUMN_MIN: Final = 20


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows below their headings. The last column is cut at the edge of a terminal."""
    cells = [[terminal.one_line(cell) for cell in row] for row in rows]
    on_terminal = terminal.is_output_terminal()
    shown = [list(headings), *cells] if on_terminal else cells
    if not shown:
        return
    widths = [max(len(row[at]) for row in shown) for at in range(len(headings))]
    room = terminal.columns() - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1)
    for number, row in enumerate(shown):
        *first, last = row
        if on_terminal:
            last = _cut(last, max(room, _LAST_COLUMN_MIN))
        line = _GAP.join(
            [*(cell.ljust(width) for cell, width in zip(first, widths, strict=False)), last]
        )
        style = Style.BOLD if on_terminal and number == 0 else Style.PLAIN
        terminal.print_spans([Span(line.rstrip() + "\n", style)])


def local_time(millis: float) -> str:
    """A time as the user's clock shows it."""
    return f"{datetime.fromtimestamp(millis / 1000, UTC).astimezone():%Y-%m-%d %H:%M}"


def count(number: float) -> str:
    """A number as people say it: 950, 12.3k, 4.1M."""
    if number < 1_000:
        return f"{number:.0f}"
    if number < 1_000_000:
        return f"{number / 1_000:.1f}k"
    return f"{number / 1_000_000:.1f}M"


def plural(number: int, noun: str) -> str:
    """`1 file`, `2 files`, `1,000 matches`."""
    ending = "" if number == 1 else "es" if noun.endswith(("s", "ch", "x")) else "s"
    return f"{number:,} {noun}{ending}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."
