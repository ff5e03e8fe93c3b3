"""Pending notices: messages from the runtime that a Session has not received yet.

Operational state. A notice is put in the transaction of the fact that it reports and removed in
that of the `synthetic` event which it becomes, so it is delivered once. A deleted Session gets
none. The text and the time of delivery are decided elsewhere.

Invariant: no message and no other notice has the id of a pending one.
"""

from perdure.ports import Transaction
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.value import Value


class Notice(Value, kw_only=True):
    id: MessageID
    """The id of the message that it becomes."""
    session_id: SessionID
    text: str
    time_created: int


async def put(tx: Transaction, notice: Notice) -> bool:
    """Put a notice; returns False if it is already pending or delivered."""
    changed = await tx.execute(
        "INSERT OR IGNORE INTO session_notice (id, session_id, text, time_created)"
        " SELECT :id, :session_id, :text, :time_created"
        " WHERE EXISTS (SELECT 1 FROM session WHERE id = :session_id)"
        " AND NOT EXISTS (SELECT 1 FROM session_message WHERE id = :id)",
        {
            "id": notice.id,
            "session_id": notice.session_id,
            "text": notice.text,
            "time_created": notice.time_created,
        },
    )
    return changed > 0


async def list_pending(tx: Transaction, session_id: SessionID, *, limit: int) -> list[Notice]:
    """The oldest notices of a Session, in order."""
    rows = await tx.fetch(
        "SELECT id, text, time_created FROM session_notice WHERE session_id = :session_id"
        " ORDER BY time_created, id LIMIT :limit",
        {"session_id": session_id, "limit": limit},
    )
    found: list[Notice] = []
    for message_id, text, created in rows:
        assert isinstance(created, int)
        found.append(
            Notice(
                id=MessageID(str(message_id)),
                session_id=session_id,
                text=str(text),
                time_created=created,
            )
        )
    return found


async def remove(tx: Transaction, notice_id: MessageID) -> bool:
    """Remove a notice that is being delivered; returns whether it was pending."""
    return await tx.execute("DELETE FROM session_notice WHERE id = :id", {"id": notice_id}) > 0
