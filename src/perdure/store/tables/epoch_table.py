"""The Context Epoch of each Session: exact baseline text, its sequence, and the snapshot."""

from typing import Final

from perdure.core.context.system_context import ContextEpoch
from perdure.ports import Transaction
from perdure.schema.ids import Seq, SessionID

_PUT: Final = """
    INSERT INTO session_context_epoch (session_id, baseline, baseline_seq, snapshot)
    VALUES (:session_id, :baseline, :baseline_seq, :snapshot)
    ON CONFLICT (session_id) DO UPDATE SET
        baseline = excluded.baseline,
        baseline_seq = excluded.baseline_seq,
        snapshot = excluded.snapshot
"""


async def get(tx: Transaction, session_id: SessionID) -> ContextEpoch | None:
    rows = await tx.fetch(
        "SELECT baseline, baseline_seq, snapshot FROM session_context_epoch WHERE session_id = :id",
        {"id": session_id},
    )
    if not rows:
        return None
    baseline, baseline_seq, snapshot = rows[0]
    assert isinstance(baseline_seq, int)
    return ContextEpoch(
        baseline=str(baseline), baseline_seq=Seq(baseline_seq), snapshot=str(snapshot)
    )


async def put(tx: Transaction, session_id: SessionID, epoch: ContextEpoch) -> None:
    await tx.execute(
        _PUT,
        {
            "session_id": session_id,
            "baseline": epoch.baseline,
            "baseline_seq": epoch.baseline_seq,
            "snapshot": epoch.snapshot,
        },
    )


async def clear(tx: Transaction, session_id: SessionID) -> None:
    await tx.execute("DELETE FROM session_context_epoch WHERE session_id = :id", {"id": session_id})
