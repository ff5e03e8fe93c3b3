"""Permission requests and questions of all processes: listed, answered, and void when stopped.

An answer that a client gave to another process is delivered to the Location where the request
waits. One for a call whose process is gone waits in the store for the process that goes on with
the call. A request is void when its call is settled without it: by an interrupt, or by a deletion.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar, assert_never

from perdure.ports import Database
from perdure.runtime.session.tree import load_tree
from perdure.schema.approval.pending import (
    AnswersGiven,
    AnswersRefused,
    PendingKind,
    PermissionWord,
)
from perdure.schema.approval.permission import PermissionRequest
from perdure.schema.approval.question import QuestionRequest
from perdure.schema.errors import (
    InvalidRequestError,
    PermissionNotFoundError,
    QuestionNotFoundError,
)
from perdure.schema.ids import PermissionID, QuestionID, SessionID
from perdure.schema.location import LocationRef
from perdure.store.tables.pending_table import PendingRequests, PendingRow

if TYPE_CHECKING:
    from perdure.location.location import Location
    from perdure.location.registry import LocationRegistry

RequestT = TypeVar("RequestT", PermissionRequest, QuestionRequest)


async def deliver(requests: PendingRequests, locations: "LocationRegistry") -> None:
    """Pass the answers that other processes stored for this one to the requests that wait."""
    for row in await requests.list_answered():
        location = locations.get_open(row.location)
        # A request that was settled here needs no other answer.
        with suppress(PermissionNotFoundError, QuestionNotFoundError, InvalidRequestError):
            if location is not None:
                await _answer(location, row)


class PendingView(Generic[RequestT]):
    """Lists pending requests of one kind; `here` lists those of a Location in this process."""

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

    async def list_below(self, session_id: SessionID) -> tuple[RequestT, ...]:
        """Return those of a Session and all below it. Raises SessionNotFoundError."""
        tree = await self._database.read(lambda tx: load_tree(tx, session_id))
        elsewhere = self._of_kind(await self._requests.list_elsewhere(self._kind))
        here = await self._waiting_here(*tree.locations)
        return tuple(it for it in _joined(elsewhere, here) if it.session_id in tree.ids)

    async def list_at(self, ref: LocationRef) -> tuple[RequestT, ...]:
        """Return those of all Sessions of a Location."""
        rows = await self._requests.list_elsewhere(self._kind)
        here = await self._waiting_here(ref)
        return _joined(self._of_kind(row for row in rows if _is_at(row, ref)), here)

    async def list_everywhere(self, refs: Iterable[LocationRef]) -> tuple[RequestT, ...]:
        """Return those of all Sessions; `refs` are the Locations that this process has open."""
        elsewhere = self._of_kind(await self._requests.list_elsewhere(self._kind))
        return _joined(elsewhere, await self._waiting_here(*refs))

    async def _waiting_here(self, *refs: LocationRef) -> list[RequestT]:
        """Those of this process that have no answer: one is stored before its call goes on."""
        found = [request for ref in refs for request in self._here(ref)]
        if not found:
            return []
        answered = await self._requests.list_answered_ids(self._kind)
        return [request for request in found if request.id not in answered]

    def _of_kind(self, rows: Iterable[PendingRow]) -> list[RequestT]:
        return [row.request for row in rows if isinstance(row.request, self._shape)]


async def _answer(location: "Location", row: PendingRow) -> None:
    word, request_id = row.answer, row.request.id
    match word:
        case None:
            return
        case PermissionWord():
            await location.permissions.reply(PermissionID(request_id), word)
        case AnswersGiven(answers=answers):
            location.questions.reply(QuestionID(request_id), answers)
        case AnswersRefused():
            location.questions.reject(QuestionID(request_id))
        case _:
            assert_never(word)


def _joined(elsewhere: Sequence[RequestT], here: Sequence[RequestT]) -> tuple[RequestT, ...]:
    """Each once: a request that is being taken over here is still another process's."""
    mine = {request.id for request in here}
    return (*(request for request in elsewhere if request.id not in mine), *here)


def _is_at(row: PendingRow, ref: LocationRef) -> bool:
    """Whether a request waits in the Location that the client names."""
    directory = ref.directory.rstrip("/") or ref.directory[:1]
    return (row.location.directory, row.location.workspace_id) == (directory, ref.workspace_id)
