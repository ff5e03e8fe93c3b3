"""The table of checkers: what must hold after every step of a simulation.

A new capability adds its promises here: a class with a `promise` and `check`, which gets everything
that happened since the last call. A checker keeps what it needs between calls and reads nothing but
the log, the rows and the witness; it never trusts the runtime.
"""

from typing import Final

from tests.harness.checkers.checker import Checker
from tests.harness.checkers.compaction import CompactionsEndWell, ExcludedIsNotCondensed
from tests.harness.checkers.grammar import LogsFollowTheGrammar
from tests.harness.checkers.inbox import (
    PromptsArePromotedOnce,
    PromptsFollowAnEndedRevert,
    PromptsKeepTheirOrder,
)
from tests.harness.checkers.owed import OnlyOwedRuns
from tests.harness.checkers.recovery import DeadlyRunsAreStopped, MarksEndWithTheirRuns
from tests.harness.checkers.requests import PrefixIsStable, ReadersSeeTheSuffix, SnapshotEqualsTold
from tests.harness.checkers.rows import GaplessSequence, MessagesTellTheLog, ProjectionsEqualFold
from tests.harness.checkers.runs import (
    CallsAreSettledOnce,
    PromptsAreAnswered,
    RequestsBelongToOpenCalls,
)
from tests.harness.checkers.tasks import TasksAreToldOnce

CHECKERS: Final[tuple[type[Checker], ...]] = (
    GaplessSequence,
    LogsFollowTheGrammar,
    ProjectionsEqualFold,
    MessagesTellTheLog,
    PromptsArePromotedOnce,
    PromptsKeepTheirOrder,
    PromptsFollowAnEndedRevert,
    OnlyOwedRuns,
    CallsAreSettledOnce,
    RequestsBelongToOpenCalls,
    PromptsAreAnswered,
    MarksEndWithTheirRuns,
    DeadlyRunsAreStopped,
    CompactionsEndWell,
    ExcludedIsNotCondensed,
    TasksAreToldOnce,
    SnapshotEqualsTold,
    PrefixIsStable,
    ReadersSeeTheSuffix,
)
"""Made anew for each simulation; asked after every step, in this order."""
