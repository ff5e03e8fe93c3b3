"""The files of staged reverts: operational state, written ahead of the disk.

The state that a file will get is recorded before the file changes, with the process that changes
it. When all files are written, the rows become staged in the transaction of the revert's event. If
a process dies in between, another one finds the rows in progress and restores those files.
"""

from collections.abc import Sequence
from typing import Final

from perdure.core.files import file_state
from perdure.core.files.file_state import FileState
from perdure.core.files.revert import Move, StagedFile
from perdure.ports import Row, Transaction
from perdure.schema.ids import SessionID
from perdure.schema.value import Value

_BEGIN: Final = """
    INSERT INTO session_revert_file (session_id, path, root, base, next, process)
    VALUES (:session_id, :path, :root, :base, :next, :process)
    ON CONFLICT (session_id, path) DO UPDATE SET next = excluded.next, process = excluded.process
"""


class RevertInProgress(Value, kw_only=True):
    """A file whose change was begun and not finished."""

    root: str
    path: str
    origin: FileState
    """Its state before the change."""
    next: FileState


async def begin(
    tx: Transaction, session_id: SessionID, moves: Sequence[Move], *, process: str
) -> None:
    for move in moves:
        await tx.execute(
            _BEGIN,
            {
                "session_id": session_id,
                "path": move.path,
                "root": move.root,
                "base": file_state.encode(move.base),
                "next": file_state.encode(move.wanted),
                "process": process,
            },
        )


async def finish(tx: Transaction, session_id: SessionID) -> None:
    """Mark all files in progress as staged."""
    await tx.execute(
        "DELETE FROM session_revert_file WHERE session_id = :id AND next = base",
        {"id": session_id},
    )
    await tx.execute(
        "UPDATE session_revert_file SET staged = next, next = NULL, process = NULL"
        " WHERE session_id = :id AND next IS NOT NULL",
        {"id": session_id},
    )


async def abandon(tx: Transaction, session_id: SessionID) -> None:
    """Undo `begin`: all files in progress have their earlier state again."""
    await tx.execute(
        "DELETE FROM session_revert_file WHERE session_id = :id AND staged IS NULL",
        {"id": session_id},
    )
    await tx.execute(
        "UPDATE session_revert_file SET next = NULL, process = NULL WHERE session_id = :id",
        {"id": session_id},
    )


async def clear(tx: Transaction, session_id: SessionID) -> None:
    await tx.execute("DELETE FROM session_revert_file WHERE session_id = :id", {"id": session_id})


async def list_staged(tx: Transaction, session_id: SessionID) -> list[StagedFile]:
    rows = await tx.fetch(
        "SELECT root, path, base, staged FROM session_revert_file"
        " WHERE session_id = :id AND staged IS NOT NULL ORDER BY path",
        {"id": session_id},
    )
    return [_staged(row) for row in rows]


async def list_in_progress(tx: Transaction, session_id: SessionID) -> list[RevertInProgress]:
    rows = await tx.fetch(
        "SELECT root, path, COALESCE(staged, base), next FROM session_revert_file"
        " WHERE session_id = :id AND next IS NOT NULL ORDER BY path",
        {"id": session_id},
    )
    return [_in_progress(row) for row in rows]


async def list_sessions_in_progress(tx: Transaction) -> list[tuple[SessionID, str]]:
    """Sessions with files in progress, and the processes that change them."""
    rows = await tx.fetch(
        "SELECT DISTINCT session_id, process FROM session_revert_file WHERE next IS NOT NULL"
    )
    return [(SessionID(str(session_id)), str(process)) for session_id, process in rows]


async def list_digests(tx: Transaction) -> set[str]:
    """Digests of every content that a revert may restore."""
    found: set[str] = set()
    for row in await tx.fetch("SELECT base, staged, next FROM session_revert_file"):
        found |= {file_state.decode(str(text)).digest for text in row if text is not None}
    return found


async def list_digests_of(tx: Transaction, session_id: SessionID) -> set[str]:
    """Digests of the contents that a revert of one Session names."""
    rows = await tx.fetch(
        "SELECT base, staged, next FROM session_revert_file WHERE session_id = :id",
        {"id": session_id},
    )
    texts = (text for row in rows for text in row if text is not None)
    return {file_state.decode(str(text)).digest for text in texts}


def _staged(row: Row) -> StagedFile:
    root, path, base, staged = (str(value) for value in row)
    return StagedFile(
        root=root, path=path, base=file_state.decode(base), staged=file_state.decode(staged)
    )


def _in_progress(row: Row) -> RevertInProgress:
    root, path, origin, target = (str(value) for value in row)
    return RevertInProgress(
        root=root, path=path, origin=file_state.decode(origin), next=file_state.decode(target)
    )
