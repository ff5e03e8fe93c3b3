"""Killed at any point in the life of a subagent, there is one child, and its end is told once."""

import os
import re
from typing import Final

import pytest

from tests.crash import command
from tests.figures import Figure

EACH: Final = os.environ.get("PERDURE_TASK_POINTS", "1")
"""Crash at every n-th point."""
CRASHES_MIN: Final = 150
"""A floor, so that points cannot vanish unnoticed."""
CHECKS_MIN: Final = 15
"""How many crashes leave other files than the one before: as many as there are commits."""
KINDS: Final = (
    "write/statement[child_task]",
    "write/committed[child_task]",
    "write/in-transaction[tool.success+step.ended]",
)


@pytest.mark.timeout(command.TIMEOUT_SECONDS)
def test_a_kill_at_any_point_of_a_task_makes_one_child_and_tells_once(figure: Figure) -> None:
    swept = command.run("scenarios.tasks", EACH)
    assert swept.returncode == 0, f"{swept.stdout}\n{swept.stderr}"
    points = {line.rpartition("#")[0] for line in swept.stdout.splitlines()}
    assert points >= set(KINDS)
    counted = re.search(r"^(\d+) crashes: 0 faults$", swept.stdout, re.MULTILINE)
    assert counted is not None
    assert int(counted[1]) * int(EACH) >= CRASHES_MIN
    checked = re.search(r"^checked (\d+) times$", swept.stdout, re.MULTILINE)
    assert checked is not None
    assert int(checked[1]) * int(EACH) >= CHECKS_MIN
    figure("crash points of a subagent", int(counted[1]))
