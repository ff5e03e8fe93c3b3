"""The `todo` projection: which event holds a Session's list now.

A list is in the log already, so a row holds only its place there, and the message that wrote it: a
revert that takes the message away brings the list of before back.
"""

from perdure.ports import Transaction
from perdure.schema.errors import DamagedRowError
from perdure.schema.ids import Seq, SessionID
from perdure.schema.session.event import TodosUpdated
from perdure.schema.session.todo import Todos
from perdure.store.tables import row_checks


async def insert(tx: Transaction, event: TodosUpdated, *, seq: Seq) -> None:
    await tx.execute(
        "INSERT INTO todo (session_id, seq, message_id) VALUES (:session_id, :seq, :message_id)",
        {"session_id": event.session_id, "seq": seq, "message_id": event.assistant_message_id},
    )


async def of(tx: Transaction, session_id: SessionID) -> Todos:
    """The list as it was last written; empty when it never was."""
    rows = await tx.fetch(
        "SELECT t.seq, e.type, e.data FROM todo AS t"
        " LEFT JOIN event AS e ON e.session_id = t.session_id AND e.seq = t.seq"
        " WHERE t.session_id = :id ORDER BY t.seq DESC LIMIT 1",
        {"id": session_id},
    )
    if not rows:
        return ()
    seq, stored, data = rows[0]
    assert isinstance(seq, int)
    event = None if data is None else row_checks.event(stored, data, session_id, seq=seq)
    if not isinstance(event, TodosUpdated):
        reason = "it names no event with a list"
        raise DamagedRowError(session_id, table="todo", seq=seq, reason=reason)
    return event.todos


async def delete_unwritten(tx: Transaction, session_id: SessionID) -> None:
    """Forget the lists whose message is no longer there."""
    await tx.execute(
        "DELETE FROM todo WHERE session_id = :id AND NOT EXISTS"
        " (SELECT 1 FROM session_message AS m WHERE m.id = todo.message_id)",
        {"id": session_id},
    )
