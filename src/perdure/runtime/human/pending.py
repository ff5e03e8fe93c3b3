"""Who waits for a person beyond this process: answers that come from elsewhere, and orphans.

A word that was said to another process is delivered to the desk where it is waited for. What a dead
process waited for is rejected, for all to see: its call is settled as interrupted
(runtime.turn.ownership) and never run again, so there is nobody left whom an answer could help.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, assert_never

from perdure.runtime.live_hub import LiveHub
from perdure.schema.approval.pending import (
    AnswersGiven,
    AnswersRefused,
    PendingRequest,
    PermissionWord,
)
from perdure.schema.approval.permission import PermissionRequest
from perdure.schema.errors import (
    InvalidRequestError,
    PermissionNotFoundError,
    QuestionNotFoundError,
)
from perdure.schema.ids import PermissionID, QuestionID
from perdure.schema.live_event import PermissionReplied, QuestionRejected
from perdure.store.tables.pending_table import PendingRequests, PendingRow

if TYPE_CHECKING:
    from perdure.location.location import Location
    from perdure.location.registry import LocationRegistry

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from perdure.ports import Database
from perdure.runtime.session import tree as subtree
from perdure.schema.approval.pending import PendingKind
from perdure.schema.approval.question import QuestionRequest
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationRef


async def reject_orphans(requests: PendingRequests, hub: LiveHub) -> None:
    for row in await requests.take_orphans():
        hub.publish(_rejected(row.request), row.location)


async def deliver(requests: PendingRequests, locations: "LocationRegistry") -> None:
    """Give every word that was left for us to the desk where it is waited for."""
    for row in await requests.list_answered():
        location = locations.get_open(row.location)
        # Settled by somebody here in the meantime, it needs no other word.
        with suppress(PermissionNotFoundError, QuestionNotFoundError, InvalidRequestError):
            if location is not None:
                await _tell(location, row)
        await requests.remove([row.request.id])


async def _tell(location: "Location", row: PendingRow) -> None:
    word, request_id = row.answer, row.request.id
    match word:
        case None:
            return
        case PermissionWord(reply=reply, message=message):
            said = message or None
            await location.permissions.reply(PermissionID(request_id), reply, message=said)
        case AnswersGiven(answers=answers):
            location.questions.reply(QuestionID(request_id), answers)
        case AnswersRefused():
            location.questions.reject(QuestionID(request_id))
        case _:
            assert_never(word)


def _rejected(request: PendingRequest) -> PermissionReplied | QuestionRejected:
    if isinstance(request, PermissionRequest):
        return PermissionReplied(
            session_id=request.session_id, request_id=request.id, reply="reject"
        )
    return QuestionRejected(session_id=request.session_id, request_id=request.id)


RequestT = TypeVar("RequestT", PermissionRequest, QuestionRequest)


class PendingView(Generic[RequestT]):
    """`here` says what waits at the desk of a Location in this process."""

    def __init__(
        self,
        kind: PendingKind,
        shape: type[RequestT],
        *,
        here: Callable[[LocationRef], Sequence[RequestT]],
        requests: PendingRequests,
        database: Database,
    ) -> None:
        self._kind: PendingKind = kind
        self._shape = shape
        self._here = here
        self._requests = requests
        self._database = database

    async def below(self, session_id: SessionID) -> tuple[RequestT, ...]:
        """Of a Session and all below it, oldest first of each. Raises SessionNotFoundError."""
        tree = await self._database.read(lambda tx: subtree.members(tx, session_id))
        here = [request for ref in tree.locations for request in self._here(ref)]
        elsewhere = self._of(await self._requests.list_elsewhere(self._kind))
        return tuple(it for it in (*elsewhere, *here) if it.session_id in tree.ids)

    async def at(self, ref: LocationRef) -> tuple[RequestT, ...]:
        """Of a Location, for all its Sessions."""
        rows = await self._requests.list_elsewhere(self._kind)
        return (*self._of(row for row in rows if _is_at(row, ref)), *self._here(ref))

    def _of(self, rows: Iterable[PendingRow]) -> list[RequestT]:
        return [row.request for row in rows if isinstance(row.request, self._shape)]


def _is_at(row: PendingRow, ref: LocationRef) -> bool:
    """Whether a request waits in the Location that a caller names."""
    directory = ref.directory.rstrip("/") or ref.directory[:1]
    return (row.location.directory, row.location.workspace_id) == (directory, ref.workspace_id)
