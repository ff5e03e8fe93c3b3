"""The files of staged reverts: operational state, ahead of the disk.

Where a file is to be moved is written down before it is moved, together with who moves it. When all
are there, the rows say so in the transaction of the event that tells it. A process that dies in
between leaves rows on their way, and any other can take those files back.
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
    """A file that somebody began to move."""

    root: str
    path: str
    origin: FileState
    """What it was moved from."""
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
    """All are where they were to go."""
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
    """All are back where they came from."""
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


async def staged(tx: Transaction, session_id: SessionID) -> list[StagedFile]:
    rows = await tx.fetch(
        "SELECT root, path, base, staged FROM session_revert_file"
        " WHERE session_id = :id AND staged IS NOT NULL ORDER BY path",
        {"id": session_id},
    )
    return [_staged(row) for row in rows]


async def on_their_way(tx: Transaction, session_id: SessionID) -> list[RevertInProgress]:
    rows = await tx.fetch(
        "SELECT root, path, COALESCE(staged, base), next FROM session_revert_file"
        " WHERE session_id = :id AND next IS NOT NULL ORDER BY path",
        {"id": session_id},
    )
    return [_on_its_way(row) for row in rows]


async def begun(tx: Transaction) -> list[tuple[SessionID, str]]:
    """Sessions with files on their way, and the processes that move them."""
    rows = await tx.fetch(
        "SELECT DISTINCT session_id, process FROM session_revert_file WHERE next IS NOT NULL"
    )
    return [(SessionID(str(session_id)), str(process)) for session_id, process in rows]


async def digests(tx: Transaction) -> set[str]:
    """Every content that a revert may want back."""
    found: set[str] = set()
    for row in await tx.fetch("SELECT base, staged, next FROM session_revert_file"):
        found |= {file_state.decode(str(text)).digest for text in row if text is not None}
    return found


def _staged(row: Row) -> StagedFile:
    root, path, base, left = (str(value) for value in row)
    return StagedFile(
        root=root, path=path, base=file_state.decode(base), staged=file_state.decode(left)
    )


def _on_its_way(row: Row) -> RevertInProgress:
    root, path, origin, to = (str(value) for value in row)
    return RevertInProgress(
        root=root, path=path, origin=file_state.decode(origin), next=file_state.decode(to)
    )
