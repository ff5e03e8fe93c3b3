"""What waits for the user: the permission requests and questions of a Session and its subagents."""

from collections.abc import Iterable

from perdure.core.transcript.change import RequestChange, RequestClosed, RequestOpened
from perdure.schema.approval.pending import PendingRequest
from perdure.schema.approval.permission import PermissionRequest
from perdure.schema.approval.question import QuestionRequest
from perdure.schema.live_event import (
    LiveEvent,
    PermissionReplied,
    QuestionRejected,
    QuestionReplied,
)


class PendingRequests:
    """Requests in the order in which they were asked. The caller passes those of its Sessions."""

    def __init__(self) -> None:
        self._open: dict[str, PendingRequest] = {}

    @property
    def open(self) -> tuple[PendingRequest, ...]:
        return tuple(self._open.values())

    def apply(self, event: LiveEvent) -> tuple[RequestChange, ...]:
        match event:
            case PermissionRequest() | QuestionRequest() if event.id not in self._open:
                self._open[event.id] = event
                return (RequestOpened(event),)
            case (
                PermissionReplied(request_id=id)
                | QuestionReplied(request_id=id)
                | QuestionRejected(request_id=id)
            ) if id in self._open:
                del self._open[id]
                return (RequestClosed(id),)
            case _:
                return ()

    def replace(self, listed: Iterable[PendingRequest]) -> tuple[RequestChange, ...]:
        """Take over a list from the server, which also knows the requests of other processes."""
        wanted: dict[str, PendingRequest] = {request.id: request for request in listed}
        closed = [known for known in self._open if known not in wanted]
        opened = [request for request in wanted.values() if request.id not in self._open]
        self._open = wanted
        return (*map(RequestClosed, closed), *map(RequestOpened, opened))
