"""Counts what the tests did: crashes, images, seeds. Printed as one block at the end of a run.

A test takes the fixture `figure` and counts what it did: `figure("crash points", crashes)`.
Amounts of one name are added up over all tests and all workers. Property tests are counted without
being asked. Nothing here judges: what failed is shown by pytest.

Invariant: `read` understands what `block` wrote.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final, cast

import pytest

TITLE: Final = "figures"
PROPERTY_EXAMPLES: Final = "property examples"
Figure = Callable[[str, int], None]

_KEY: Final = "figure"
_LINE: Final = re.compile(r"^  (\S.*?) {2,}([\d,]+)$", re.MULTILINE)
_EXAMPLES: Final = re.compile(r"- (\d+) passing")


def of(item: pytest.Item) -> Figure:
    """Counts figures of a test; pytest-xdist carries them to the process that prints them."""

    def note(name: str, amount: int) -> None:
        item.user_properties.append((_KEY, (name, amount)))

    return note


def note_examples(item: pytest.Item) -> None:
    """How many examples Hypothesis has tried, if the test is one of its own."""
    if item.get_closest_marker("hypothesis") is not None:
        told = str(getattr(item, "hypothesis_statistics", ""))
        of(item)(PROPERTY_EXAMPLES, sum(map(int, _EXAMPLES.findall(told))))


def total(reports: Iterable[object]) -> Counter[str]:
    """By name, over the calls of all tests: each is reported three times, with the same notes."""
    found: Counter[str] = Counter()
    for report in reports:
        if isinstance(report, pytest.TestReport) and report.when == "call":
            for key, value in report.user_properties:
                if key == _KEY:
                    name, amount = cast("tuple[str, int]", value)
                    found[name] += amount
    return found


def block(figures: Mapping[str, int]) -> str:
    """Aligned lines, in the order of their names."""
    width = max(map(len, figures), default=0)
    lines = (f"  {name:<{width}}  {figures[name]:>13,}" for name in sorted(figures))
    return "\n".join(lines)


def read(printed: str) -> dict[str, int]:
    """The figures in what pytest printed; none if there is no block of them."""
    _, found, after = printed.rpartition(f" {TITLE} =")
    if not found:
        return {}
    return {name: int(amount.replace(",", "")) for name, amount in _LINE.findall(after)}
