"""What runs Sessions: the runner, and who works on the same history as it does.

Joined here and loaded with the engine. When a Session runs is not decided here, but by the
coordinator.
"""

from perdure.runtime.compaction.compactor import Compactor
from perdure.runtime.drain.crash_recovery import CrashRecovery
from perdure.runtime.drain.drain import SessionDrain
from perdure.runtime.drain.request_preview import RequestPreviews
from perdure.runtime.drain.turn_cycle import TurnCycle
from perdure.runtime.tasks import Background
from perdure.runtime.turn.boundary import Boundary
from perdure.runtime.turn.ownership import SessionOwnership
from perdure.runtime.turn.request_marks import RequestMarks
from perdure.runtime.turn.retries import Retries
from perdure.runtime.turn.services import RunServices
from perdure.runtime.turn.titles import Titles
from perdure.schema.value import Value


class SessionRuns(Value, kw_only=True):
    ownership: SessionOwnership
    compactor: Compactor
    recoveries: CrashRecovery
    runner: SessionDrain
    provider_contexts: RequestPreviews


def join(services: RunServices, background: Background) -> SessionRuns:
    ownership = SessionOwnership(services)
    compactor = Compactor(services, ownership)
    attempts = RequestMarks(services.store)
    recoveries = CrashRecovery(services, attempts)
    retries = Retries(services)
    boundary = Boundary(services.store, services.clock, services.ids)
    turns = TurnCycle(
        services,
        boundary,
        compactor,
        attempts=attempts,
        retries=retries,
        histories=ownership.histories,
        titles=Titles(services, lambda work: background.start(work, name="title")),
    )
    runner = SessionDrain(
        services,
        ownership,
        turns,
        boundary=boundary,
        attempts=attempts,
        retries=retries,
        recoveries=recoveries,
    )
    return SessionRuns(
        ownership=ownership,
        compactor=compactor,
        recoveries=recoveries,
        runner=runner,
        provider_contexts=RequestPreviews(services),
    )
