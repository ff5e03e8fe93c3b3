"""Calling the sweep as the command that it is: a process that forks may have no threads."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.fixtures import ROOT

SECONDS_MAX: Final = 55


def sweep(*arguments: str, package: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`package` is where to find another perdure than the one that is installed."""
    found = {} if package is None else {"PYTHONPATH": str(package)}
    return subprocess.run(
        [sys.executable, "-m", "tests.crash.sweep", *arguments],
        cwd=ROOT,
        env={**os.environ, **found},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
