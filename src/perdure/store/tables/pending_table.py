"""Pending requests of all processes: visible in each of them, and answered through any.

Only the process that asked settles a request; another process that gets the answer stores it in
the row. A row of a dead process is an orphan: its tool call is settled as interrupted, never run
again, and the request is rejected with an event.

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
    answer: PendingWord | None


class PendingRequests:
    def __init__(self, database: Database, processes: Processes) -> None:
        self._database = database
        self._processes = processes

    def for_location(self, location: LocationRef) -> "LocationPending":
        """The PendingStore (location.approval.stores) of one Location."""
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
        """Remove settled requests. A failed write is only logged: the rows do no harm."""

        async def job(tx: Transaction) -> None:
            for request_id in ids:
                await tx.execute("DELETE FROM pending_request WHERE id = :id", {"id": request_id})

        try:
            await self._database.write(job)
        except DatabaseError as error:
            logger.warning("settled requests could not be removed from the database: %s", error)

    async def list_elsewhere(self, kind: PendingKind) -> list[PendingRow]:
        """Unanswered requests of other processes, living or dead, oldest first."""
        return await self._fetch(
            "WHERE kind = :kind AND process <> :me AND answer IS NULL ORDER BY rowid",
            {"kind": kind},
        )

    async def answer(self, request_id: str, session_id: SessionID, answer: PendingWord) -> bool:
        """Store an answer for another process; False if none waits or it is already answered."""
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
                {"id": request_id, "answer": codec.encode(LeftWord(answer))},
            )
            return True

        return await self._database.write(job)

    async def list_answered(self) -> list[PendingRow]:
        """Requests of this process that another one answered, oldest first."""
        return await self._fetch("WHERE process = :me AND answer IS NOT NULL ORDER BY rowid", {})

    async def take_orphans(self) -> list[PendingRow]:
        """Remove and return the requests of dead processes; each is returned once."""
        alive = self._processes.alive

        async def job(tx: Transaction) -> list[PendingRow]:
            orphans = [row for row in await list_all(tx) if not alive(row.process)]
            for row in orphans:
                await tx.execute(
                    "DELETE FROM pending_request WHERE id = :id", {"id": row.request.id}
                )
            return orphans

        # There are nearly always none, and a read does not wait for writers.
        if all(alive(row.process) for row in await self._database.read(list_all)):
            return []
        return await self._database.write(job)

    async def remove_own(self) -> None:
        """Remove all requests of this process, when it stops."""
        me = self._processes.me
        await self._database.write(
            lambda tx: tx.execute("DELETE FROM pending_request WHERE process = :me", {"me": me})
        )

    async def _fetch(self, condition: str, parameters: dict[str, str]) -> list[PendingRow]:
        sql = f"{_SELECT} {condition}"
        parameters = {"me": self._processes.me, **parameters}

        async def job(tx: Transaction) -> list[PendingRow]:
            return [_row(row) for row in await tx.fetch(sql, parameters)]

        return await self._database.read(job)


class LocationPending:
    """The pending requests of one Location."""

    def __init__(self, requests: PendingRequests, location: LocationRef) -> None:
        self._requests = requests
        self._location = location

    async def add(self, request: PendingRequest) -> None:
        await self._requests.add(request, self._location)

    async def remove(self, ids: Sequence[str]) -> None:
        await self._requests.remove(ids)


async def list_all(tx: Transaction) -> list[PendingRow]:
    """All pending requests, oldest first."""
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
