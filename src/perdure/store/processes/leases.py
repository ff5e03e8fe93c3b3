"""Who runs which Session, as this process sees it: leases taken, confirmed, given back.

The rows and what they mean are store.processes.lease_table. Every append on a run's behalf confirms
its lease in the same transaction.
"""

from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

from perdure.ports import Database, Processes, Transaction
from perdure.schema.ids import SessionID
from perdure.store.processes import lease_table, process_table
from perdure.store.processes.lease_table import Lease

T = TypeVar("T")

Holder = Literal["nobody", "me", "other", "dead"]
"""Of a lease: this process, another one that lives, or one that died with it."""


class Leases:
    def __init__(self, database: Database, processes: Processes) -> None:
        self._database = database
        self._processes = processes

    async def hold_within(self, tx: Transaction, session_id: SessionID) -> Lease:
        """Take or confirm the lease in a transaction that depends on it."""
        processes = self._processes
        return await lease_table.hold(tx, session_id, process=processes.me, alive=processes.alive)

    async def announce(self, tx: Transaction) -> None:
        """This process takes something upon itself: others see to it should it die."""
        await process_table.announce(tx, self._processes.me)

    async def take_over(
        self, session_id: SessionID, look: Callable[[Transaction, Lease | None], Awaitable[T]]
    ) -> tuple[Lease | None, T]:
        """Take or confirm the lease; the one that was there before.

        `look` is at what it left, in the same commit: what cannot be looked at is not taken over.
        It is told whose the lease was.
        """

        async def job(tx: Transaction) -> tuple[Lease | None, T]:
            before = await lease_table.get(tx, session_id)
            await self.announce(tx)
            await self.hold_within(tx, session_id)
            return before, await look(tx, before)

        return await self._database.write(job)

    def is_anothers(self, lease: Lease | None) -> bool:
        """Whether another process had it and did not give it back."""
        return lease is not None and lease.process not in self._mine

    def is_mine(self, lease: Lease | None) -> bool:
        return lease is not None and lease.process == self._processes.me

    async def write_running(
        self, session_id: SessionID, job: Callable[[Transaction], Awaitable[None]]
    ) -> None:
        """Operational state on a run's behalf, without an event; fenced by lease as `append` is."""

        async def fenced(tx: Transaction) -> None:
            await self.hold_within(tx, session_id)
            await job(tx)

        await self._database.write(fenced)

    async def left_behind(self) -> list[SessionID]:
        """Every Session whose lease belongs to a process that died with it."""

        async def job(tx: Transaction) -> list[SessionID]:
            held = await lease_table.processes(tx)
            dead = [process for process in held if self._is_dead(process)]
            return [found for process in dead for found in await lease_table.of(tx, process)]

        return await self._database.read(job)

    def _is_dead(self, process: str) -> bool:
        return bool(process) and not self._processes.alive(process)

    async def runs_elsewhere(self, tx: Transaction, session_id: SessionID) -> bool:
        """Whether another living process has the lease, as seen by `tx`."""
        return await self.holder(tx, session_id) == "other"

    async def holder(self, tx: Transaction, session_id: SessionID) -> Holder:
        """Who has the lease, as seen by `tx`."""
        lease = await lease_table.get(tx, session_id)
        if lease is None or lease.process == lease_table.RELEASED:
            return "nobody"
        if self.is_mine(lease):
            return "me"
        return "other" if self._processes.alive(lease.process) else "dead"

    @property
    def _mine(self) -> tuple[str, str]:
        """In the place of a process: what this one may take without asking who is alive."""
        return lease_table.RELEASED, self._processes.me

    async def release_all(self) -> None:
        await self._database.write(lambda tx: lease_table.release_all(tx, self._processes.me))
