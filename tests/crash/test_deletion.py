"""Killed at any point of a deletion, the next process finishes it, or nothing has begun."""

import re
from typing import Final

import pytest

from tests.crash import command
from tests.figures import Figure
from tests.requirements import requirement

POINTS_MIN: Final = 115
"""A floor, so that points cannot vanish unnoticed."""

CHECKS_MIN: Final = 8
"""How many crashes leave other files than the one before: as many as there are commits."""


@requirement("S74")
@pytest.mark.timeout(command.TIMEOUT_SECONDS)
def test_a_kill_at_any_point_of_a_deletion_leaves_all_or_nothing(figure: Figure) -> None:
    swept = command.run("scenarios.deletion")
    assert swept.returncode == 0, f"{swept.stdout}\n{swept.stderr}"
    counted = re.search(r"^(\d+) crashes: 0 faults$", swept.stdout, re.MULTILINE)
    assert counted is not None
    assert int(counted[1]) >= POINTS_MIN
    checked = re.search(r"^checked (\d+) times$", swept.stdout, re.MULTILINE)
    assert checked is not None
    assert int(checked[1]) >= CHECKS_MIN
    figure("crash points of a deletion", int(counted[1]))
