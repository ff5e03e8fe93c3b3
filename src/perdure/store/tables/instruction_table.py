"""Instruction files that a Session discovered, kept while it stays in its Location."""

from collections.abc import Iterable

from perdure.core import limits
from perdure.ports import Transaction
from perdure.schema.ids import SessionID


async def add(tx: Transaction, session_id: SessionID, paths: Iterable[str]) -> None:
    """Remember `paths`; those over the limit are not remembered."""
    for path in paths:
        await tx.execute(
            "INSERT INTO session_instruction (session_id, path) SELECT :id, :path"
            " WHERE (SELECT count(*) FROM session_instruction WHERE session_id = :id) < :most"
            " ON CONFLICT DO NOTHING",
            {"id": session_id, "path": path, "most": limits.INSTRUCTIONS_DISCOVERED_MAX},
        )


async def list_paths(tx: Transaction, session_id: SessionID) -> tuple[str, ...]:
    rows = await tx.fetch(
        "SELECT path FROM session_instruction WHERE session_id = :id ORDER BY path",
        {"id": session_id},
    )
    return tuple(str(row[0]) for row in rows)


async def clear(tx: Transaction, session_id: SessionID) -> None:
    await tx.execute("DELETE FROM session_instruction WHERE session_id = :id", {"id": session_id})
