"""What tests count is added up and printed at the end of a run, however the run is made."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests import figures
from tests.crash import test_double_crashes
from tests.fixtures import ROOT
from tests.many_processes import test_many_processes
from tests.power import images
from tests.simulation import test_seeds
from tests.state_machine import test_state_machine

TESTS: Final = """
import pytest
from hypothesis import given, settings, strategies

@pytest.mark.parametrize("amount", [1, 20, 1_000])
def test_counts(figure, amount):
    figure("crash points", amount)
    figure("things of {0} kinds", 1)

def test_counts_nothing(figure):
    pass

def test_fails_after_it_has_counted(figure):
    figure("crash points", 300_000)
    assert False

@settings(max_examples=7, database=None)
@given(strategies.integers())
def test_draws(number):
    assert number == number
"""
PLUGINS: Final = ("-p", "no:cacheprovider", "-p", "xdist", "-p", "_hypothesis_pytestplugin")
COUNTED: Final = {"crash points": 301_021, "property examples": 7, "things of {0} kinds": 3}


@pytest.mark.parametrize("how", [("-q",), ("-q", "-n", "2"), ("-v",)])
def test_figures_of_all_tests_are_printed_as_one_block(
    tmp_path: Path, how: tuple[str, ...]
) -> None:
    printed = run(tmp_path, TESTS, *how)
    assert figures.read(printed) == COUNTED
    assert "  crash points               301,021\n" in printed
    assert "1 failed, 5 passed" in printed


def test_without_figures_there_is_no_block(tmp_path: Path) -> None:
    printed = run(tmp_path, "def test_it():\n    pass\n", "-q")
    assert f" {figures.TITLE} =" not in printed
    assert figures.read(printed) == {}


def test_a_block_is_read_as_it_was_written() -> None:
    written = {"one": 0, "a longer name, with 7 words in it": 12_345_678, "three": 999}
    printed = f"= {figures.TITLE} ====\n{figures.block(written)}\n3 passed in 2.00s\n"
    assert figures.read(f"  noise of an earlier line     12\n{printed}") == written
    assert figures.read("  noise of an earlier line     12\n") == {}


@pytest.mark.parametrize(
    ("asked", "least"),
    [
        (test_seeds.SEEDS, 1_000),
        (test_seeds.STEPS, 200),
        (test_double_crashes.PAIRS, 300),
        (images.IMAGES, 1_000),
        (test_state_machine.EXAMPLES_DEFAULT, 1_000),
        (test_many_processes.PROCESSES, 8),
        (test_many_processes.SECONDS, 20),
    ],
    ids=["seeds", "steps", "pairs", "images", "histories", "processes", "seconds"],
)
def test_a_run_of_all_tests_is_no_smaller_than_was_promised(asked: float, least: float) -> None:
    assert asked >= least


def run(folder: Path, tests: str, *how: str) -> str:
    """What pytest prints about these tests, with our `conftest` beside them."""
    (folder / "test_it.py").write_text(tests, encoding="utf-8")
    hooks = "from tests.conftest import *\nfrom tests.conftest import pytest_runtest_makereport\n"
    (folder / "conftest.py").write_text(hooks, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, *PLUGINS, *how],
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout
