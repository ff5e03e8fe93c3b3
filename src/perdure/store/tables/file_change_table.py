"""File changes made by the steps of a Session, in order: operational state.

A row is written before its change is made, so no change is without a row. A revert that removes
the message of the step removes the row too.
"""

from typing import Final

from perdure.core.files import file_state
from perdure.core.files.revert import FileChange
from perdure.ports import Row, Transaction
from perdure.schema.ids import MessageID, Seq, SessionID

_INSERT: Final = """
    INSERT INTO session_file_change
        (session_id, message_id, root, path, before, after, snapshot)
    VALUES (:session_id, :message_id, :root, :path, :before, :after, :snapshot)
"""
_AFTER: Final = """
    SELECT c.root, c.path, c.before, c.after FROM session_file_change AS c
    JOIN session_message AS m ON m.id = c.message_id
    WHERE c.session_id = :id AND m.seq > :seq ORDER BY c.number
"""


_BETWEEN: Final = """
    SELECT c.root, c.path, c.before, c.after FROM session_file_change AS c
    JOIN session_message AS m ON m.id = c.message_id
    WHERE c.session_id = :id AND m.seq BETWEEN :first AND :last ORDER BY c.number
"""
_LAST_SEQ: Final = 2**62


async def insert(
    tx: Transaction,
    session_id: SessionID,
    message_id: MessageID,
    change: FileChange,
    *,
    snapshot: str,
) -> int:
    """Insert a row; returns its number."""
    await tx.execute(
        _INSERT,
        {
            "session_id": session_id,
            "message_id": message_id,
            "root": change.root,
            "path": change.path,
            "before": file_state.encode(change.before),
            "after": file_state.encode(change.after),
            "snapshot": snapshot,
        },
    )
    ((number,),) = await tx.fetch("SELECT last_insert_rowid()")
    assert isinstance(number, int)
    return number


async def remove(tx: Transaction, number: int) -> None:
    """Remove the row of a change that was not made."""
    await tx.execute("DELETE FROM session_file_change WHERE number = :n", {"n": number})


async def latest_snapshot(tx: Transaction, session_id: SessionID) -> str | None:
    """The snapshot that covers all changes so far; None before the first."""
    rows = await tx.fetch(
        "SELECT snapshot FROM session_file_change WHERE session_id = :id"
        " ORDER BY number DESC LIMIT 1",
        {"id": session_id},
    )
    return str(rows[0][0]) if rows else None


async def list_after(tx: Transaction, session_id: SessionID, seq: Seq) -> list[FileChange]:
    """Changes made by steps that began after `seq`, in order."""
    rows = await tx.fetch(_AFTER, {"id": session_id, "seq": seq})
    return [_change(row) for row in rows]


async def list_between(
    tx: Transaction, session_id: SessionID, first: Seq | None, last: Seq | None
) -> list[FileChange]:
    """Changes made by messages of these sequences, both included, in order; None is unbounded."""
    bounds = {"first": 0 if first is None else first, "last": _LAST_SEQ if last is None else last}
    rows = await tx.fetch(_BETWEEN, {"id": session_id, **bounds})
    return [_change(row) for row in rows]


async def list_of_step(
    tx: Transaction, session_id: SessionID, message_id: MessageID
) -> list[FileChange]:
    """Changes that one step made, or was about to make, in order."""
    rows = await tx.fetch(
        "SELECT root, path, before, after FROM session_file_change"
        " WHERE session_id = :id AND message_id = :message ORDER BY number",
        {"id": session_id, "message": message_id},
    )
    return [_change(row) for row in rows]


async def delete_without_message(tx: Transaction, session_id: SessionID) -> None:
    """Delete the changes whose message no longer exists."""
    await tx.execute(
        "DELETE FROM session_file_change WHERE session_id = :id AND NOT EXISTS"
        " (SELECT 1 FROM session_message AS m WHERE m.id = session_file_change.message_id)",
        {"id": session_id},
    )


async def list_digests(tx: Transaction) -> set[str]:
    """Digests of every content that a Session may restore."""
    rows = await tx.fetch("SELECT DISTINCT before FROM session_file_change")
    rows = [*rows, *await tx.fetch("SELECT DISTINCT after FROM session_file_change")]
    return {file_state.decode(str(row[0])).digest for row in rows}


async def list_digests_of(tx: Transaction, session_id: SessionID) -> set[str]:
    """Digests of the contents that the changes of one Session name."""
    rows = await tx.fetch(
        "SELECT before, after FROM session_file_change WHERE session_id = :id", {"id": session_id}
    )
    return {file_state.decode(str(text)).digest for row in rows for text in row}


def _change(row: Row) -> FileChange:
    root, path, before, later = (str(value) for value in row)
    return FileChange(
        root=root, path=path, before=file_state.decode(before), after=file_state.decode(later)
    )
