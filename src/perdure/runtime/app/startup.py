"""What a process does once it has started: run what was left, finish what was begun, tidy up.

None of it delays the start, and each part is tried until the store can be read.
"""

import asyncio
import logging
from functools import partial

from perdure.core import limits
from perdure.ports import Clock, DatabaseError
from perdure.runtime.app.lazy_engine import LazyEngine
from perdure.runtime.coordination.coordinator import RunCoordinator
from perdure.runtime.session.deletion import SessionDeletions
from perdure.schema.ids import SessionID
from perdure.store.processes import process_table
from perdure.store.tables import inbox_table, notice_table, retry_table

logger = logging.getLogger(__name__)


async def sweep(engine: LazyEngine, clock: Clock) -> None:
    """Later, when nobody waits for the start any more; it also has the engine ready by then."""
    await clock.sleep(limits.WARM_UP_SECONDS)
    await engine.get().outputs.sweep()
    await engine.get().snapshots.sweep()


async def finish_deletions(deletions: SessionDeletions, clock: Clock) -> None:
    """Tried until it is done: nobody can ask for these Sessions any more."""
    while True:
        try:
            await deletions.finish()
        except DatabaseError as error:
            logger.warning("cannot finish deletions that were begun: %s", error)
        else:
            return
        await clock.sleep(limits.STORAGE_RETRY_SECONDS)


async def adopt_jobs(engine: LazyEngine, clock: Clock) -> None:
    """Tried until it is done: nobody else would tell of their end."""
    while True:
        try:
            await engine.adopt_jobs()
        except DatabaseError as error:
            logger.warning("cannot look for background jobs that were left: %s", error)
        else:
            return
        await clock.sleep(limits.STORAGE_RETRY_SECONDS)


async def wake_at_boot(engine: LazyEngine, coordinator: RunCoordinator) -> None:
    """Run what was admitted before the last stop, settle what a crash cut off; a few at a time."""
    retries, others = await _left_at_boot(engine)
    for session_id in retries:
        # They wait for their providers, not for each other.
        coordinator.wake(session_id)
    waiting = iter(others)

    async def worker() -> None:
        for session_id in waiting:
            coordinator.wake(session_id)
            await coordinator.idle(session_id)

    async with asyncio.TaskGroup() as group:
        for _ in range(limits.BOOT_WAKES_PARALLEL_MAX):
            group.create_task(worker())


async def _left_at_boot(engine: LazyEngine) -> tuple[list[SessionID], list[SessionID]]:
    """Turns that wait to be sent again, and everything else.

    Tried until it can be read: nobody would ask for these Sessions again.
    """
    on = engine.parts.on
    while True:
        try:
            # First: what these left is committed, and so among what is found next.
            dead = await on.database.read(
                partial(process_table.list_dead, alive=on.processes.alive)
            )
            await engine.reject_orphans()
            await engine.take_back_reverts()
            pending = await on.database.read(inbox_table.sessions_with_pending)
            pending += await on.database.read(notice_table.sessions_with_pending)
            retries = await on.database.read(retry_table.list_sessions)
            others = dict.fromkeys((*pending, *await engine.unfinished()))
            if dead:
                # Should this process die before it has run all that, the next start finds it.
                await on.database.write(partial(process_table.remove, processes=dead))
            return retries, [found for found in others if found not in retries]
        except DatabaseError as error:
            logger.warning("cannot look for work that was left: %s", error)
        await on.clock.sleep(limits.STORAGE_RETRY_SECONDS)
