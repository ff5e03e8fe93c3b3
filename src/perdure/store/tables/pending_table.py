"""What waits for a person, in whichever process: seen by all of them, answered through any.

The process that asked is the one that waits, and the only one that settles; another one that is
told the answer leaves it in the row. A row whose process is dead is waited for by nobody: the call
that asked is settled as interrupted, never run again, and the request is rejected for all to see.

Invariant: a request has at most one answer, the first.
"""

import logging
from collections.abc import Sequence
from typing import Final

from perdure.ports import Database, DatabaseError, Processes, Row, Transaction
from perdure.schema import codec
from perdure.schema.approval.pending import LeftWord, PendingKind, PendingRequest, PendingWord
from perdure.schema.approval.permission import PermissionRequest
from perdure.schema.approval.question import QuestionRequest
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationRef
from perdure.schema.value import Value

logger = logging.getLogger(__name__)

_SELECT: Final = "SELECT kind, location, process, data, answer FROM pending_request"


class PendingRow(Value):
    location: LocationRef
    process: str
    request: PendingRequest
    word: PendingWord | None


class PendingRequests:
    def __init__(self, database: Database, processes: Processes) -> None:
        self._database = database
        self._processes = processes

    def at(self, location: LocationRef) -> "LocationPending":
        """A location.approval.stores.PendingStore."""
        return LocationPending(self, location)

    async def add(self, request: PendingRequest, location: LocationRef) -> None:
        parameters = {
            "id": request.id,
            "kind": _kind(request),
            "session_id": request.session_id,
            "location": codec.encode(location).decode(),
            "process": self._processes.me,
            "data": codec.encode(request),
        }
        await self._database.write(
            lambda tx: tx.execute(
                "INSERT INTO pending_request (id, kind, session_id, location, process, data)"
                " VALUES (:id, :kind, :session_id, :location, :process, :data)",
                parameters,
            )
        )

    async def remove(self, ids: Sequence[str]) -> None:
        """They wait no longer; a store that fails keeps rows that do no harm."""

        async def job(tx: Transaction) -> None:
            for request_id in ids:
                await tx.execute("DELETE FROM pending_request WHERE id = :id", {"id": request_id})

        try:
            await self._database.write(job)
        except DatabaseError as error:
            logger.warning("requests that wait no longer are still written down: %s", error)

    async def elsewhere(self, kind: PendingKind) -> list[PendingRow]:
        """What waits in other processes and is not answered, oldest first, also if they died."""
        return await self._fetch(
            "WHERE kind = :kind AND process <> :me AND answer IS NULL ORDER BY rowid",
            {"kind": kind},
        )

    async def answer(self, request_id: str, session_id: SessionID, word: PendingWord) -> bool:
        """Leave a word for whoever waits; False when nobody does, or another came first."""
        me, alive = self._processes.me, self._processes.alive

        async def job(tx: Transaction) -> bool:
            rows = await tx.fetch(
                "SELECT process FROM pending_request"
                " WHERE id = :id AND session_id = :session_id AND answer IS NULL",
                {"id": request_id, "session_id": session_id},
            )
            if not rows or rows[0][0] == me or not alive(str(rows[0][0])):
                return False
            await tx.execute(
                "UPDATE pending_request SET answer = :answer WHERE id = :id",
                {"id": request_id, "answer": codec.encode(LeftWord(word))},
            )
            return True

        return await self._database.write(job)

    async def answered(self) -> list[PendingRow]:
        """What waits here and was answered elsewhere, oldest first."""
        return await self._fetch("WHERE process = :me AND answer IS NOT NULL ORDER BY rowid", {})

    async def take_orphans(self) -> list[PendingRow]:
        """Remove what nobody waits for, because its process is dead; each is returned once."""
        alive = self._processes.alive

        async def job(tx: Transaction) -> list[PendingRow]:
            orphans = [row for row in await every(tx) if not alive(row.process)]
            for row in orphans:
                await tx.execute(
                    "DELETE FROM pending_request WHERE id = :id", {"id": row.request.id}
                )
            return orphans

        # Nearly always there are none, and looking does not wait for writers.
        if all(alive(row.process) for row in await self._database.read(every)):
            return []
        return await self._database.write(job)

    async def remove_own(self) -> None:
        """This process ends, and with it whoever waits."""
        me = self._processes.me
        await self._database.write(
            lambda tx: tx.execute("DELETE FROM pending_request WHERE process = :me", {"me": me})
        )

    async def _fetch(self, condition: str, parameters: dict[str, str]) -> list[PendingRow]:
        sql, given = f"{_SELECT} {condition}", {"me": self._processes.me, **parameters}

        async def job(tx: Transaction) -> list[PendingRow]:
            return [_row(row) for row in await tx.fetch(sql, given)]

        return await self._database.read(job)


class LocationPending:
    """The requests of one Location."""

    def __init__(self, requests: PendingRequests, location: LocationRef) -> None:
        self._requests = requests
        self._location = location

    async def add(self, request: PendingRequest) -> None:
        await self._requests.add(request, self._location)

    async def remove(self, ids: Sequence[str]) -> None:
        await self._requests.remove(ids)


async def every(tx: Transaction) -> list[PendingRow]:
    """All that is written down, oldest first."""
    return [_row(row) for row in await tx.fetch(f"{_SELECT} ORDER BY rowid")]


def _kind(request: PendingRequest) -> PendingKind:
    return "permission" if isinstance(request, PermissionRequest) else "question"


def _row(row: Row) -> PendingRow:
    kind, location, process, data, answer = row
    assert isinstance(data, bytes)
    shape = PermissionRequest if kind == "permission" else QuestionRequest
    return PendingRow(
        codec.decode(LocationRef, str(location)),
        str(process),
        codec.decode(shape, data),
        codec.decode(LeftWord, answer).word if isinstance(answer, bytes) else None,
    )
