"""The `session_input` projection: admitted prompts, pending until promoted."""

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from perdure.ports import Row, Transaction
from perdure.schema import codec
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.prompt import Delivery, Prompt
from perdure.schema.session_input import AdmittedPrompt

_COLUMNS: Final = "id, session_id, prompt, delivery, admitted_seq, promoted_seq, time_created"
_INSERT: Final = f"""
    INSERT INTO session_input ({_COLUMNS})
    VALUES (:id, :session_id, :prompt, :delivery, :admitted_seq, :promoted_seq, :time_created)
"""


async def insert(tx: Transaction, admitted: AdmittedPrompt) -> None:
    promoted = admitted.promoted_seq
    await tx.execute(
        _INSERT,
        {
            "id": admitted.id,
            "session_id": admitted.session_id,
            "prompt": codec.encode(admitted.prompt),
            "delivery": admitted.delivery,
            "admitted_seq": admitted.admitted_seq,
            "promoted_seq": None if promoted is UNSET else promoted,
            "time_created": admitted.time_created,
        },
    )


async def get(tx: Transaction, message_id: MessageID) -> AdmittedPrompt | None:
    """Whichever Session admitted it: message ids are unique across all of them."""
    rows = await tx.fetch(
        f"SELECT {_COLUMNS} FROM session_input WHERE id = :id", {"id": message_id}
    )
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
        f"SELECT {_COLUMNS} FROM session_input INDEXED BY session_input_pending"
        " WHERE session_id = :session_id AND delivery = :delivery AND promoted_seq IS NULL"
        " ORDER BY admitted_seq LIMIT :limit",
        {"session_id": session_id, "delivery": delivery, "limit": limit},
    )
    return [_row(row) for row in rows]


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
    message_id, session_id, prompt, delivery, admitted_seq, promoted_seq, time_created = row
    assert isinstance(prompt, bytes)
    assert isinstance(admitted_seq, int)
    assert isinstance(time_created, int)
    return AdmittedPrompt(
        id=MessageID(str(message_id)),
        session_id=SessionID(str(session_id)),
        prompt=codec.decode(Prompt, prompt),
        delivery="queue" if delivery == "queue" else "steer",
        admitted_seq=Seq(admitted_seq),
        promoted_seq=Seq(promoted_seq) if isinstance(promoted_seq, int) else UNSET,
        time_created=time_created,
    )
