"""Processes that claimed work (a prompt to run, a lease), so that others can take it over.

Operational state. A process registers in the transaction of its first claim and never removes
itself: the process that finds it dead takes over its work and then removes it. So a process that
started and died between two checks is not missed.

Invariant: a process is registered no later than its first claim is committed.
"""

from collections.abc import Callable, Iterable

from perdure.ports import Transaction


async def register(tx: Transaction, process: str) -> None:
    await tx.execute("INSERT OR IGNORE INTO process (name) VALUES (:name)", {"name": process})


async def list_dead(tx: Transaction, alive: Callable[[str], bool]) -> list[str]:
    """Dead processes whose work has not been taken over."""
    rows = await tx.fetch("SELECT name FROM process ORDER BY name")
    return [process for process in (str(row[0]) for row in rows) if not alive(process)]


async def remove(tx: Transaction, processes: Iterable[str]) -> None:
    for process in processes:
        await tx.execute("DELETE FROM process WHERE name = :name", {"name": process})
