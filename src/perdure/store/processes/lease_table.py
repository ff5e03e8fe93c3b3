"""Leases: which process may run a Session, checked in the transaction of each append of a run.

A lease stays with its process until that closes or dies, so a busy Session costs no lease writes.
A dead process's lease is free at once. `generation` grows whenever the lease changes its process:
what was cached under an older one is stale.
"""

from collections.abc import Callable
from typing import Final

from perdure.ports import Transaction
from perdure.schema.ids import SessionID
from perdure.schema.value import Value

RELEASED: Final = ""
"""Stored in place of a process: the lease was released and is free."""


class LeaseHeldError(Exception):
    """Another living process runs this Session."""

    def __init__(self, session_id: SessionID, process: str) -> None:
        super().__init__(f"session {session_id} is run by process {process}")
        self.session_id = session_id
        self.process = process


class Lease(Value):
    process: str
    generation: int


async def hold(
    tx: Transaction, session_id: SessionID, *, process: str, alive: Callable[[str], bool]
) -> Lease:
    """Take or confirm the lease. Raises LeaseHeldError while another living process has it."""
    found = await get(tx, session_id)
    if found is not None and found.process == process:
        return found
    if found is not None and found.process != RELEASED and alive(found.process):
        raise LeaseHeldError(session_id, found.process)
    generation = 1 if found is None else found.generation + 1
    await tx.execute(
        "INSERT INTO session_lease (session_id, process, generation)"
        " VALUES (:session_id, :process, :generation)"
        " ON CONFLICT (session_id) DO UPDATE SET"
        " process = excluded.process, generation = excluded.generation",
        {"session_id": session_id, "process": process, "generation": generation},
    )
    return Lease(process, generation)


async def get(tx: Transaction, session_id: SessionID) -> Lease | None:
    rows = await tx.fetch(
        "SELECT process, generation FROM session_lease WHERE session_id = :id", {"id": session_id}
    )
    if not rows:
        return None
    process, generation = rows[0]
    assert isinstance(generation, int)
    return Lease(str(process), generation)


async def list_processes(tx: Transaction) -> list[str]:
    """Every process that holds a lease, dead or alive."""
    rows = await tx.fetch("SELECT DISTINCT process FROM session_lease WHERE process <> ''")
    return [str(row[0]) for row in rows]


async def list_sessions(tx: Transaction, process: str) -> list[SessionID]:
    rows = await tx.fetch(
        "SELECT session_id FROM session_lease WHERE process = :process", {"process": process}
    )
    return [SessionID(str(row[0])) for row in rows]


async def release_all(tx: Transaction, process: str) -> None:
    # The row stays, so that the generation keeps growing.
    await tx.execute(
        "UPDATE session_lease SET process = :released WHERE process = :process",
        {"released": RELEASED, "process": process},
    )
