"""What runs Sessions: the runner, and who works on the same history as it does.

Joined here and loaded with the engine. When a Session runs is not decided here, but by the
coordinator.
"""

from perdure.runtime.attempts import Attempts
from perdure.runtime.boundary import Boundary
from perdure.runtime.compactor import Compactor
from perdure.runtime.concurrency import Background
from perdure.runtime.provider_contexts import ProviderContexts
from perdure.runtime.recoveries import Recoveries
from perdure.runtime.retries import Retries
from perdure.runtime.run_services import RunServices
from perdure.runtime.runner import SessionRunner
from perdure.runtime.tenure import Tenures
from perdure.runtime.titles import Titles
from perdure.runtime.turns import Turns
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
