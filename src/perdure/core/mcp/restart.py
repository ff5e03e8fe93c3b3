"""Pauses before an MCP server is started again: they grow, so that no server starts in a storm."""

from perdure.core import limits


def pause_seconds(failures: int) -> float:
    """How long to wait after so many failures in a row."""
    doublings = min(max(failures - 1, 0), 16)
    return min(limits.MCP_RESTART_SECONDS_MIN * 2**doublings, limits.MCP_RESTART_SECONDS_MAX)
