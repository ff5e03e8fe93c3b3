"""A soak has a part for every row of the table, and says what it reached of what was wanted."""

import functools
import re
from pathlib import Path
from typing import Final

import pytest

from scripts import soak, soak_parts
from scripts.soak import Ran
from scripts.soak_parts import PARTS, ROWS, WITHOUT, Part, Wanted
from tests.fixtures import ROOT
from tests.tidy import source_tree

TABLE: Final = ROOT / "docs" / "figures.md"
TABLE_ROW: Final = re.compile(r"^\| (\d+) \| ", re.MULTILINE)
PART: Final = Part(row=3, name="power loss", tests=("t",), wanted=(Wanted("images", 10_000),))


def test_every_row_has_a_part_or_a_reason_and_a_line_in_the_table() -> None:
    with_parts = {part.row for part in PARTS}
    assert with_parts | WITHOUT.keys() == set(ROWS)
    assert not with_parts & WITHOUT.keys()
    listed = [int(row) for row in TABLE_ROW.findall(TABLE.read_text(encoding="utf-8"))]
    assert listed == [*ROWS]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_part_runs_what_there_is(part: Part) -> None:
    paths = [ROOT / each for each in part.tests if each.startswith("tests/")]
    assert all(path.exists() for path in paths)
    assert bool(paths) != bool(part.bench)
    assert all(name in text_of_tests() for name in part.variables)


def test_every_figure_that_is_wanted_is_counted_by_a_test() -> None:
    wanted = {goal.figure for part in PARTS if part.tests for goal in part.wanted} - {
        soak_parts.SECONDS
    }
    assert {figure for figure in wanted if f'"{figure}"' not in text_of_tests()} == set()


@pytest.mark.parametrize(
    ("images", "told"),
    [("10,000", "10,000  (wanted 10,000)"), ("9,999", "9,999  (wanted 10,000; not reached)")],
)
def test_a_figure_is_shown_beside_the_wanted_one(images: str, told: str) -> None:
    printed = f"= figures ===\n  images    {images}\n  others    7\n8 passed in 2.00s\n"
    head, first, second = soak.report(PART, Ran(False, printed, 211.6))
    assert head.split() == ["3", "power", "loss", "8", "passed", "212", "s"]
    assert first.endswith(told)
    assert second.split() == ["others", "7"]


def test_a_figure_that_nobody_counted_is_not_reached_and_a_failure_is_shown_whole() -> None:
    ran = Ran(True, "E   image 7: lost\n1 failed in 1.00s\n", 1.0)
    head, figure, whole = soak.report(PART, ran)
    assert "1 failed" in head
    assert figure.endswith("nothing  (wanted 10,000; not reached)")
    assert "image 7: lost" in whole


def test_a_measurement_is_held_to_its_bound() -> None:
    part = Part(
        row=11, name="large", bench=("inside",), wanted=(Wanted("p95 ms", 20, at_most=True),)
    )
    printed = "== large: what it is\n   p95 ms            20.1\n   RSS         1.02 (61.0 MiB)\n"
    _, first, second = soak.report(part, Ran(False, printed, 1.0))
    assert first.endswith("20.1  (wanted at most 20; not reached)")
    assert second.endswith("1.02 (61.0 MiB)")


def test_a_row_that_is_not_in_the_table_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        soak.main(["99"])
    assert "invalid choice: 99" in capsys.readouterr().err


@functools.cache
def text_of_tests() -> str:
    folder = ROOT / "tests"
    paths = [path for path in source_tree.committed_files() if _is_test(path, folder)]
    return "\n".join(map(source_tree.text_of, paths))


def _is_test(path: Path, folder: Path) -> bool:
    return path.suffix == ".py" and path.is_relative_to(folder)
