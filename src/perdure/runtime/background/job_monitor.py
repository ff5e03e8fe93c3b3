"""Watching one background job to its end: looked at again and again, bounded, settled, told.

The look is at the machine, not at a child of ours, so it is the same for a job that this process
started and for one that it took over. Ending a job is asking it, then killing it; the reason is
durable first, so that a process which dies meanwhile leaves a job that the next one ends.

Invariant: a job is settled and its notice put in one transaction, once, whoever watched it.
"""

import logging

from perdure.core import limits
from perdure.core.session import job as rules
from perdure.core.session.job import Ending, Job, Sighting
from perdure.ports import Clock, Database, DatabaseError, DetachedProcesses, Filesystem, Transaction
from perdure.runtime.background.notices import Notices
from perdure.schema.value import Value
from perdure.store.tables import job_table
from perdure.store.tables.notice_table import Notice
from perdure.tools.shell.command_output import readable

logger = logging.getLogger(__name__)


class JobMonitorDeps(Value, kw_only=True):
    """What it takes to watch."""

    database: Database
    notices: Notices
    detached: DetachedProcesses
    filesystem: Filesystem
    clock: Clock


async def watch(on: JobMonitorDeps, job: Job) -> None:
    """Return when the job is settled, by this or by somebody else. The store may fail meanwhile."""
    while True:
        try:
            await _to_its_end(on, job)
        except DatabaseError as error:
            logger.warning("background job %s cannot be settled yet: %s", job.id, error)
            await on.clock.sleep(limits.STORAGE_RETRY_SECONDS)
        else:
            return


async def end(on: JobMonitorDeps, job: Job, ending: Ending, *, quiet: bool) -> None:
    """End a job that runs, and settle it; `quiet` if nobody has to be told."""
    await on.database.write(lambda tx: job_table.set_ending(tx, job.id, ending, quiet=quiet))
    on.detached.terminate(job.process)
    await _gone(on, job, within=limits.PROCESS_TERMINATE_SECONDS)
    # Also when it obeyed: something that it started may not have.
    await on.detached.kill(job.process)
    await _gone(on, job, within=limits.PROCESS_TERMINATE_SECONDS)
    await _settle(on, job, on.detached.look(job.process))


async def last_words(on: JobMonitorDeps, job: Job, *, bytes_max: int) -> bytes:
    """The end of what it printed, as far as that can be read."""
    size = on.detached.look(job.process).output_bytes
    try:
        return await on.filesystem.read(
            job.process.output, offset=max(size - bytes_max, 0), bytes_max=bytes_max
        )
    except OSError as error:
        logger.warning("output of background job %s cannot be read: %s", job.id, error)
        return b""


async def _to_its_end(on: JobMonitorDeps, job: Job) -> None:
    pause, size = limits.JOB_LOOK_SECONDS_MIN, 0
    while True:
        sighting = on.detached.look(job.process)
        if not sighting.alive:
            await _settle(on, job, sighting)
            return
        ending = rules.ending_due(job, sighting, now=on.clock.now_millis())
        if ending is not None:
            await end(on, job, ending, quiet=job.quiet)
            return
        gushes = sighting.output_bytes - size > limits.JOB_GUSH_BYTES
        size = sighting.output_bytes
        await on.clock.sleep(limits.JOB_LOOK_SECONDS_MIN if gushes else pause)
        pause = min(pause * 1.5, limits.JOB_LOOK_SECONDS_MAX)


async def _gone(on: JobMonitorDeps, job: Job, *, within: float) -> None:
    """Wait until its process is gone, no longer than `within` seconds."""
    for _ in range(int(within / limits.JOB_LOOK_SECONDS_MIN)):
        if not on.detached.look(job.process).alive:
            return
        await on.clock.sleep(limits.JOB_LOOK_SECONDS_MIN)


async def _settle(on: JobMonitorDeps, job: Job, sighting: Sighting) -> None:
    said = await last_words(on, job, bytes_max=limits.JOB_LAST_WORDS_BYTES_MAX)
    now = on.clock.now_millis()

    async def commit(tx: Transaction) -> bool:
        known = await job_table.get(tx, job.id)
        if known is None or known.state != "running":
            return False
        settled = rules.settle(known, sighting, now=now)
        await job_table.settle(tx, settled)
        if settled.quiet:
            return False
        text = rules.notice(settled, readable(said))
        notice = Notice(
            id=rules.notice_id(job.id), session_id=job.session_id, text=text, time_created=now
        )
        return await on.notices.put(tx, notice)

    told = await on.database.write(commit)
    try:
        await on.detached.clean(job.process, output_bytes_max=limits.JOB_OUTPUT_BYTES_MAX)
    except OSError as error:
        logger.warning("output of background job %s is left as it is: %s", job.id, error)
    if told:
        on.notices.wake(job.session_id)
