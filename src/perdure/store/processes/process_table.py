"""Processes that took something upon themselves: a prompt to run, a lease.

Operational state. A process puts its name in the transaction in which it first does so, and never
takes it out: whoever finds it dead sees to what it left and forgets it then. So one that came and
died between two looks of the others is not missed.

Invariant: what a process owes is committed no earlier than its name.
"""

from collections.abc import Callable, Iterable

from perdure.ports import Transaction


async def announce(tx: Transaction, process: str) -> None:
    await tx.execute("INSERT OR IGNORE INTO process (name) VALUES (:name)", {"name": process})


async def gone(tx: Transaction, alive: Callable[[str], bool]) -> list[str]:
    """Those that are dead, and whom nobody has seen to."""
    rows = await tx.fetch("SELECT name FROM process ORDER BY name")
    return [process for process in (str(row[0]) for row in rows) if not alive(process)]


async def forget(tx: Transaction, processes: Iterable[str]) -> None:
    for process in processes:
        await tx.execute("DELETE FROM process WHERE name = :name", {"name": process})
