"""The simulation finds every planted bug, and its report says how to repeat what it found."""

import re
import subprocess
import sys
from typing import Final

import pytest

from tests.figures import Figure
from tests.fixtures import ROOT
from tests.simulation.planted_bugs import PLANTED_BUGS, PlantedBug

SEEDS_MAX: Final = 60
STEPS: Final = 200


def simulate(bug: PlantedBug, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the simulation on a runtime with this bug."""
    program = ["tests.harness.planting", bug.name, "tests.harness.simulation"]
    return subprocess.run(
        [sys.executable, "-m", *program, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def first_report(bug: PlantedBug) -> str:
    """The report of the first seed that finds the bug."""
    ran = simulate(bug, str(bug.first), "--count", str(SEEDS_MAX), "--steps", str(STEPS))
    assert ran.returncode == 1, ran.stderr or "no seed found it"
    assert not ran.stderr, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("bug", PLANTED_BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: PlantedBug, figure: Figure) -> None:
    report = first_report(bug)
    assert re.search(rf"^  (?:{bug.promise}): ", report, flags=re.MULTILINE), report
    figure("planted bugs caught", 1)


def test_what_was_found_can_be_repeated() -> None:
    bug = PLANTED_BUGS[0]
    report = first_report(bug)
    command = re.search(r"make simulate SEED=(\d+) STEPS=(\d+)", report)
    assert command is not None
    assert simulate(bug, "--seed", command[1], "--steps", command[2]).stdout == report
