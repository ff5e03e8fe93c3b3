"""Killed at any point around an interrupt, the next process runs what is owed and nothing else."""

import re
from typing import Final

import pytest

from tests.crash import command
from tests.figures import Figure
from tests.requirements import requirement

CRASHES_MIN: Final = 80
"""A floor, so that points cannot vanish unnoticed."""
KINDS: Final = (
    "write/committed[session_attempt+session_interrupt]",
    "write/statement[session_interrupt]",
)


@requirement("S69", "S70")
@pytest.mark.timeout(command.TIMEOUT_SECONDS)
def test_a_kill_at_any_point_leaves_alone_what_was_only_admitted_or_stopped(
    figure: Figure,
) -> None:
    swept = command.run("scenarios.owed")
    assert swept.returncode == 0, f"{swept.stdout}\n{swept.stderr}"
    points = {line.rpartition("#")[0] for line in swept.stdout.splitlines()}
    assert points >= set(KINDS)
    counted = re.search(r"^(\d+) crashes: 0 faults$", swept.stdout, re.MULTILINE)
    assert counted is not None
    assert int(counted[1]) >= CRASHES_MIN
    figure("crash points around an interrupt", int(counted[1]))
