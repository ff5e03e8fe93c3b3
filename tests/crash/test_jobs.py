"""Killed at any point in the life of a background job, its end is known, and told once."""

import os
import re
import subprocess
import sys
from typing import Final

from tests.crash.command import SECONDS_MAX
from tests.fixtures import ROOT

EACH: Final = os.environ.get("PERDURE_JOB_POINTS", "3")
"""Every how many-th point is died at."""
DEATHS_MIN: Final = 55
"""A floor, so that points cannot vanish unnoticed."""
KINDS: Final = (
    "job/held",
    "write/committed[job]",
    "job/released",
    "write/committed[job+session_notice]",
    "job/cleaned",
    "job/terminated",
    "job/killed",
)


def test_a_kill_at_any_point_of_a_job_runs_it_once_and_tells_once() -> None:
    swept = subprocess.run(
        [sys.executable, "-m", "tests.crash.jobs", EACH],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX * 2,
        check=False,
    )
    assert swept.returncode == 0, f"{swept.stdout}\n{swept.stderr}"
    points = {line.rpartition("#")[0] for line in swept.stdout.splitlines()}
    assert points >= set(KINDS)
    counted = re.search(r"^(\d+) deaths: 0 faults$", swept.stdout, re.MULTILINE)
    assert counted is not None
    assert int(counted[1]) * int(EACH) >= DEATHS_MIN
