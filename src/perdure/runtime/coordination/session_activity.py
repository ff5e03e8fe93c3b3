"""Whether a Session runs, in this or another process; ending a run and waiting for it.

Another process runs a Session while it holds the lease and the Session has a mark of a run
(store.tables.attempt_table). A request to that process is a row, which it polls for
(runtime.coordination.process_monitor).
"""

import asyncio
from contextlib import suppress
from functools import partial

from perdure.core import limits
from perdure.ports import Clock, Transaction
from perdure.runtime.coordination.coordinator import RunCoordinator
from perdure.schema.errors import ServiceUnavailableError, SessionBusyError
from perdure.schema.ids import Seq, SessionID
from perdure.store.log.event_store import EventStore, latest_seq
from perdure.store.processes import interrupt_table, wake_table
from perdure.store.tables import attempt_table, retry_table


class SessionActivity:
    """The runs of all processes on this store."""

    def __init__(
        self,
        store: EventStore,
        coordinator: RunCoordinator,
        clock: Clock,
        *,
        resumes: bool = True,
    ) -> None:
        """`resumes`: whether this process runs what others left when they ended."""
        self._store = store
        self._coordinator = coordinator
        self._clock = clock
        self._resumes = resumes

    async def interrupt(self, session_id: SessionID) -> None:
        """End the run, in whichever process, and wait until it is settled.

        What was asked for before is not owed any more. The wait has a limit. Raises
        ServiceUnavailableError if the process does not stop in time; it still finds the request
        when it goes on.
        """
        upto = await self._store.database.read(lambda tx: latest_seq(tx, session_id))
        active = session_id in self._coordinator.active
        # Not after the commit: a slow disk must not keep a tool running.
        self._coordinator.stop(session_id)
        if not await self._stop_owed(session_id, upto=upto, active=active):
            return
        await self._coordinator.interrupt(session_id)
        if await self._is_leased_elsewhere(session_id):
            await self._wait_until_stopped(session_id)
        elif await self._is_stop_requested(session_id):
            # Nothing ran that could end itself: a run settles what a dead one left.
            self._coordinator.wake(session_id)
            # Not until it is idle: the run goes on with what was asked for since.
            while self.runs_here(session_id) and await self._is_stop_requested(session_id):
                await self._coordinator.wait_briefly(session_id, limits.ELSEWHERE_LOOK_SECONDS)
        await self._wake_if_owed(session_id)

    async def wait_until_idle(self, session_id: SessionID) -> None:
        """Wait until nothing runs, whether the run succeeds or fails.

        A run that a process left when it ended is continued here, if no process has done so yet.
        Raises ServiceUnavailableError while the process that runs it does not respond.
        """
        await self.resume_left_over(session_id)
        while True:
            await self._coordinator.wait_until_idle(session_id)
            if await self._store.database.read(lambda tx: self.runs_elsewhere(tx, session_id)):
                await self._check_response(session_id, "wait")
                await self._clock.sleep(limits.ELSEWHERE_LOOK_SECONDS)
            elif not self.runs_here(session_id):
                return
            # Else this process has taken the run over meanwhile.

    async def wait_for_client(self, session_id: SessionID) -> None:
        """Wait until nothing runs, for a client that may ask another process instead.

        Raises ServiceUnavailableError as `wait_until_idle` does, and when this process begins to
        end: it leaves the run to the next one, and must not be kept by its clients.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as wait:
                with self._coordinator.on_closing(partial(wait.reschedule, 0)):
                    await self.wait_until_idle(session_id)
        if not self._coordinator.closing:
            return
        mark = await self._store.database.read(lambda tx: attempt_table.get(tx, session_id))
        if self.runs_here(session_id) or (mark is not None and mark.waits is None):
            raise ServiceUnavailableError(
                f"This server stops. Session {session_id} is not idle: it goes on in the next"
                " process. Wait for it there.",
                service="session.wait",
            )

    async def resume_left_over(self, session_id: SessionID) -> None:
        """Wake the Session if a process left its run when it ended, and none has taken it over."""
        if self._resumes and await self._store.database.read(
            lambda tx: self._is_left_over(tx, session_id)
        ):
            self._coordinator.wake(session_id)

    async def check_idle(self, tx: Transaction, session_id: SessionID) -> None:
        """Raises SessionBusyError while the Session runs, as seen by `tx`.

        A run that was cut counts: it goes on from where it was.
        """
        if (
            session_id in self._coordinator.active
            or await self.runs_elsewhere(tx, session_id)
            or await self.is_cut(tx, session_id)
        ):
            raise SessionBusyError(session_id)

    async def is_cut(self, tx: Transaction, session_id: SessionID) -> bool:
        """Whether a run was cut when its process ended, and will go on in this one."""
        return self._resumes and await self._is_left_over(tx, session_id, cut=True)

    def runs_here(self, session_id: SessionID) -> bool:
        return session_id in self._coordinator.active

    async def runs_elsewhere(self, tx: Transaction, session_id: SessionID) -> bool:
        """Whether another living process runs this Session, or has been asked to."""
        if not await self._store.leases.runs_elsewhere(tx, session_id):
            return False
        return (
            await attempt_table.is_running(tx, session_id)
            or await retry_table.get(tx, session_id) is not None
            or await wake_table.is_requested(tx, session_id)
        )

    async def _is_left_over(
        self, tx: Transaction, session_id: SessionID, *, cut: bool = False
    ) -> bool:
        """Whether a run is owed or was cut, and its process has ended; with `cut`, only that."""
        mark = await attempt_table.get(tx, session_id)
        if mark is None or mark.waits is not None or (cut and not mark.has_request):
            return False
        return await self._store.leases.holder(tx, session_id) in ("dead", "free")

    async def _stop_owed(self, session_id: SessionID, *, upto: Seq, active: bool) -> bool:
        """Take back what is owed, and ask the run to end. Return False if there is nothing."""

        async def is_busy(tx: Transaction) -> bool:
            return active or await attempt_table.get(tx, session_id) is not None

        async def job(tx: Transaction) -> None:
            await attempt_table.stop(tx, session_id, upto=upto)
            if active or await attempt_table.is_running(tx, session_id):
                await interrupt_table.request(tx, session_id)

        busy = await self._store.database.read(is_busy)
        if busy:
            await self._store.database.write(job)
        return busy or await self._is_leased_elsewhere(session_id)

    async def _wake_if_owed(self, session_id: SessionID) -> None:
        """Input that asked for a run meanwhile, and whose wake the end of the run swallowed."""
        mark = await self._store.database.read(lambda tx: attempt_table.get(tx, session_id))
        if mark is not None and mark.state == "owed":
            self._coordinator.wake(session_id)

    async def _wait_until_stopped(self, session_id: SessionID) -> None:
        await self._store.database.write(lambda tx: interrupt_table.request(tx, session_id))
        looks = limits.INTERRUPT_ELSEWHERE_SECONDS_MAX / limits.ELSEWHERE_LOOK_SECONDS
        for _ in range(round(looks)):
            if await self._has_stopped(session_id):
                return
            await self._check_response(session_id, "interrupt")
            await self._clock.sleep(limits.ELSEWHERE_LOOK_SECONDS)
        # A process that took the request has ended the run; what runs now is settling, or newer.
        if not await self._is_stop_requested(session_id):
            return
        raise ServiceUnavailableError(
            f"Another process runs Session {session_id} and has not stopped it within"
            f" {limits.INTERRUPT_ELSEWHERE_SECONDS_MAX:.0f} seconds. It was told to, and will"
            " when it can; wait for the Session, or interrupt it again.",
            service="session.interrupt",
        )

    async def list_elsewhere(self, tx: Transaction) -> list[SessionID]:
        """The Sessions that other living processes run, or have been asked to."""
        marked = await attempt_table.list_sessions(tx) + await retry_table.list_sessions(tx)
        marked += await wake_table.list_requested(tx)
        return [found for found in dict.fromkeys(marked) if await self.runs_elsewhere(tx, found)]

    async def _check_response(self, session_id: SessionID, operation: str) -> None:
        """Raises ServiceUnavailableError if the process that runs the Session is silent."""

        async def look(tx: Transaction) -> str | None:
            waits = await retry_table.get(tx, session_id) is not None
            if not (waits or await attempt_table.is_running(tx, session_id)):
                # At most it was asked to run it, and another process does so in its place.
                return None
            return await self._store.leases.silent_holder(tx, session_id)

        if (silent := await self._store.database.read(look)) is not None:
            raise ServiceUnavailableError(
                f"Session {session_id} is run by {silent}, which does not respond: it may be"
                " stopped. Let it go on (kill -CONT), or end it (kill -KILL): then its Sessions are"
                " taken over at once.",
                service=f"session.{operation}",
            )

    async def _is_stop_requested(self, session_id: SessionID) -> bool:
        return await self._store.database.read(
            lambda tx: interrupt_table.is_requested(tx, session_id)
        )

    async def _is_leased_elsewhere(self, session_id: SessionID) -> bool:
        return await self._store.database.read(
            lambda tx: self._store.leases.runs_elsewhere(tx, session_id)
        )

    async def _has_stopped(self, session_id: SessionID) -> bool:
        async def job(tx: Transaction) -> bool:
            if not await self._store.leases.runs_elsewhere(tx, session_id):
                return True
            silent = await self._store.leases.silent_holder(tx, session_id) is not None
            if silent and not await self.runs_elsewhere(tx, session_id):
                return True
            if await interrupt_table.is_requested(tx, session_id):
                return False
            return not await attempt_table.is_running(tx, session_id)

        return await self._store.database.read(job)
