"""Pending requests of one kind as clients see them, whichever process they wait in.

Those of this process are at the desks of its Locations, those of others in the store. Nothing here
opens a Location: one that is not open has nobody waiting here. Settling them is not done here.

Invariant: a request is seen only under the Session it belongs to, or one above that.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from perdure.ports import Database
from perdure.runtime import subtree
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationRef
from perdure.schema.pending import PendingKind
from perdure.schema.permission import PermissionRequest
from perdure.schema.question import QuestionRequest
from perdure.store.pending_table import PendingRequests, PendingRow

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
        elsewhere = self._of(await self._requests.elsewhere(self._kind))
        return tuple(it for it in (*elsewhere, *here) if it.session_id in tree.ids)

    async def at(self, ref: LocationRef) -> tuple[RequestT, ...]:
        """Of a Location, for all its Sessions."""
        rows = await self._requests.elsewhere(self._kind)
        return (*self._of(row for row in rows if _is_at(row, ref)), *self._here(ref))

    def _of(self, rows: Iterable[PendingRow]) -> list[RequestT]:
        return [row.request for row in rows if isinstance(row.request, self._shape)]


def _is_at(row: PendingRow, ref: LocationRef) -> bool:
    """Whether a request waits in the Location that a caller names."""
    directory = ref.directory.rstrip("/") or ref.directory[:1]
    return (row.location.directory, row.location.workspace_id) == (directory, ref.workspace_id)
