"""Access to the engine, which is loaded and built on first use.

Loading it takes longer than everything else at start, and a process that only reads or admits
prompts never needs it. `get` holds the only import of the engine.
"""

from collections.abc import Collection, Coroutine
from typing import TYPE_CHECKING, Any

from perdure.host import data_directory
from perdure.host.process import orphans
from perdure.runtime.app.engine_deps import EngineDeps
from perdure.schema.ids import SessionID
from perdure.schema.session.recovery import WaitReason
from perdure.store.tables import job_table

if TYPE_CHECKING:
    from perdure.runtime.app.engine import Engine


class LazyEngine:
    """Builds the engine on first use.

    The engine needs the coordinator and the Sessions, and both need the engine, so they take this
    object, and `connect` hands it the engine's dependencies afterwards.
    """

    def __init__(self) -> None:
        self._deps: EngineDeps | None = None
        self._engine: Engine | None = None

    def connect(self, deps: EngineDeps) -> None:
        self._deps = deps

    def get(self) -> "Engine":
        """Return the engine, the same at each call."""
        if self._engine is None:
            from perdure.runtime.app.engine import Engine

            assert self._deps is not None, "connect comes before the first use"
            self._engine = Engine(self._deps)
        return self._engine

    def drain(self, session_id: SessionID) -> Coroutine[Any, Any, None]:
        """Run a Session until nothing is pending."""
        return self.get().drain.run(session_id)

    def wait_reason(self, session_id: SessionID) -> WaitReason | None:
        """Return why a Session waits for a decision after a crash, if it does."""
        return None if self._engine is None else self._engine.crash_recovery.waits(session_id)

    async def deliver_replies(self) -> None:
        """Deliver replies that the user gave through another process to the runs of this one."""
        if self._engine is not None:
            await self._engine.deliver_replies()

    def suspend_requests(self) -> frozenset[SessionID]:
        """Leave what waits for a person to the next process; return the Sessions that wait."""
        return frozenset() if self._engine is None else self._engine.suspend_requests()

    async def discard_output(self, path: str) -> None:
        """Remove a file of tool output."""
        await self.get().outputs.discard(path)

    async def discard_contents(self, digests: Collection[str]) -> None:
        """Remove contents of files that only a deleted Session needed."""
        if digests:
            await self.get().snapshots.discard(digests)

    async def forget_servers(self, session_id: SessionID) -> None:
        """End the MCP servers of a Session; where it has none, the engine is not loaded."""
        deps = self._deps
        assert deps is not None
        if data_directory.has_session_servers(deps.settings.data_dir, session_id):
            self.get().session_servers.forget(session_id)

    async def end_jobs(self, session_id: SessionID) -> None:
        """End the background jobs of a Session; without any, the engine is not loaded."""
        deps = self._deps
        assert deps is not None
        if await deps.platform.database.read(
            lambda tx: job_table.list_for_session(tx, session_id, limit=1)
        ):
            await self.get().jobs.end_all(session_id)

    async def end_orphans(self) -> None:
        """End what dead processes left running; without any, the engine is not loaded."""
        deps = self._deps
        assert deps is not None
        directory = deps.platform.children_directory
        if directory is None:
            return
        for process in orphans.list_processes(directory):
            if not deps.platform.processes.alive(process):
                await self.get().children.end_orphans(process)

    async def aclose(self) -> None:
        if self._engine is not None:
            await self._engine.aclose()
