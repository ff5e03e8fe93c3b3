"""Background tasks of a process: beat, resume work, finish deletions, sweep files.

None of them delays the start, and each is retried until the store can be read.
"""

import asyncio
from contextlib import suppress
from functools import partial

from perdure.core import limits
from perdure.ports import Clock, Processes
from perdure.runtime.app.lazy_engine import LazyEngine
from perdure.runtime.app.peer_work import PeerWork
from perdure.runtime.app.platform import Platform
from perdure.runtime.coordination.coordinator import RunCoordinator
from perdure.runtime.database_errors import retry_until_stored
from perdure.runtime.session.deletion import SessionDeletions
from perdure.schema.ids import SessionID
from perdure.store.processes import process_table
from perdure.store.tables import retry_table


async def beat(processes: Processes, clock: Clock) -> None:
    """Show the other processes that this one responds, until cancelled."""
    while True:
        # A full disk or a removed directory is reported elsewhere; the next beat tries again.
        with suppress(OSError):
            processes.beat()
        await clock.sleep(limits.BEAT_SECONDS)


async def sweep_files(engine: LazyEngine, clock: Clock) -> None:
    """Remove old tool output and snapshots a while after the start; this also loads the engine."""
    await clock.sleep(limits.WARM_UP_SECONDS)
    await engine.get().outputs.sweep()
    await engine.get().snapshots.sweep()


async def finish_deletions(deletions: SessionDeletions, clock: Clock) -> None:
    """Finish the deletions that dead processes began: no client can ask for them again."""
    await retry_until_stored(deletions.finish, what="finishing deletions", clock=clock)


async def adopt_jobs(peer_work: PeerWork, clock: Clock) -> None:
    """Monitor the jobs of dead processes: without a monitor, no Session learns of their end."""
    await retry_until_stored(peer_work.adopt_jobs, what="taking over background jobs", clock=clock)


async def resume_work(peer_work: PeerWork, coordinator: RunCoordinator, platform: Platform) -> None:
    """Run Sessions that are owed a run, and settle what a crash interrupted; a few at a time."""
    retries, others = await _find_work(peer_work, platform)
    for session_id in retries:
        # Each waits for its provider, so they do not count against the limit.
        coordinator.wake(session_id)
    waiting = iter(others)

    async def worker() -> None:
        for session_id in waiting:
            coordinator.wake(session_id)
            await coordinator.wait_until_idle(session_id)

    async with asyncio.TaskGroup() as group:
        for _ in range(limits.BOOT_WAKES_PARALLEL_MAX):
            group.create_task(worker())


async def _find_work(
    peer_work: PeerWork, platform: Platform
) -> tuple[list[SessionID], list[SessionID]]:
    """Return the Sessions that wait for a retry, and all others that are owed a run.

    Retried until the store can be read: no other process would run these Sessions.
    """
    database = platform.database

    async def find() -> tuple[list[SessionID], list[SessionID]]:
        # First, so that everything these processes committed is found below.
        dead = await database.read(partial(process_table.list_dead, alive=platform.processes.alive))
        await peer_work.end_orphans()
        await peer_work.restore_files()
        retries = await peer_work.list_free(await database.read(retry_table.list_sessions))
        unfinished = await peer_work.list_unfinished()
        if dead and not unfinished.leaves:
            # Last: if this process dies before, the next start finds the same work.
            await database.write(partial(process_table.remove, processes=dead))
        others = dict.fromkeys(unfinished.sessions)
        return retries, [found for found in others if found not in retries]

    return await retry_until_stored(find, what="looking for unfinished work", clock=platform.clock)
