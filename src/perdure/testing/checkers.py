"""What must hold after every step of a simulation: the table of checkers.

A new capability adds its promises here: a class with a `promise` and `check`, given everything
that was seen since the last look. A checker keeps what it needs to know between looks and reads
nothing but the log, the rows and the witness; it never trusts the runtime.
"""

from typing import Final

from perdure.testing.checker import Checker
from perdure.testing.compaction_checkers import CompactionsEndWell
from perdure.testing.inbox_checkers import (
    PromptsArePromotedOnce,
    PromptsFollowAnEndedRevert,
    PromptsKeepTheirOrder,
)
from perdure.testing.recovery_checkers import MarksEndWithTheirRuns
from perdure.testing.row_checkers import (
    GaplessSequence,
    MessagesTellTheLog,
    ProjectionsEqualFold,
)
from perdure.testing.run_checkers import (
    CallsAreSettledOnce,
    PromptsAreAnswered,
    RequestsBelongToOpenCalls,
)
from perdure.testing.task_checkers import TasksAreToldOnce
from perdure.testing.told_checkers import PrefixIsStable, ReadersSeeTheSuffix, SnapshotEqualsTold

CHECKERS: Final[tuple[type[Checker], ...]] = (
    GaplessSequence,
    ProjectionsEqualFold,
    MessagesTellTheLog,
    PromptsArePromotedOnce,
    PromptsKeepTheirOrder,
    PromptsFollowAnEndedRevert,
    CallsAreSettledOnce,
    RequestsBelongToOpenCalls,
    PromptsAreAnswered,
    MarksEndWithTheirRuns,
    CompactionsEndWell,
    TasksAreToldOnce,
    SnapshotEqualsTold,
    PrefixIsStable,
    ReadersSeeTheSuffix,
)
"""Made anew for each simulation; asked after every step, in this order."""
