"""What runs Sessions: the runner, and who works on the same history as it does.

Joined here and loaded with the engine. When a Session runs is not decided here, but by the
coordinator.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from perdure.runtime.compaction.compactor import Compactor
from perdure.runtime.compaction.context_window import ContextWindow
from perdure.runtime.drain.crash_recovery import CrashRecovery
from perdure.runtime.drain.drain import SessionDrain
from perdure.runtime.drain.request_preview import RequestPreviews
from perdure.runtime.drain.turn import TurnServices
from perdure.runtime.tasks import Background
from perdure.runtime.turn.media import RequestMedia
from perdure.runtime.turn.ownership import SessionOwnership
from perdure.runtime.turn.request_marks import RequestMarks
from perdure.runtime.turn.retries import Retries
from perdure.runtime.turn.services import RunServices
from perdure.runtime.turn.titles import Titles
from perdure.schema.ids import SessionID
from perdure.schema.value import Value


class SessionRuns(Value, kw_only=True):
    ownership: SessionOwnership
    compactor: Compactor
    recoveries: CrashRecovery
    drain: SessionDrain
    provider_contexts: RequestPreviews


def join(
    services: RunServices,
    background: Background,
    *,
    finished: Callable[[SessionID], Coroutine[Any, Any, None]],
) -> SessionRuns:
    ownership = SessionOwnership(services)
    compactor = Compactor(services, ownership)
    marks = RequestMarks(services.store)
    recovery = CrashRecovery(services, marks)
    turns = TurnServices(
        run=services,
        context_window=ContextWindow(compactor),
        marks=marks,
        retries=Retries(services),
        histories=ownership.histories,
        titles=Titles(services, lambda work: background.start(work, name="title")),
        media=RequestMedia(),
    )
    return SessionRuns(
        ownership=ownership,
        compactor=compactor,
        recoveries=recovery,
        drain=SessionDrain(turns, ownership, recovery, finished=finished),
        provider_contexts=RequestPreviews(services),
    )
