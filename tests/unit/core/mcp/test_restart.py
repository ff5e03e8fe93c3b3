"""Pauses before restarts grow, and have an end."""

from perdure.core import limits
from perdure.core.mcp import restart


def test_pauses_grow_to_a_bound() -> None:
    pauses = [restart.pause_seconds(failures) for failures in range(1, 40)]
    assert pauses[:4] == [1, 2, 4, 8]
    assert pauses == sorted(pauses)
    assert pauses[-1] == restart.pause_seconds(10**9) == limits.MCP_RESTART_SECONDS_MAX
    assert restart.pause_seconds(0) == limits.MCP_RESTART_SECONDS_MIN
