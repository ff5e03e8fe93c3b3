"""The tests of rules for files find every planted bug."""

import subprocess
import sys

import pytest

from tests.contract.tools.files.planted_bugs import FILE_RULE_BUGS, FileRuleBug
from tests.figures import Figure
from tests.fixtures import ROOT


@pytest.mark.parametrize("bug", FILE_RULE_BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: FileRuleBug, figure: Figure) -> None:
    planting = [sys.executable, "-m", "tests.harness.planting", bug.name, "pytest"]
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    ran = subprocess.run(
        [*planting, bug.found_by, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED, ran.stdout + ran.stderr
    assert "1 failed" in ran.stdout, ran.stdout
    figure("planted bugs caught", 1)
