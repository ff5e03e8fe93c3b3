"""Watches one background job until it ends, enforces its limits and settles it.

A job is found by its process id and start time, not as a child process, so one that this process
took over is watched like one that it started. Ending a job sends a signal, then kills it; the
reason is committed first, so that the next process ends it if this one dies meanwhile.

Invariant: a job is settled and its notice stored in one transaction, once.
"""

import logging

from perdure.core import limits
from perdure.core.session import job as rules
from perdure.core.session.job import Ending, Job, Sighting
from perdure.ports import Clock, Database, DetachedProcesses, Filesystem, Transaction
from perdure.runtime.background.notices import Notices
from perdure.runtime.database_errors import retry_until_stored
from perdure.schema.value import Value
from perdure.store.tables import job_table
from perdure.store.tables.notice_table import Notice
from perdure.tools.shell.command_output import readable

logger = logging.getLogger(__name__)


class JobMonitorDeps(Value, kw_only=True):
    """What the monitor needs of the rest of the program."""

    database: Database
    notices: Notices
    detached: DetachedProcesses
    filesystem: Filesystem
    clock: Clock


async def watch_job(on: JobMonitorDeps, job: Job) -> None:
    """Return when the job is settled, by this process or by another one."""
    await retry_until_stored(
        lambda: _watch_once(on, job), what=f"watching background job {job.id}", clock=on.clock
    )


async def end_job(on: JobMonitorDeps, job: Job, ending: Ending, *, quiet: bool) -> None:
    """End a running job and settle it; `quiet`: without a notice to its Session."""
    await on.database.write(lambda tx: job_table.set_ending(tx, job.id, ending, quiet=quiet))
    on.detached.terminate(job.process)
    await _wait_until_gone(on, job, within=limits.PROCESS_TERMINATE_SECONDS)
    # Also if it ended: processes that it started may still run.
    await on.detached.kill(job.process)
    await _wait_until_gone(on, job, within=limits.PROCESS_TERMINATE_SECONDS)
    await _settle(on, job, on.detached.look(job.process))


async def _read_output_end(on: JobMonitorDeps, job: Job, *, bytes_max: int) -> bytes:
    """Return the end of its output; empty if it cannot be read."""
    size = on.detached.look(job.process).output_bytes
    try:
        return await on.filesystem.read(
            job.process.output, offset=max(size - bytes_max, 0), bytes_max=bytes_max
        )
    except OSError as error:
        logger.warning("output of background job %s cannot be read: %s", job.id, error)
        return b""


async def _watch_once(on: JobMonitorDeps, job: Job) -> None:
    pause, size = limits.JOB_LOOK_SECONDS_MIN, 0
    while True:
        sighting = on.detached.look(job.process)
        if not sighting.alive:
            await _settle(on, job, sighting)
            return
        ending = rules.ending_due(job, sighting, now=on.clock.now_millis())
        if ending is not None:
            await end_job(on, job, ending, quiet=job.quiet)
            return
        prints_much = sighting.output_bytes - size > limits.JOB_GUSH_BYTES
        size = sighting.output_bytes
        await on.clock.sleep(limits.JOB_LOOK_SECONDS_MIN if prints_much else pause)
        pause = min(pause * 1.5, limits.JOB_LOOK_SECONDS_MAX)


async def _wait_until_gone(on: JobMonitorDeps, job: Job, *, within: float) -> None:
    """Wait until its process is gone, no longer than `within` seconds."""
    for _ in range(int(within / limits.JOB_LOOK_SECONDS_MIN)):
        if not on.detached.look(job.process).alive:
            return
        await on.clock.sleep(limits.JOB_LOOK_SECONDS_MIN)


async def _settle(on: JobMonitorDeps, job: Job, sighting: Sighting) -> None:
    said = await _read_output_end(on, job, bytes_max=limits.JOB_LAST_WORDS_BYTES_MAX)
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
