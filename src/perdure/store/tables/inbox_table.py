"""The `session_input` projection: admitted prompts, pending until promoted.

A prompt can be large and is in the log already, so a row holds only its sequence. A cancelled
prompt keeps its row: sending it again returns its receipt and starts no other run.
"""

from collections.abc import Sequence
from typing import Final, assert_never

from msgspec import UNSET
from msgspec.structs import replace

from perdure.ports import Row, Transaction
from perdure.schema.errors import DamagedRowError
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.session.event import (
    InboxReordered,
    PromptAdmitted,
    PromptCancelled,
    PromptPromoted,
    PromptRevised,
)
from perdure.schema.session.prompt import Delivery
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.store.tables import row_checks

_INSERT: Final = """
    INSERT INTO session_input
        (id, session_id, delivery, admitted_seq, promoted_seq, prompt_seq, place, time_created)
    VALUES (:id, :session_id, :delivery, :admitted_seq, :promoted_seq, :admitted_seq,
        :admitted_seq, :time_created)
"""
_SELECT: Final = """
    SELECT i.id, i.session_id, i.delivery, i.admitted_seq, i.promoted_seq, i.time_created,
        e.seq, e.type, e.data
    FROM session_input AS i {indexed}
    LEFT JOIN event AS e
        ON e.session_id = i.session_id AND e.seq = i.{prompt}
"""
_BY_ID: Final = _SELECT.format(indexed="", prompt="prompt_seq") + "WHERE i.id = :id"
_ADMISSION: Final = _SELECT.format(indexed="", prompt="admitted_seq") + "WHERE i.id = :id"
_IS_PENDING: Final = "promoted_seq IS NULL AND cancelled_seq IS NULL"
_PENDING: Final = (
    _SELECT.format(indexed="INDEXED BY session_input_pending", prompt="prompt_seq")
    + """
    WHERE i.session_id = :session_id AND i.delivery = {delivery}
        AND i.promoted_seq IS NULL AND i.cancelled_seq IS NULL
    ORDER BY i.place LIMIT {limit}
"""
)
_PENDING_OF_DELIVERY: Final = _PENDING.format(delivery=":delivery", limit=":limit")
_NEXT_PENDING: Final = " UNION ALL ".join(
    f"SELECT * FROM ({_PENDING.format(delivery=delivery, limit=limit)})"
    for delivery, limit in (("'steer'", ":limit"), ("'queue'", "1"))
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
    """The prompt as it is now, of any Session: message ids are unique across all Sessions."""
    rows = await tx.fetch(_BY_ID, {"id": message_id})
    return _row(rows[0]) if rows else None


async def get_admission(tx: Transaction, message_id: MessageID) -> AdmittedPrompt | None:
    """The prompt as it was first admitted, before any revision."""
    rows = await tx.fetch(_ADMISSION, {"id": message_id})
    if not rows:
        return None
    found, event = _row(rows[0]), _event(rows[0])
    return replace(found, delivery=event.delivery)


async def is_cancelled(tx: Transaction, message_id: MessageID) -> bool:
    rows = await tx.fetch(
        "SELECT 1 FROM session_input WHERE id = :id AND cancelled_seq IS NOT NULL",
        {"id": message_id},
    )
    return bool(rows)


async def is_waiting(tx: Transaction, message_id: MessageID) -> bool:
    """Whether this prompt is neither promoted nor cancelled."""
    rows = await tx.fetch(
        f"SELECT 1 FROM session_input WHERE id = :id AND {_IS_PENDING}", {"id": message_id}
    )
    return bool(rows)


async def mark_promoted(
    tx: Transaction, session_id: SessionID, message_id: MessageID, seq: Seq
) -> bool:
    """Mark a pending prompt as promoted; returns whether there was one."""
    changed = await tx.execute(
        "UPDATE session_input SET promoted_seq = :seq"
        f" WHERE id = :id AND session_id = :session_id AND {_IS_PENDING}",
        {"id": message_id, "session_id": session_id, "seq": seq},
    )
    return changed == 1


async def apply_change(
    tx: Transaction, event: PromptRevised | PromptCancelled | InboxReordered, seq: Seq
) -> None:
    """Apply a user's change of pending prompts; promoted and cancelled ones stay unchanged."""
    match event:
        case PromptRevised():
            await _revise(tx, event, prompt_seq=seq)
        case PromptCancelled():
            await _cancel(tx, event, seq)
        case InboxReordered():
            await _reorder(tx, event.session_id, event.message_ids)
        case _:
            assert_never(event)


async def _revise(tx: Transaction, event: PromptRevised, *, prompt_seq: Seq) -> None:
    await tx.execute(
        "UPDATE session_input SET delivery = :delivery, prompt_seq = :seq"
        f" WHERE id = :id AND session_id = :session_id AND {_IS_PENDING}",
        {
            "id": event.message_id,
            "session_id": event.session_id,
            "delivery": event.delivery,
            "seq": prompt_seq,
        },
    )


async def _cancel(tx: Transaction, event: PromptCancelled, seq: Seq) -> None:
    await tx.execute(
        "UPDATE session_input SET cancelled_seq = :seq"
        f" WHERE id = :id AND session_id = :session_id AND {_IS_PENDING}",
        {"id": event.message_id, "session_id": event.session_id, "seq": seq},
    )


async def _reorder(
    tx: Transaction, session_id: SessionID, message_ids: Sequence[MessageID]
) -> None:
    """Redistribute the positions of these prompts among them, in this order."""
    rows = await tx.fetch(
        "SELECT id, place FROM session_input INDEXED BY session_input_pending"
        f" WHERE session_id = :session_id AND {_IS_PENDING}",
        {"session_id": session_id},
    )
    positions = {str(found): position for found, position in rows if found in message_ids}
    moved = [message_id for message_id in message_ids if message_id in positions]
    free = sorted(position for position in positions.values() if isinstance(position, int))
    for message_id, position in zip(moved, free, strict=True):
        await tx.execute(
            "UPDATE session_input SET place = :place WHERE id = :id",
            {"id": message_id, "place": position},
        )


async def list_pending(
    tx: Transaction, session_id: SessionID, delivery: Delivery, *, limit: int
) -> list[AdmittedPrompt]:
    """The first pending prompts of that delivery, in promotion order."""
    parameters = {"session_id": session_id, "delivery": delivery, "limit": limit}
    return [_row(row) for row in await tx.fetch(_PENDING_OF_DELIVERY, parameters)]


async def list_next(
    tx: Transaction, session_id: SessionID, *, steers_max: int
) -> list[AdmittedPrompt]:
    """What a boundary may promote: the first steers, then the first of the queue."""
    parameters = {"session_id": session_id, "limit": steers_max}
    return [_row(row) for row in await tx.fetch(_NEXT_PENDING, parameters)]


async def count_pending(tx: Transaction, session_id: SessionID) -> int:
    rows = await tx.fetch(
        "SELECT count(*) FROM session_input INDEXED BY session_input_pending"
        f" WHERE session_id = :session_id AND {_IS_PENDING}",
        {"session_id": session_id},
    )
    return int(str(rows[0][0]))


async def has_more_pending(tx: Transaction, session_id: SessionID, than: int) -> bool:
    """Whether more than `than` prompts are pending; reads only as much of the index as needed."""
    rows = await tx.fetch(
        "SELECT 1 FROM session_input INDEXED BY session_input_pending"
        f" WHERE session_id = :session_id AND {_IS_PENDING} LIMIT 1 OFFSET :than",
        {"session_id": session_id, "than": than},
    )
    return bool(rows)


async def delete_after(tx: Transaction, session_id: SessionID, seq: Seq) -> None:
    """Delete what was admitted or promoted after a revert's boundary."""
    await tx.execute(
        "DELETE FROM session_input WHERE session_id = :session_id"
        " AND (admitted_seq > :seq OR promoted_seq > :seq)",
        {"session_id": session_id, "seq": seq},
    )


def _row(row: Row) -> AdmittedPrompt:
    message_id, session_id, delivery, admitted_seq, promoted_seq, time_created, *_ = row
    owner = SessionID(str(session_id))
    assert isinstance(admitted_seq, int)
    assert isinstance(time_created, int)
    event = _event(row)
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


def _event(row: Row) -> PromptAdmitted | PromptPromoted | PromptRevised:
    """The log event that holds the prompt of a row."""
    message_id, session_id, _, admitted_seq, _, _, seq, stored, data = row
    owner = SessionID(str(session_id))
    assert isinstance(admitted_seq, int)
    if data is None or not isinstance(seq, int):
        raise _damaged(owner, admitted_seq, f"{message_id} names no event of the log")
    event = row_checks.decode_event(stored, data, owner, seq=seq)
    has_prompt = isinstance(event, PromptAdmitted | PromptPromoted | PromptRevised)
    if not has_prompt or event.message_id != message_id:
        raise _damaged(owner, seq, f"{message_id} names an event that is not its own")
    return event


def _damaged(session_id: SessionID, seq: int, reason: str) -> DamagedRowError:
    return DamagedRowError(session_id, table="session_input", seq=seq, reason=reason)
