"""What runs Sessions: the runner, and who works on the same history as it does.

Joined here and loaded with the engine. When a Session runs is not decided here, but by the
coordinator.
"""

from perdure.runtime.compaction.compactor import Compactor
from perdure.runtime.drain.crash_recovery import Recoveries
from perdure.runtime.drain.drain import SessionRunner
from perdure.runtime.drain.request_preview import ProviderContexts
from perdure.runtime.drain.turn_cycle import Turns
from perdure.runtime.tasks import Background
from perdure.runtime.turn.boundary import Boundary
from perdure.runtime.turn.ownership import Tenures
from perdure.runtime.turn.request_marks import Attempts
from perdure.runtime.turn.retries import Retries
from perdure.runtime.turn.services import RunServices
from perdure.runtime.turn.titles import Titles
from perdure.schema.value import Value


class SessionRuns(Value, kw_only=True):
    tenures: Tenures
    compactor: Compactor
    recoveries: Recoveries
    runner: SessionRunner
    provider_contexts: ProviderContexts


def join(services: RunServices, background: Background) -> SessionRuns:
    tenures = Tenures(services)
    compactor = Compactor(services, tenures)
    attempts = Attempts(services.store)
    recoveries = Recoveries(services, attempts)
    retries = Retries(services)
    boundary = Boundary(services.store, services.clock, services.ids)
    turns = Turns(
        services,
        boundary,
        compactor,
        attempts=attempts,
        retries=retries,
        histories=tenures.histories,
        titles=Titles(services, lambda work: background.start(work, name="title")),
    )
    runner = SessionRunner(
        services,
        tenures,
        turns,
        boundary=boundary,
        attempts=attempts,
        retries=retries,
        recoveries=recoveries,
    )
    return SessionRuns(
        tenures=tenures,
        compactor=compactor,
        recoveries=recoveries,
        runner=runner,
        provider_contexts=ProviderContexts(services),
    )
