"""Killed at any point of a deletion, the next process finishes it, or nothing has begun."""

import re
from typing import Final

import pytest

from tests.crash import command
from tests.figures import Figure
from tests.requirements import requirement

POINTS_MIN: Final = 120
"""A floor, so that points cannot vanish unnoticed."""

LOOKS_MIN: Final = 8
"""So many deaths leave something else than the one before: as many as there are commits."""


@requirement("S74")
@pytest.mark.timeout(command.TIMEOUT_SECONDS)
def test_a_kill_at_any_point_of_a_deletion_leaves_all_or_nothing(figure: Figure) -> None:
    swept = command.run("scenarios.deletion")
    assert swept.returncode == 0, f"{swept.stdout}\n{swept.stderr}"
    counted = re.search(r"^(\d+) deaths: 0 faults$", swept.stdout, re.MULTILINE)
    assert counted is not None
    assert int(counted[1]) >= POINTS_MIN
    looked = re.search(r"^looked (\d+) times$", swept.stdout, re.MULTILINE)
    assert looked is not None
    assert int(looked[1]) >= LOOKS_MIN
    figure("crash points of a deletion", int(counted[1]))
