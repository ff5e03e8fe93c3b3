"""Runs the sweeps as commands of their own, because a process that forks must have no threads."""

import subprocess
import sys
from typing import Final

from tests.fixtures import ROOT

SECONDS_MAX: Final = 110
TIMEOUT_SECONDS: Final = 120
"""For a test that runs one of them: much longer than it takes, also on a busy machine."""


def sweep(*arguments: str, planted: str | None = None) -> subprocess.CompletedProcess[str]:
    """Sweep the crash points, if `planted` is given on a runtime with the bug of this name."""
    return run("sweep", *arguments, planted=planted)


def run(
    module: str, *arguments: str, planted: str | None = None, seconds_max: float = SECONDS_MAX
) -> subprocess.CompletedProcess[str]:
    planting = () if planted is None else ("tests.harness.planting", planted)
    return subprocess.run(
        [sys.executable, "-m", *planting, f"tests.crash.{module}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=seconds_max,
        check=False,
    )
