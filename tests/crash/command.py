"""Calling the sweeps as the commands that they are: a process that forks may have no threads."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.fixtures import ROOT

SECONDS_MAX: Final = 110
TIMEOUT_SECONDS: Final = 120
"""Of a test that runs one of them: much longer than it takes, also on a machine that is busy."""


def sweep(*arguments: str, package: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`package` is where to find another perdure than the one that is installed."""
    return run("sweep", *arguments, package=package)


def run(
    module: str, *arguments: str, package: Path | None = None, seconds_max: float = SECONDS_MAX
) -> subprocess.CompletedProcess[str]:
    found = {} if package is None else {"PYTHONPATH": str(package)}
    return subprocess.run(
        [sys.executable, "-m", f"tests.crash.{module}", *arguments],
        cwd=ROOT,
        env={**os.environ, **found},
        capture_output=True,
        text=True,
        timeout=seconds_max,
        check=False,
    )
