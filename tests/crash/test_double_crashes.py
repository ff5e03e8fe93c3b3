"""Killed again while it recovers, the runtime keeps the same promises."""

import os
from typing import Final

import pytest

from tests.crash import command
from tests.crash.sweep import SECONDS_PER_FIRST, firsts_of, part
from tests.figures import Figure
from tests.requirements import requirement

PAIRS: Final = int(os.environ.get("PERDURE_PAIRS", "300"))
SHARDS: Final = 3
SECONDS_MAX: Final = max(command.SECONDS_MAX, PAIRS // 2)
"""For each shard."""


@requirement("S66", "S67", "S70", "S74", "S189")
@pytest.mark.timeout(SECONDS_MAX + 10)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_second_kill_during_recovery_loses_nothing_and_repeats_nothing(
    shard: int, figure: Figure
) -> None:
    asked = ("--pairs", str(PAIRS), "--shard", f"{shard}/{SHARDS}")
    swept = command.run("sweep", *asked, seconds_max=SECONDS_MAX)
    assert swept.returncode == 0, f"{swept.stdout}\n{swept.stderr}"
    crashes = SECONDS_PER_FIRST * len(part(range(firsts_of(PAIRS)), shard, SHARDS))
    assert f"\n{crashes} crashes at " in swept.stdout
    assert swept.stdout.endswith(" points: 0 faults\n")
    figure("double crashes", crashes)
