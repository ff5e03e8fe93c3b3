"""Killed at any point, the runtime goes on from what it had acknowledged, and repeats nothing."""

import re
from typing import Final

import pytest

from tests.crash import command
from tests.crash.sweep import part
from tests.figures import Figure
from tests.requirements import requirement

SHARDS: Final = 3
POINTS_MIN: Final = 750
"""A floor, so that points cannot vanish unnoticed. Raise it when the script or the seams grow."""
RECOVERIES_MIN: Final = 40
"""In each shard: how many crashes at least leave other files than the one before them."""
KINDS: Final = (
    "boot/migrated",
    "boot/locked",
    "write/begin",
    "write/statement[prompt.admitted]",
    "write/in-transaction[prompt.admitted]",
    "write/committed[session.created]",
    "write/committed[prompt.admitted]",
    "write/committed[prompted]",
    "write/committed[session_lease]",
    "write/committed[session_attempt]",
    "write/committed[tool.input.ended+tool.called]",
    "write/committed[tool.success]",
    "write/committed[tool.success+step.ended]",
    "write/committed[text.ended+step.ended]",
    "write/committed[session_file_change]",
    "write/committed[approval]",
    "write/committed[model.switched]",
    "write/committed[agent.switched]",
    "write/committed[message.excluded]",
    "write/committed[compaction.started]",
    "write/committed[compaction.ended]",
    "write/announced[prompt.admitted]",
    "write/answered[prompt.admitted]",
    "client/acknowledged[msg_later]",
    "model/asked",
    "model/delivered[TextDelta]",
    "model/delivered[ToolCall]",
    "model/delivered[Finish]",
    "model/ended",
    "tool/called[note]",
    "tool/done[note]",
    "permission/asked",
    "permission/replied",
    "shutdown/over",
)


def test_every_commit_and_every_effect_has_a_crash_point() -> None:
    listed = command.sweep("--list")
    assert listed.returncode == 0, listed.stderr
    points = [line.split(" ", 1) for line in listed.stdout.splitlines()]
    assert [int(number) for number, _ in points] == list(range(1, len(points) + 1))
    names = [name for _, name in points]
    assert len(set(names)) == len(names)
    assert {name.rpartition("#")[0] for name in names} >= set(KINDS)
    assert len(points) >= POINTS_MIN


COUNTED: Final = re.compile(
    r"^(\d+) recoveries after them\n(\d+) crashes at (\d+) points: 0 faults$", re.MULTILINE
)


@requirement("S66", "S67", "S69", "S70", "S74", "S76", "S169", "S189")
@pytest.mark.timeout(command.TIMEOUT_SECONDS)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_kill_at_any_point_loses_nothing_and_repeats_nothing(shard: int, figure: Figure) -> None:
    swept = command.sweep("--shard", f"{shard}/{SHARDS}")
    assert swept.returncode == 0, f"{swept.stdout}\n{swept.stderr}"
    counted = COUNTED.search(swept.stdout)
    assert counted is not None
    recoveries, crashes, points = map(int, counted.groups())
    assert crashes == len(part(range(points), shard, SHARDS))
    assert recoveries >= RECOVERIES_MIN
    figure("crash points", crashes)
    figure("recoveries after crash points", recoveries)


@pytest.mark.parametrize(
    "compared", [("--apart", "--every", "40"), ("--alike", "--shard", "25/80")]
)
def test_what_stands_for_many_deaths_or_lives_is_like_each_of_them(
    compared: tuple[str, ...],
) -> None:
    """A killed copy leaves what a killed process leaves; equal files lead to equal recoveries."""
    swept = command.sweep(*compared)
    assert swept.returncode == 0, f"{swept.stdout}\n{swept.stderr}"
    counted = COUNTED.search(swept.stdout)
    assert counted is not None
    assert int(counted[2]) in range(9, 21)


def test_a_run_that_was_to_die_and_did_not_is_a_fault() -> None:
    swept = command.sweep("--point", "1", "--then", "100000")
    assert swept.returncode == 1
    assert "was to be killed at its point 100000; it ended with 0" in swept.stdout
    assert "repeat with: python -m tests.crash.sweep --point 1 --then 100000" in swept.stdout


@pytest.mark.parametrize(
    "arguments", [("--point", "0"), ("--point", "100000"), ("--like", "nowhere"), ("--then", "1")]
)
def test_a_sweep_over_no_point_is_refused(arguments: tuple[str, ...]) -> None:
    refused = command.sweep(*arguments)
    assert refused.returncode == 2
    assert "point" in refused.stderr
