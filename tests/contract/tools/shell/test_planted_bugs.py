"""The searches with real shells and programs find every bug that is planted in the reading."""

import os
import subprocess
import sys

import pytest

from tests.contract.tools.shell.planted_bugs import MISREAD_BUGS, MisreadBug
from tests.figures import Figure
from tests.fixtures import ROOT


@pytest.mark.parametrize("bug", MISREAD_BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: MisreadBug, figure: Figure) -> None:
    module = f"tests/contract/tools/shell/{bug.search}.py"
    pytest_arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", "hides or covers"]
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.harness.planting",
            bug.name,
            "pytest",
            *pytest_arguments,
            module,
        ],
        cwd=ROOT,
        env={**os.environ, "PERDURE_TEXTS": str(bug.texts)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "assert hidden == {}" in ran.stdout, ran.stdout
    figure("planted bugs caught", 1)
