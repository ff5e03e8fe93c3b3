"""Killed at any point of a deletion, the next process finishes it, or nothing has begun."""

import re
import subprocess
import sys

from tests.crash.command import SECONDS_MAX
from tests.fixtures import ROOT
from tests.requirements import requirement

POINTS_MIN = 80
"""A floor, so that points cannot vanish unnoticed."""


@requirement("S74")
def test_a_kill_at_any_point_of_a_deletion_leaves_all_or_nothing() -> None:
    swept = subprocess.run(
        [sys.executable, "-m", "tests.crash.deletion"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert swept.returncode == 0, f"{swept.stdout}\n{swept.stderr}"
    counted = re.search(r"^(\d+) deaths: 0 faults$", swept.stdout, re.MULTILINE)
    assert counted is not None
    assert int(counted[1]) >= POINTS_MIN
