"""Polls the store for what other processes did: new events, requests to this process, deaths.

Polls often while another process is alive and rarely otherwise, so that an idle machine stays idle.
A Session whose process died is taken over here if it has pending work and this process resumes it
(runtime.coordination.resumption). What others ask of this process is answered in any case.
"""

from functools import partial
from typing import Final, Protocol

from perdure.ports import Clock, DatabaseError, Processes, Transaction
from perdure.runtime.coordination.coordinator import RunCoordinator
from perdure.runtime.coordination.session_locations import SessionLocations
from perdure.runtime.database_errors import OutageLog
from perdure.schema.ids import SessionID
from perdure.schema.value import Value
from perdure.store.log.event_store import EventStore
from perdure.store.log.follow import EventFollowers
from perdure.store.processes import interrupt_table, lease_table, process_table, wake_table
from perdure.store.tables import attempt_table

_SECONDS_TOGETHER: Final = 0.05
_SECONDS_ALONE: Final = 1.0


class Unfinished(Value):
    """What dead processes left open."""

    sessions: list[SessionID]
    """Those that this process resumes."""
    leaves: bool
    """Whether there are others, which it leaves to another process."""


class PeerRequests(Protocol):
    """Permissions, questions and jobs of other processes, as this process acts on them."""

    async def deliver(self) -> None: ...
    async def select_resumed(self, sessions: list[SessionID]) -> list[SessionID]: ...
    async def list_unfinished(self) -> Unfinished: ...
    async def publish_status(self) -> None: ...
    async def end_orphans(self) -> None: ...
    async def adopt_jobs(self) -> None: ...


class ProcessMonitor:
    def __init__(
        self,
        store: EventStore,
        tails: EventFollowers,
        coordinator: RunCoordinator,
        *,
        requests: PeerRequests,
        known: SessionLocations,
        processes: Processes,
        clock: Clock,
    ) -> None:
        self._database = store.database
        self._requests = requests
        self._tails = tails
        self._coordinator = coordinator
        self._known = known
        self._processes = processes
        self._clock = clock
        self._marked: set[SessionID] = set()
        """Sessions that run because another process asked; each is marked as running until then."""
        self._outage = OutageLog("looking for changes of other processes")
        """While it lasts, the next poll covers what the failed ones missed."""
        self._silent = frozenset[str]()
        self._left = frozenset[str]()
        """Dead processes that were looked at, and left work that this process does not resume."""

    async def run(self) -> None:
        """Run until cancelled."""
        others = frozenset[str]()
        while True:
            before = others
            try:
                others = self._processes.others()
                await self._poll(before, others)
            except (DatabaseError, OSError) as error:
                # The database, or the data directory, is away or full; it may come back.
                self._outage.log_failure(error)
                others |= before
            await self._clock.sleep(_SECONDS_TOGETHER if others else _SECONDS_ALONE)

    async def _poll(self, before: frozenset[str], others: frozenset[str]) -> None:
        await self._clear_finished_marks()
        changed = await self._database.changed_elsewhere() or self._outage.failing
        gone: list[str] = []
        if changed:
            self._known.clear()
            self._tails.wake_all()
            await self._apply_interrupts()
            await self._answer_wakes()
            await self._requests.deliver()
            await self._requests.publish_status()
            # Also processes that started, wrote and died between two polls.
            dead = await self._database.read(partial(process_table.list_dead, alive=self._alive))
            gone = [process for process in dead if process not in self._left]
        await self._answer_for_silent()
        if before - others or gone or (changed and not others):
            leaves = await self._adopt_orphans()
            await self._requests.publish_status()
            if leaves:
                # A process that resumes the rest must still find them.
                self._left |= frozenset(gone)
            elif gone:
                await self._database.write(partial(process_table.remove, processes=gone))
        self._outage.log_recovery()

    async def _answer_wakes(self) -> None:
        me, alive = self._processes.me, self._processes.alive

        async def job(tx: Transaction) -> tuple[list[SessionID], list[SessionID]]:
            asked = await wake_table.list_for_process(tx, process=me, alive=alive)
            mine = [found for found in asked if await self._is_mine(tx, found)]
            return mine, [found for found in asked if found not in mine]

        mine, free = await self._database.read(job)
        for session_id in (*mine, *await self._requests.select_resumed(free)):
            await self._database.write(partial(self._mark_running, session_id=session_id))
            self._coordinator.wake(session_id)

    async def _answer_for_silent(self) -> None:
        """Run what was asked of processes that have stopped responding, if they do not run it."""
        before, self._silent = self._silent, frozenset(self._processes.silent())
        if not self._silent - before:
            return

        async def job(tx: Transaction) -> list[SessionID]:
            asked = await wake_table.list_for_process(
                tx, process=self._processes.me, alive=lambda process: process not in self._silent
            )
            return [found for found in asked if not await attempt_table.is_running(tx, found)]

        for session_id in await self._requests.select_resumed(await self._database.read(job)):
            self._coordinator.wake(session_id)

    async def _mark_running(self, tx: Transaction, session_id: SessionID) -> None:
        """Mark the run before it begins: the process that asked and waits sees no gap."""
        await wake_table.clear(tx, session_id)
        if await self._is_mine(tx, session_id):
            await attempt_table.begin(tx, session_id)
            self._marked.add(session_id)

    async def _clear_finished_marks(self) -> None:
        """Clear marks of runs that are over, also if an interrupt ended them before they began."""
        for session_id in self._marked - set(self._coordinator.active):
            self._marked.discard(session_id)
            await self._database.write(partial(attempt_table.end_begun, session_id=session_id))

    async def _apply_interrupts(self) -> None:
        async def job(tx: Transaction) -> list[SessionID]:
            asked = await interrupt_table.list_requested(tx)
            return [session_id for session_id in asked if await self._is_mine(tx, session_id)]

        for session_id in await self._database.read(job):
            self._coordinator.stop(session_id)
            # The run that ends clears the request; without one, the next drain does.
            self._coordinator.wake(session_id)

    async def _adopt_orphans(self) -> bool:
        """Wake Sessions that are owed a run, or were in one, and whose process is gone.

        Returns whether some are left, because this process does not resume them.
        """
        await self._requests.end_orphans()
        await self._requests.adopt_jobs()
        unfinished = await self._requests.list_unfinished()
        for session_id in unfinished.sessions:
            self._coordinator.wake(session_id)
        return unfinished.leaves

    async def _is_mine(self, tx: Transaction, session_id: SessionID) -> bool:
        lease = await lease_table.get(tx, session_id)
        return lease is not None and lease.process == self._processes.me

    def _alive(self, process: str) -> bool:
        return self._processes.alive(process)
