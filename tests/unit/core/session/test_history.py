"""Where Session History is cut."""

import pytest

from perdure.core.session import history
from perdure.schema.ids import Seq
from tests.requirements import requirement


@requirement("S2", "S36", "S25")
@pytest.mark.parametrize(
    ("seq", "system", "compaction", "baseline", "seen"),
    [
        # Before any epoch or compaction, everything is there.
        (1, False, None, None, True),
        (1, True, None, None, True),
        # The baseline takes in the system messages up to and with its own place.
        (4, True, None, 5, False),
        (5, True, None, 5, False),
        (6, True, None, 5, True),
        (4, False, None, 5, True),
        (5, False, None, 5, True),
        # A compaction takes everything before it; it is itself the first message.
        (9, False, 10, None, False),
        (10, False, 10, None, True),
        (11, False, 10, None, True),
        (9, True, 10, None, False),
        (11, True, 10, None, True),
        # Compacted, and the new baseline is made at the compaction.
        (9, True, 10, 10, False),
        (10, True, 10, 10, False),
        (11, True, 10, 10, True),
        (9, False, 10, 10, False),
        # Compacted, but the new baseline is blocked: later system messages stay in view.
        (7, True, 10, 5, True),
        (5, True, 10, 5, False),
        (7, False, 10, 5, False),
    ],
)
def test_a_message_is_part_of_history(
    seq: int, compaction: int | None, baseline: int | None, *, system: bool, seen: bool
) -> None:
    visible = history.visible(
        seq=Seq(seq),
        is_system=system,
        compaction=None if compaction is None else Seq(compaction),
        baseline=None if baseline is None else Seq(baseline),
    )
    assert visible is seen
