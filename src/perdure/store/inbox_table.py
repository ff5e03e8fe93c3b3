"""The `session_input` projection: admitted prompts, pending until promoted.

A prompt can be large and is in the log already, so a row holds only its place there.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from perdure.ports import Row, Transaction
from perdure.schema.errors import DamagedRowError
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.prompt import Delivery
from perdure.schema.session_event import PromptAdmitted, PromptPromoted
from perdure.schema.session_input import AdmittedPrompt
from perdure.store import damage

_INSERT: Final = """
    INSERT INTO session_input
        (id, session_id, delivery, admitted_seq, promoted_seq, time_created)
    VALUES (:id, :session_id, :delivery, :admitted_seq, :promoted_seq, :time_created)
"""
_SELECT: Final = """
    SELECT i.id, i.session_id, i.delivery, i.admitted_seq, i.promoted_seq, i.time_created,
        e.type, e.data
    FROM session_input AS i {indexed}
    LEFT JOIN event AS e
        ON e.session_id = i.session_id AND e.seq = i.admitted_seq
"""
_BY_ID: Final = _SELECT.format(indexed="") + "WHERE i.id = :id"
_PENDING: Final = (
    _SELECT.format(indexed="INDEXED BY session_input_pending")
    + """
    WHERE i.session_id = :session_id AND i.delivery = :delivery AND i.promoted_seq IS NULL
    ORDER BY i.admitted_seq LIMIT :limit
"""
)


async def insert(
    tx: Transaction,
    event: PromptAdmitted | PromptPromoted,
    *,
    admitted_seq: Seq,
    promoted_seq: Seq | None = None,
) -> None:
    await tx.execute(
        _INSERT,
        {
            "id": event.message_id,
            "session_id": event.session_id,
            "delivery": event.delivery,
            "admitted_seq": admitted_seq,
            "promoted_seq": promoted_seq,
            "time_created": event.timestamp,
        },
    )


async def get(tx: Transaction, message_id: MessageID) -> AdmittedPrompt | None:
    """Whichever Session admitted it: message ids are unique across all of them."""
    rows = await tx.fetch(_BY_ID, {"id": message_id})
    return _row(rows[0]) if rows else None


async def mark_promoted(
    tx: Transaction, session_id: SessionID, message_id: MessageID, seq: Seq
) -> bool:
    """Whether there was such a pending entry."""
    changed = await tx.execute(
        "UPDATE session_input SET promoted_seq = :seq"
        " WHERE id = :id AND session_id = :session_id AND promoted_seq IS NULL",
        {"id": message_id, "session_id": session_id, "seq": seq},
    )
    return changed == 1


async def pending(
    tx: Transaction, session_id: SessionID, delivery: Delivery, *, limit: int
) -> list[AdmittedPrompt]:
    """The oldest pending entries of that delivery, in admission order."""
    rows = await tx.fetch(
        _PENDING, {"session_id": session_id, "delivery": delivery, "limit": limit}
    )
    return [_row(row) for row in rows]


async def is_pending(tx: Transaction, session_id: SessionID, delivery: Delivery) -> bool:
    rows = await tx.fetch(
        "SELECT 1 FROM session_input INDEXED BY session_input_pending"
        " WHERE session_id = :session_id AND delivery = :delivery AND promoted_seq IS NULL LIMIT 1",
        {"session_id": session_id, "delivery": delivery},
    )
    return bool(rows)


async def count_pending(tx: Transaction, session_id: SessionID) -> int:
    rows = await tx.fetch(
        "SELECT count(*) FROM session_input INDEXED BY session_input_pending"
        " WHERE session_id = :session_id AND promoted_seq IS NULL",
        {"session_id": session_id},
    )
    return int(str(rows[0][0]))


async def sessions_with_pending(tx: Transaction) -> list[SessionID]:
    rows: Sequence[Row] = await tx.fetch(
        "SELECT DISTINCT session_id FROM session_input INDEXED BY session_input_pending"
        " WHERE promoted_seq IS NULL"
    )
    return [SessionID(str(row[0])) for row in rows]


async def delete_after(tx: Transaction, session_id: SessionID, seq: Seq) -> None:
    """What was admitted or promoted after a revert's boundary."""
    await tx.execute(
        "DELETE FROM session_input WHERE session_id = :session_id"
        " AND (admitted_seq > :seq OR promoted_seq > :seq)",
        {"session_id": session_id, "seq": seq},
    )


def _row(row: Row) -> AdmittedPrompt:
    message_id, session_id, delivery, admitted_seq, promoted_seq, time_created, stored, data = row
    owner = SessionID(str(session_id))
    assert isinstance(admitted_seq, int)
    assert isinstance(time_created, int)
    if data is None:
        raise _damaged(owner, admitted_seq, f"{message_id} names no event of the log")
    event = damage.event(stored, data, owner, seq=admitted_seq)
    if not isinstance(event, PromptAdmitted | PromptPromoted) or event.message_id != message_id:
        raise _damaged(owner, admitted_seq, f"{message_id} names an event that is not its own")
    if delivery not in ("steer", "queue"):
        raise _damaged(owner, admitted_seq, f"{message_id} has delivery {delivery!r}")
    return AdmittedPrompt(
        id=event.message_id,
        session_id=owner,
        prompt=event.prompt,
        delivery="queue" if delivery == "queue" else "steer",
        admitted_seq=Seq(admitted_seq),
        promoted_seq=Seq(promoted_seq) if isinstance(promoted_seq, int) else UNSET,
        time_created=time_created,
    )


def _damaged(session_id: SessionID, seq: int, reason: str) -> DamagedRowError:
    return DamagedRowError(session_id, table="session_input", seq=seq, reason=reason)
