"""The sweep over crash points finds every bug that is planted in the recovery."""

import pytest

from tests.crash import command
from tests.crash.planted_bugs import SWEPT_BUGS, SweptBug
from tests.figures import Figure


@pytest.mark.parametrize("bug", SWEPT_BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found_at_the_points_it_concerns(bug: SweptBug, figure: Figure) -> None:
    swept = command.sweep("--like", bug.killed_at, planted=bug.name)
    assert swept.returncode == 1, swept.stderr or "no crash showed it"
    assert bug.verdict in swept.stdout
    assert "repeat with: python -m tests.crash.sweep --point " in swept.stdout
    figure("planted bugs caught", 1)
