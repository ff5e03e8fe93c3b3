"""What other processes on the same store did: wake the tails, answer what was asked of us.

Looks often while another process is alive and rarely otherwise: an idle machine stays idle. A
Session whose process died is picked up here when somebody had asked for it or has input pending.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Protocol

from perdure.ports import Clock, DatabaseError, Processes, Transaction
from perdure.runtime.coordination.coordinator import RunCoordinator
from perdure.runtime.coordination.session_locations import SessionLocations
from perdure.schema.ids import SessionID
from perdure.store.log.event_store import EventStore
from perdure.store.log.follow import EventFollowers
from perdure.store.processes import interrupt_table, lease_table, process_table, wake_table
from perdure.store.tables import attempt_table, inbox_table, notice_table

logger = logging.getLogger(__name__)

_SECONDS_TOGETHER: Final = 0.05
_SECONDS_ALONE: Final = 1.0


class PeerRequests(Protocol):
    """What people said to other processes, and what dead ones waited for or watched."""

    async def deliver(self) -> None: ...
    async def reject_orphans(self) -> None: ...
    async def adopt_jobs(self) -> None: ...


class ProcessMonitor:
    def __init__(
        self,
        store: EventStore,
        tails: EventFollowers,
        coordinator: RunCoordinator,
        *,
        unfinished: Callable[[], Awaitable[list[SessionID]]],
        requests: PeerRequests,
        known: SessionLocations,
        processes: Processes,
        clock: Clock,
    ) -> None:
        self._database = store.database
        self._unfinished = unfinished
        self._requests = requests
        self._tails = tails
        self._coordinator = coordinator
        self._known = known
        self._processes = processes
        self._clock = clock
        self._taken_up: set[SessionID] = set()
        """Sessions whose run another process asked for: marked as running until it is over."""
        self._missed = False
        """Whether the last look was cut off by a failing store: it is made again."""

    async def run(self) -> None:
        """For ever; cancel to stop."""
        others = frozenset[str]()
        while True:
            before, others = others, self._processes.others()
            try:
                await self._look(before, others)
            except DatabaseError as error:
                if not self._missed:
                    logger.warning("cannot look what other processes did: %s", error)
                self._missed, others = True, before | others
            await self._clock.sleep(_SECONDS_TOGETHER if others else _SECONDS_ALONE)

    async def _look(self, before: frozenset[str], others: frozenset[str]) -> None:
        await self._put_down()
        changed = await self._database.changed_elsewhere() or self._missed
        gone: list[str] = []
        if changed:
            self._known.clear()
            self._tails.wake_all()
            await self._obey_interrupts()
            await self._answer_wakes()
            await self._requests.deliver()
            # Among them those that came, wrote and died between two looks.
            gone = await self._database.read(partial(process_table.list_dead, alive=self._alive))
        if before - others or gone or (changed and not others):
            await self._adopt_orphans()
        if gone:
            await self._database.write(partial(process_table.remove, processes=gone))
        self._missed = False

    async def _answer_wakes(self) -> None:
        me, alive = self._processes.me, self._processes.alive
        asked = await self._database.read(
            lambda tx: wake_table.list_for_process(tx, process=me, alive=alive)
        )
        for session_id in asked:
            await self._database.write(partial(self._take_up, session_id=session_id))
            self._coordinator.wake(session_id)

    async def _take_up(self, tx: Transaction, session_id: SessionID) -> None:
        """Whoever asked and waits sees one run, from now to its end."""
        await wake_table.clear(tx, session_id)
        if await self._is_mine(tx, session_id):
            await attempt_table.begin(tx, session_id)
            self._taken_up.add(session_id)

    async def _put_down(self) -> None:
        """A run that was taken up is over: an interrupt may have ended it before it began."""
        for session_id in self._taken_up - set(self._coordinator.active):
            self._taken_up.discard(session_id)
            await self._database.write(partial(attempt_table.clear_begun, session_id=session_id))

    async def _obey_interrupts(self) -> None:
        async def job(tx: Transaction) -> list[SessionID]:
            asked = await interrupt_table.list_requested(tx)
            return [session_id for session_id in asked if await self._is_mine(tx, session_id)]

        for session_id in await self._database.read(job):
            self._coordinator.stop(session_id)
            await self._database.write(partial(interrupt_table.clear, session_id=session_id))

    async def _adopt_orphans(self) -> None:
        """Run what waits for nobody: a process that left, in whatever way, takes no more wakes."""

        async def job(tx: Transaction) -> list[SessionID]:
            orphans: list[SessionID] = []
            waiting = await inbox_table.sessions_with_pending(tx)
            waiting += await notice_table.sessions_with_pending(tx)
            for session_id in waiting:
                lease = await lease_table.get(tx, session_id)
                if lease is None or not lease.process or not self._alive(lease.process):
                    orphans.append(session_id)
            return orphans

        await self._requests.reject_orphans()
        await self._requests.adopt_jobs()
        waiting = await self._database.read(job)
        for session_id in dict.fromkeys((*waiting, *await self._unfinished())):
            self._coordinator.wake(session_id)

    async def _is_mine(self, tx: Transaction, session_id: SessionID) -> bool:
        lease = await lease_table.get(tx, session_id)
        return lease is not None and lease.process == self._processes.me

    def _alive(self, process: str) -> bool:
        return self._processes.alive(process)
