"""Pending requests of all processes: visible in each of them, and answered through any.

A request of a tool call stays until the call is settled, also when its process stops or dies: the
process that goes on with the call adopts the request, under the same id and with the answer that
was given meanwhile. `shown` is a digest of the call as the person saw it (tool, input, directory,
what is asked for); a call that has changed does not find its request and asks anew. `used` says
that the call has gone on with the answer, so that it may have taken effect.

Invariant: a request has at most one answer, the first.
"""

import logging
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from msgspec import UNSET

from perdure.ports import Database, DatabaseError, Processes, Row, Transaction
from perdure.schema import codec
from perdure.schema.approval.pending import (
    LeftWord,
    PendingKind,
    PendingRequest,
    PendingWord,
    StoredRequest,
)
from perdure.schema.approval.permission import PermissionRequest, PermissionSource
from perdure.schema.approval.question import QuestionRequest, QuestionSource
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.location import LocationRef
from perdure.schema.session.message import AssistantMessage, ToolPart
from perdure.schema.session.tool import RunningState
from perdure.schema.value import Value
from perdure.store.tables import message_table

logger = logging.getLogger(__name__)

_SELECT: Final = (
    "SELECT kind, location, process, data, answer, call_id, shown, used FROM pending_request"
)
_BY_ID: Final = f"{_SELECT} WHERE id = :id"
_INSERT: Final = """
    INSERT INTO pending_request
        (id, kind, session_id, location, process, data, message_id, call_id, shown)
    VALUES
        (:id, :kind, :session_id, :location, :process, :data, :message_id, :call_id, :shown)
"""


class PendingRow(Value):
    location: LocationRef
    process: str
    request: PendingRequest
    answer: PendingWord | None
    call_id: ToolCallID | None = None
    """The tool call that waits; None if none does."""
    shown: str | None = None
    used: bool = False

    @property
    def waits(self) -> bool:
        """Whether its call has yet to go on with an answer."""
        return not self.used


class PendingRequests:
    def __init__(self, database: Database, processes: Processes) -> None:
        self._database = database
        self._processes = processes

    def for_location(self, location: LocationRef) -> "LocationPending":
        """The PendingStore (location.approval.stores) of one Location."""
        return LocationPending(self, location)

    async def add(self, request: PendingRequest, location: LocationRef) -> None:
        source = _source(request)

        async def job(tx: Transaction) -> None:
            shown = await _digest(tx, request, location)
            await tx.execute(
                _INSERT,
                {
                    "id": request.id,
                    "kind": _kind(request),
                    "session_id": request.session_id,
                    "location": codec.encode(location).decode(),
                    "process": self._processes.me,
                    "data": codec.encode(request),
                    "message_id": None if shown is None or source is None else source.message_id,
                    "call_id": None if shown is None or source is None else source.call_id,
                    "shown": shown,
                },
            )

        await self._database.write(job)

    async def adopt(self, request: PendingRequest, location: LocationRef) -> StoredRequest | None:
        """Find the stored request of the same call that asks for the same; None without any.

        Its process has stopped or died. Requests of the call from before it changed are removed.
        `claim` takes it over, once it waits here.
        """
        source = _source(request)
        if source is None or not await self._database.read(
            lambda tx: list_of_call(tx, request.session_id, source.message_id, source.call_id)
        ):
            return None

        async def job(tx: Transaction) -> StoredRequest:
            shown = await _digest(tx, request, location)
            rows = await list_of_call(tx, request.session_id, source.message_id, source.call_id)
            left = [row for row in rows if not self._processes.alive(row.process)]
            void = [row for row in left if row.shown != shown and _alike(row.request, request)]
            for row in void:
                await tx.execute(
                    "DELETE FROM pending_request WHERE id = :id", {"id": row.request.id}
                )
            ours = next((row for row in left if row.shown == shown), None)
            return StoredRequest(
                None if ours is None else ours.request,
                tuple(row.request for row in void if row.answer is None),
            )

        return await self._database.write(job)

    async def claim(self, request_id: str) -> PendingWord | None:
        """Take over a request that waits here now; return the answer that it already has."""
        me = self._processes.me

        async def job(tx: Transaction) -> PendingWord | None:
            await tx.execute(
                "UPDATE pending_request SET process = :me WHERE id = :id",
                {"id": request_id, "me": me},
            )
            rows = [_row(row) for row in await tx.fetch(_BY_ID, {"id": request_id})]
            return rows[0].answer if rows else None

        return await self._database.write(job)

    async def use(self, request_id: str) -> None:
        """The call goes on with the answer: from now on it may have taken effect."""
        await self._database.write(
            lambda tx: tx.execute(
                "UPDATE pending_request SET used = 1 WHERE id = :id", {"id": request_id}
            )
        )

    async def remove(self, ids: Sequence[str]) -> None:
        """Remove settled requests for which no call waits; the others end with their call.

        A failed write is only logged: the rows do no harm.
        """

        async def job(tx: Transaction) -> None:
            for request_id in ids:
                await tx.execute(
                    "DELETE FROM pending_request WHERE id = :id AND shown IS NULL",
                    {"id": request_id},
                )

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

    async def list_answered_ids(self, kind: PendingKind) -> set[str]:
        """The answered requests of all processes whose calls are not settled yet."""
        rows = await self._fetch("WHERE kind = :kind AND answer IS NOT NULL", {"kind": kind})
        return {row.request.id for row in rows}

    async def answer(self, request_id: str, session_id: SessionID, answer: PendingWord) -> bool:
        """Store the answer durably; False if the request is not pending or already answered."""

        async def job(tx: Transaction) -> bool:
            return (
                await tx.execute(
                    "UPDATE pending_request SET answer = :answer"
                    " WHERE id = :id AND session_id = :session_id AND answer IS NULL",
                    {
                        "id": request_id,
                        "session_id": session_id,
                        "answer": codec.encode(LeftWord(answer)),
                    },
                )
                > 0
            )

        return await self._database.write(job)

    async def take_orphan(self, request_id: str) -> PendingRow | None:
        """Take over a request for which no call waits and whose process is gone."""
        me, alive = self._processes.me, self._processes.alive

        async def job(tx: Transaction) -> PendingRow | None:
            rows = [_row(row) for row in await tx.fetch(_BY_ID, {"id": request_id})]
            if not rows or rows[0].shown is not None or alive(rows[0].process):
                return None
            await tx.execute(
                "UPDATE pending_request SET process = :me WHERE id = :id",
                {"id": request_id, "me": me},
            )
            return rows[0]

        return await self._database.write(job)

    async def list_answered(self) -> list[PendingRow]:
        """Requests of this process that are answered, oldest first; some are being settled."""
        return await self._fetch("WHERE process = :me AND answer IS NOT NULL ORDER BY rowid", {})

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

    async def adopt(self, request: PendingRequest) -> StoredRequest | None:
        return await self._requests.adopt(request, self._location)

    async def claim(self, request_id: str) -> PendingWord | None:
        return await self._requests.claim(request_id)

    async def use(self, request_id: str) -> None:
        await self._requests.use(request_id)


async def list_all(tx: Transaction) -> list[PendingRow]:
    """All pending requests, oldest first."""
    return [_row(row) for row in await tx.fetch(f"{_SELECT} ORDER BY rowid")]


async def list_of_call(
    tx: Transaction, session_id: SessionID, message_id: MessageID, call_id: ToolCallID
) -> list[PendingRow]:
    """The requests of one tool call, oldest first."""
    rows = await tx.fetch(
        f"{_SELECT} WHERE session_id = :session_id AND message_id = :message_id"
        " AND call_id = :call_id ORDER BY rowid",
        {"session_id": session_id, "message_id": message_id, "call_id": call_id},
    )
    return [_row(row) for row in rows]


async def list_of_step(
    tx: Transaction, session_id: SessionID, message_id: MessageID
) -> list[PendingRow]:
    """The requests of all calls of one step, oldest first."""
    rows = await tx.fetch(
        f"{_SELECT} WHERE session_id = :session_id AND message_id = :message_id ORDER BY rowid",
        {"session_id": session_id, "message_id": message_id},
    )
    return [_row(row) for row in rows]


async def list_waiting_calls(
    tx: Transaction, session_id: SessionID, message_id: MessageID
) -> set[str]:
    """The calls of a step that have yet to go on with an answer."""
    rows = await list_of_step(tx, session_id, message_id)
    return {row.call_id for row in rows if row.call_id is not None and row.waits}


async def remove_of_call(
    tx: Transaction, session_id: SessionID, message_id: MessageID, call_id: ToolCallID
) -> None:
    """Remove the requests of a call, in the transaction that settles it."""
    await tx.execute(
        "DELETE FROM pending_request WHERE session_id = :session_id"
        " AND message_id = :message_id AND call_id = :call_id",
        {"session_id": session_id, "message_id": message_id, "call_id": call_id},
    )


async def _digest(tx: Transaction, request: PendingRequest, location: LocationRef) -> str | None:
    """What the person is shown of a call; None if no call of the Session waits."""
    source = _source(request)
    found = None
    if source is not None:
        found = await message_table.get(tx, request.session_id, source.message_id)
    step = None if found is None else found.message()
    if source is None or not isinstance(step, AssistantMessage):
        return None
    asked = (
        (request.action, request.resources)
        if isinstance(request, PermissionRequest)
        else request.questions
    )
    for part in step.content:
        if isinstance(part, ToolPart) and part.id == source.call_id:
            if not isinstance(part.state, RunningState):
                return None
            shown = (part.name, part.state.input, location.directory, asked)
            return sha256(codec.encode(shown)).hexdigest()
    return None


def _alike(one: PendingRequest, other: PendingRequest) -> bool:
    """Whether one may be what the other was before the call changed."""
    if isinstance(one, PermissionRequest) and isinstance(other, PermissionRequest):
        return one.action == other.action
    return _kind(one) == _kind(other)


def _source(request: PendingRequest) -> PermissionSource | QuestionSource | None:
    source = request.source if isinstance(request, PermissionRequest) else request.tool
    return None if source is UNSET else source


def _kind(request: PendingRequest) -> PendingKind:
    return "permission" if isinstance(request, PermissionRequest) else "question"


def _row(row: Row) -> PendingRow:
    kind, location, process, data, answer, call_id, shown, used = row
    assert isinstance(data, bytes)
    shape = PermissionRequest if kind == "permission" else QuestionRequest
    return PendingRow(
        codec.decode(LocationRef, str(location)),
        str(process),
        codec.decode(shape, data),
        codec.decode(LeftWord, answer).word if isinstance(answer, bytes) else None,
        None if call_id is None else ToolCallID(str(call_id)),
        None if shown is None else str(shown),
        bool(used),
    )
