"""Work that arrives from other processes on the same store, and work that dead processes left.

Each method first asks the store whether there is any, so that a process without such work never
loads the engine.
"""

from perdure.ports import Database, Processes, Transaction
from perdure.runtime.app.lazy_engine import LazyEngine
from perdure.runtime.coordination.process_monitor import Unfinished
from perdure.runtime.coordination.resumption import Resumption
from perdure.runtime.coordination.session_activity import SessionActivity
from perdure.runtime.live_hub import LiveHub
from perdure.schema.ids import SessionID
from perdure.schema.live_event import StatusChanged
from perdure.schema.session.status import SessionBusy, SessionIdle, SessionStatus
from perdure.store.log.event_store import EventStore
from perdure.store.tables import attempt_table, job_table, revert_table, task_table


class PeerWork:
    """Implements coordination.process_monitor.PeerRequests."""

    def __init__(
        self,
        store: EventStore,
        hub: LiveHub,
        processes: Processes,
        *,
        activity: SessionActivity,
        engine: LazyEngine,
        resumption: Resumption,
    ) -> None:
        self._resumption = resumption
        self._store = store
        self._database: Database = store.database
        self._hub = hub
        self._processes = processes
        self._activity = activity
        self._engine = engine
        self._elsewhere = frozenset[SessionID]()
        """Sessions that other processes run, as published."""

    async def deliver(self) -> None:
        """Deliver replies that the user gave through another process."""
        await self._engine.deliver_replies()

    async def end_orphans(self) -> None:
        """End the commands, terminals and language servers that dead processes left running."""
        if self._resumption.scope == "none":
            return
        await self._engine.end_orphans()

    async def adopt_jobs(self) -> None:
        """Monitor the background jobs that dead processes monitored, of Sessions resumed here."""
        running = await self._database.read(job_table.list_running)
        sessions = await self.select_resumed([job.session_id for job in running])
        if sessions:
            await self._engine.get().jobs.adopt(frozenset(sessions))

    async def restore_files(self) -> None:
        """Undo the file reverts that dead processes did not finish."""
        if await self._database.read(revert_table.list_sessions_in_progress):
            await self._engine.get().file_reverts.restore_interrupted()

    async def list_free(self, sessions: list[SessionID]) -> list[SessionID]:
        """Those to resume of `sessions` that no other living process has: it runs them itself."""
        leases = self._store.leases

        async def job(tx: Transaction) -> list[SessionID]:
            return [found for found in sessions if not await leases.runs_elsewhere(tx, found)]

        return await self.select_resumed(await self._database.read(job))

    async def select_resumed(self, sessions: list[SessionID]) -> list[SessionID]:
        """Those of `sessions` that this process runs without being asked."""
        if not sessions:
            return []
        return await self._database.read(lambda tx: self._resumption.select(tx, sessions))

    async def publish_status(self) -> None:
        """Publish which Sessions other processes have begun or ceased to run."""
        running = await self._database.read(self._activity.list_elsewhere)
        before, self._elsewhere = self._elsewhere, frozenset(running)
        for session_id in sorted(self._elsewhere - before):
            self._publish(session_id, SessionBusy())
        for session_id in sorted(before - self._elsewhere):
            if not self._activity.runs_here(session_id):
                self._publish(session_id, SessionIdle())

    def _publish(self, session_id: SessionID, status: SessionStatus) -> None:
        self._hub.publish(StatusChanged(session_id=session_id, status=status), None)

    async def list_unfinished(self) -> Unfinished:
        """The Sessions whose run or whose subagent report a dead process left open."""
        if self._resumption.scope == "none":
            return Unfinished([], leaves=True)
        found = await self._find_unfinished()
        resumed = await self.select_resumed(found)
        return Unfinished(resumed, leaves=len(resumed) < len(found))

    async def _find_unfinished(self) -> list[SessionID]:
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
