"""Leases of this process: take, confirm, release, and see who holds the others.

The rows are in store.processes.lease_table. Every append on a run's behalf confirms its lease in
the same transaction.
"""

from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

from perdure.ports import Database, Processes, Transaction
from perdure.schema.ids import SessionID
from perdure.store.processes import lease_table, process_table
from perdure.store.processes.lease_table import Lease, LeaseHeldError

T = TypeVar("T")

Holder = Literal["free", "me", "other", "dead"]
"""Who has a lease: no process, this one, another living one, or a dead one."""


IsRunning = Callable[[Transaction, SessionID], Awaitable[bool]]
"""Whether the Session has the mark of a run (store.tables.attempt_table)."""


class Leases:
    def __init__(self, database: Database, processes: Processes, *, is_running: IsRunning) -> None:
        self._database = database
        self._processes = processes
        self._is_running = is_running

    async def hold_within(self, tx: Transaction, session_id: SessionID) -> Lease:
        """Take or confirm the lease in a transaction that depends on it.

        The lease of a silent process is taken if the Session does not run there: nothing of it can
        have an effect, and what the process writes when it goes on is refused.
        """
        processes = self._processes
        try:
            return await lease_table.hold(
                tx, session_id, process=processes.me, alive=processes.alive
            )
        except LeaseHeldError as held:
            holder = held.process
            if holder not in processes.silent() or await self._is_running(tx, session_id):
                raise
        return await lease_table.hold(
            tx, session_id, process=processes.me, alive=lambda process: process != holder
        )

    async def register_process(self, tx: Transaction) -> None:
        """Record that this process claims work, so that others take it over if it dies."""
        await process_table.register(tx, self._processes.me)

    async def take_over(
        self, session_id: SessionID, inspect: Callable[[Transaction, Lease | None], Awaitable[T]]
    ) -> tuple[Lease | None, T]:
        """Take or confirm the lease; returns the previous lease and the result of `inspect`.

        `inspect` gets the previous lease and reads the Session in the same transaction: if it
        fails, the lease is not taken.
        """

        async def job(tx: Transaction) -> tuple[Lease | None, T]:
            before = await lease_table.get(tx, session_id)
            await self.register_process(tx)
            await self.hold_within(tx, session_id)
            return before, await inspect(tx, before)

        return await self._database.write(job)

    def is_held_by_other(self, lease: Lease | None) -> bool:
        """Whether the lease is another process's, living or dead, and not released."""
        return lease is not None and lease.process not in self._free_or_mine

    def is_dead(self, lease: Lease | None) -> bool:
        """Whether the lease is that of a dead process."""
        return lease is not None and self._is_dead(lease.process)

    def is_mine(self, lease: Lease | None) -> bool:
        return lease is not None and lease.process == self._processes.me

    async def write_running(
        self, session_id: SessionID, job: Callable[[Transaction], Awaitable[None]]
    ) -> None:
        """Write operational state on a run's behalf, without an event; fenced by lease."""

        async def fenced(tx: Transaction) -> None:
            await self.hold_within(tx, session_id)
            await job(tx)

        await self._database.write(fenced)

    async def list_orphaned(self) -> list[SessionID]:
        """Every Session whose lease belongs to a dead process."""

        async def job(tx: Transaction) -> list[SessionID]:
            held = await lease_table.list_processes(tx)
            dead = [process for process in held if self._is_dead(process)]
            return [
                found for process in dead for found in await lease_table.list_sessions(tx, process)
            ]

        return await self._database.read(job)

    def _is_dead(self, process: str) -> bool:
        return bool(process) and not self._processes.alive(process)

    async def silent_holder(self, tx: Transaction, session_id: SessionID) -> str | None:
        """The process that has the lease and does not respond, in words; None if there is none."""
        lease = await lease_table.get(tx, session_id)
        return None if lease is None else self._processes.silent().get(lease.process)

    async def runs_elsewhere(self, tx: Transaction, session_id: SessionID) -> bool:
        """Whether another living process has the lease, as seen by `tx`."""
        return await self.holder(tx, session_id) == "other"

    async def holder(self, tx: Transaction, session_id: SessionID) -> Holder:
        """Who has the lease, as seen by `tx`."""
        lease = await lease_table.get(tx, session_id)
        if lease is None or lease.process == lease_table.RELEASED:
            return "free"
        if self.is_mine(lease):
            return "me"
        return "other" if self._processes.alive(lease.process) else "dead"

    @property
    def _free_or_mine(self) -> tuple[str, str]:
        """Values of `Lease.process` that this process need not check for life."""
        return lease_table.RELEASED, self._processes.me

    async def release_all(self) -> None:
        await self._database.write(lambda tx: lease_table.release_all(tx, self._processes.me))
