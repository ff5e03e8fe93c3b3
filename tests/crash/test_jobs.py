"""Killed at any point in the life of a background job, its end is known, and told once."""

import os
import re
from typing import Final

import pytest

from tests.crash import command
from tests.figures import Figure

EACH: Final = os.environ.get("PERDURE_JOB_POINTS", "1")
"""Crash at every n-th point."""
CRASHES_MIN: Final = 50
"""A floor, so that points cannot vanish unnoticed. Jobs take real time: two writes of theirs may
share a commit, and then there are a few less."""
KINDS: Final = (
    "job/held",
    "write/committed[job]",
    "job/released",
    "write/committed[job+session_notice+process+session_attempt+session_lease]",
    "job/cleaned",
    "job/terminated",
    "job/killed",
)


@pytest.mark.timeout(command.TIMEOUT_SECONDS)
def test_a_kill_at_any_point_of_a_job_runs_it_once_and_tells_once(figure: Figure) -> None:
    swept = command.run("scenarios.jobs", EACH)
    assert swept.returncode == 0, f"{swept.stdout}\n{swept.stderr}"
    points = {line.rpartition("#")[0] for line in swept.stdout.splitlines()}
    assert points >= set(KINDS)
    counted = re.search(r"^(\d+) crashes: 0 faults$", swept.stdout, re.MULTILINE)
    assert counted is not None
    assert int(counted[1]) * int(EACH) >= CRASHES_MIN
    figure("crash points of a job", int(counted[1]))
