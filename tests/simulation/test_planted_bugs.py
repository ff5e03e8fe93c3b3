"""The simulator bites: every planted defect is found, and the report says how to repeat it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.figures import Figure
from tests.fixtures import ROOT
from tests.simulation.planted_bugs import PLANTED_BUGS, PlantedBug

SEEDS_MAX: Final = 60
STEPS: Final = 200


def plant(bug: PlantedBug, target: Path) -> None:
    """A copy of the package with the defect in it."""
    shutil.copytree(ROOT / "src" / "perdure", target / "perdure", copy_function=os.symlink)
    file = target / "perdure" / bug.file
    text = file.read_text(encoding="utf-8")
    file.unlink()
    assert text.count(bug.before) == 1, f"{bug.file} has changed; plant {bug.name!r} anew"
    file.write_text(text.replace(bug.before, bug.after), encoding="utf-8")


def run(package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.harness.simulation", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def hunt(package: Path, bug: PlantedBug) -> str:
    """What the first seed that notices has to say."""
    found = run(package, str(bug.first), "--count", str(SEEDS_MAX), "--steps", str(STEPS))
    assert found.returncode == 1, found.stderr or "no seed noticed"
    return found.stdout


@pytest.mark.parametrize("bug", PLANTED_BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: PlantedBug, tmp_path: Path, figure: Figure) -> None:
    plant(bug, tmp_path)
    found = hunt(tmp_path, bug)
    assert re.search(rf"^  (?:{bug.promise}): ", found, flags=re.MULTILINE), found
    figure("planted bugs caught", 1)


def test_what_was_found_can_be_repeated(tmp_path: Path) -> None:
    plant(PLANTED_BUGS[0], tmp_path)
    found = hunt(tmp_path, PLANTED_BUGS[0])
    command = re.search(r"make simulate SEED=(\d+) STEPS=(\d+)", found)
    assert command is not None
    assert run(tmp_path, "--seed", command[1], "--steps", command[2]).stdout == found
