"""The engine, once it has been needed: loading it costs more than everything before it."""

from importlib import import_module
from typing import TYPE_CHECKING, cast

from perdure.runtime.app.parts import EngineDeps
from perdure.runtime.human import pending
from perdure.schema.ids import SessionID
from perdure.schema.session.recovery import WaitReason
from perdure.store.tables import attempt_table, job_table, revert_table, task_table

if TYPE_CHECKING:
    from perdure.runtime.app.engine import Engine


class LazyEngine:
    """Holds the engine once it has been needed."""

    parts: EngineDeps

    def __init__(self) -> None:
        self._engine: Engine | None = None

    def get(self) -> "Engine":
        if self._engine is None:
            module = import_module("perdure.runtime.app.engine")
            self._engine = cast("Engine", module.Engine(self.parts))
        return self._engine

    async def drain(self, session_id: SessionID, force: bool) -> None:
        await self.get().drain(session_id, force)

    async def unfinished(self) -> list[SessionID]:
        """Sessions that a dead process left in the middle of something, or with it unsaid."""
        store, processes = self.parts.store, self.parts.on.processes
        unheard = await store.database.read(
            lambda tx: task_table.list_undelivered(tx, process=processes.me, alive=processes.alive)
        )
        if not (
            await store.leases.list_orphaned()
            or await store.database.read(attempt_table.list_sessions)
        ):
            return unheard
        return [*await self.get().runs.ownership.unfinished(), *unheard]

    def waits(self, session_id: SessionID) -> WaitReason | None:
        """Why a Session was left to a person; nobody can have been without an engine."""
        return None if self._engine is None else self._engine.runs.recoveries.waits(session_id)

    async def deliver(self) -> None:
        """Only who has run something can have asked somebody."""
        if self._engine is not None:
            await self._engine.deliver()

    async def reject_orphans(self) -> None:
        """What dead processes waited for, for all to see."""
        await pending.reject_orphans(self.parts.pending, self.parts.hub)

    async def adopt_jobs(self) -> None:
        """Background jobs that dead processes watched; where there are none, nothing is loaded."""
        if await self.parts.on.database.read(job_table.list_running):
            await self.get().side_work.jobs.adopt()

    async def end_jobs(self, session_id: SessionID) -> None:
        """Those of a Session that is going to be deleted."""
        if await self.parts.on.database.read(
            lambda tx: job_table.list_for_session(tx, session_id, limit=1)
        ):
            await self.get().side_work.jobs.end_all(session_id)

    async def take_back_reverts(self) -> None:
        """Files that dead processes were moving."""
        if await self.parts.on.database.read(revert_table.list_sessions_in_progress):
            await self.get().reverted_files.take_back_left()

    async def aclose(self) -> None:
        if self._engine is not None:
            await self._engine.aclose()
