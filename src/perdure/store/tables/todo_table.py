"""The `todo` projection: which event holds the current todo list of a Session.

A list is in the log already, so a row holds only its sequence, and the message that wrote it: a
revert that removes the message brings the earlier list back.
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


async def load_todos(tx: Transaction, session_id: SessionID) -> Todos:
    """The current list; empty when none was written."""
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
    event = None if data is None else row_checks.decode_event(stored, data, session_id, seq=seq)
    if not isinstance(event, TodosUpdated):
        reason = "it names no event with a todo list"
        raise DamagedRowError(session_id, table="todo", seq=seq, reason=reason)
    return event.todos


async def delete_without_message(tx: Transaction, session_id: SessionID) -> None:
    """Delete the lists whose message no longer exists."""
    await tx.execute(
        "DELETE FROM todo WHERE session_id = :id AND NOT EXISTS"
        " (SELECT 1 FROM session_message AS m WHERE m.id = todo.message_id)",
        {"id": session_id},
    )
