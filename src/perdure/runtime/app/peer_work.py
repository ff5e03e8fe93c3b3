"""Work that arrives from other processes on the same store, and work that dead processes left.

Each method first asks the store whether there is any, so that a process without such work never
loads the engine.
"""

from perdure.ports import Database, Processes
from perdure.runtime.app.lazy_engine import LazyEngine
from perdure.schema.ids import SessionID
from perdure.store.log.event_store import EventStore
from perdure.store.tables import attempt_table, job_table, revert_table, task_table


class PeerWork:
    """Implements coordination.process_monitor.PeerRequests."""

    def __init__(
        self,
        store: EventStore,
        processes: Processes,
        *,
        engine: LazyEngine,
    ) -> None:
        self._store = store
        self._database: Database = store.database
        self._processes = processes
        self._engine = engine

    async def deliver(self) -> None:
        """Deliver replies that the user gave through another process."""
        await self._engine.deliver_replies()

    async def adopt_jobs(self) -> None:
        """Monitor the background jobs that dead processes monitored."""
        if await self._database.read(job_table.list_running):
            await self._engine.get().jobs.adopt()

    async def restore_files(self) -> None:
        """Undo the file reverts that dead processes did not finish."""
        if await self._database.read(revert_table.list_sessions_in_progress):
            await self._engine.get().file_reverts.restore_interrupted()

    async def unfinished(self) -> list[SessionID]:
        """Return the Sessions whose run or whose subagent report a dead process left open."""
        me, alive = self._processes.me, self._processes.alive
        unreported = await self._database.read(
            lambda tx: task_table.list_undelivered(tx, process=me, alive=alive)
        )
        if not (
            await self._store.leases.list_orphaned()
            or await self._database.read(attempt_table.list_sessions)
        ):
            return unreported
        return [*await self._engine.get().ownership.unfinished(), *unreported]
