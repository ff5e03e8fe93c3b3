"""Starts, shows and cancels background jobs, for the model and for clients.

A job belongs to its Session and to no process: an interrupt of the Session, a stop of this process
and a crash all leave it running, and the next process watches it (`adopt`). Only its own end, its
limits, a cancellation or the deletion of its Session end it.

Invariant: a command runs only once its row is durable.
"""

import asyncio
from collections.abc import Container
from contextlib import suppress
from functools import partial

from perdure.core import limits
from perdure.core.session import job as rules
from perdure.core.session.job import Job
from perdure.ports import DetachedCommand, HeldProcess, IdSource, Processes, Transaction
from perdure.ports.jobs import JobLook, JobStart
from perdure.ports.tasks import StartTask
from perdure.runtime.background import job_monitor
from perdure.runtime.background.job_monitor import JobMonitorDeps
from perdure.runtime.tasks import shielded
from perdure.schema.errors import JobNotFoundError, SessionNotFoundError
from perdure.schema.ids import JobID, SessionID
from perdure.schema.session.job import JobInfo, JobOutput
from perdure.store.tables import job_table, session_table
from perdure.tools.api.output_store import ToolOutputStore
from perdure.tools.shell.command_output import readable


class Jobs:
    """Implements ports.jobs.BackgroundJobs."""

    def __init__(
        self,
        on: JobMonitorDeps,
        *,
        outputs: ToolOutputStore,
        ids: IdSource,
        processes: Processes,
        background: StartTask,
    ) -> None:
        self._on = on
        self._outputs = outputs
        self._ids = ids
        self._processes = processes
        self._background = background
        self._watched: dict[JobID, asyncio.Event] = {}
        """For each job that is watched here, an event that is set when it is settled."""

    # ---- for the model --------------------------------------------------------------------------

    async def start(self, asked: JobStart) -> JobInfo:
        """Raises JobLimitError, and OSError when it cannot start."""
        # Not interruptible: a started job is recorded, and a recorded job is watched.
        return await shielded(self._start(asked))

    async def look(self, session_id: SessionID, job_id: JobID, *, wait_seconds: float) -> JobLook:
        """Return what it printed since the last look, up to a limit; may wait for its end first."""
        job = await self._find(session_id, job_id)
        if wait_seconds and job.state == "running":
            await self._wait(job, wait_seconds)
            job = await self._find(session_id, job_id)
        total = self._on.detached.look(job.process).output_bytes
        # A file that was truncated is shorter than what has been shown of it.
        seen = min(job.seen, total)
        start = max(seen, total - limits.JOB_OUTPUT_SHOWN_BYTES_MAX)
        said = await self._read(job, offset=start, bytes_max=total - start)
        await self._on.database.write(lambda tx: job_table.set_output_seen(tx, job_id, up_to=total))
        return JobLook(job=job.info, output=readable(said), skipped_bytes=start - seen, bytes=total)

    async def cancel(self, session_id: SessionID, job_id: JobID, *, quiet: bool) -> JobInfo:
        """End the job and the processes that it started; return it. An ended job is unchanged."""
        job = await self._find(session_id, job_id)
        if job.state == "running":
            await shielded(job_monitor.end_job(self._on, job, "cancelled", quiet=quiet))
            job = await self._find(session_id, job_id)
        return job.info

    # ---- for clients ----------------------------------------------------------------------------

    async def list(self, session_id: SessionID) -> tuple[JobInfo, ...]:
        """Return the jobs of one Session, newest first. Raises SessionNotFoundError."""

        async def job(tx: Transaction) -> list[Job]:
            if await session_table.load_json(tx, session_id) is None:
                raise SessionNotFoundError(session_id)
            return await job_table.list_for_session(tx, session_id, limit=limits.JOBS_LISTED_MAX)

        return tuple(found.info for found in await self._on.database.read(job))

    async def get(self, session_id: SessionID, job_id: JobID) -> JobOutput:
        """Return a job with the end of its output. What the model has seen is unchanged."""
        job = await self._find(session_id, job_id)
        total = self._on.detached.look(job.process).output_bytes
        start = max(total - limits.JOB_OUTPUT_SHOWN_BYTES_MAX, 0)
        said = await self._read(job, offset=start, bytes_max=total - start)
        return JobOutput(job=job.info, output=readable(said), bytes=total, truncated=start > 0)

    # ---- for the runtime ------------------------------------------------------------------------

    async def adopt(self, sessions: Container[SessionID]) -> None:
        """Watch the jobs of `sessions` whose process is gone; settle those that have ended."""
        for job in await self._on.database.read(job_table.list_running):
            if job.id in self._watched or self._processes.alive(job.owner):
                continue
            if job.session_id not in sessions:
                continue
            adopt = partial(job_table.adopt, job=job, owner=self._processes.me)
            if await self._on.database.write(adopt):
                self._watch(job)

    async def end_all(self, session_id: SessionID) -> None:
        """End the jobs of a Session that is being deleted, and remove their output."""
        found = await self._on.database.read(
            lambda tx: job_table.list_for_session(tx, session_id, limit=-1)
        )
        async with asyncio.TaskGroup() as group:
            for job in found:
                if job.state == "running":
                    group.create_task(job_monitor.end_job(self._on, job, "cancelled", quiet=True))
        for job in found:
            await self._outputs.discard(job.process.output)

    # ---- inside ---------------------------------------------------------------------------------

    async def _start(self, asked: JobStart) -> JobInfo:
        held = await self._on.detached.start(
            DetachedCommand(
                shell=asked.shell,
                command=asked.command,
                directory=asked.directory,
                environment=asked.variables,
                output=await self._outputs.reserve(),
                wrapper=asked.wrapper,
            )
        )
        job = self._build_job(asked, held)
        try:
            await self._on.database.write(lambda tx: _admit(tx, job))
        except BaseException:
            await held.abandon()
            raise
        held.release()
        self._watch(job)
        return job.info

    def _build_job(self, asked: JobStart, held: HeldProcess) -> Job:
        now = self._on.clock.now_millis()
        return Job(
            id=JobID(self._ids.named("job")),
            session_id=asked.session_id,
            call_id=asked.call_id,
            command=asked.command,
            directory=asked.directory,
            process=held.process,
            owner=self._processes.me,
            time_started=now,
            deadline=now + int(asked.seconds_max * 1_000),
        )

    def _watch(self, job: Job) -> None:
        settled = self._watched[job.id] = asyncio.Event()

        async def work() -> None:
            try:
                await job_monitor.watch_job(self._on, job)
            finally:
                settled.set()
                del self._watched[job.id]

        self._background(work())

    async def _wait(self, job: Job, seconds: float) -> None:
        """Wait until it is settled, at most `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                if (settled := self._watched.get(job.id)) is not None:
                    await settled.wait()
                while (await self._find(job.session_id, job.id)).state == "running":
                    # Another process watches it.
                    await self._on.clock.sleep(limits.JOB_LOOK_SECONDS_MAX)

    async def _find(self, session_id: SessionID, job_id: JobID) -> Job:
        """Return a job of the Session or of one below it. Raises JobNotFoundError."""

        async def look(tx: Transaction) -> Job | None:
            found = await job_table.get(tx, job_id)
            if found is None or found.session_id == session_id:
                return found
            above = await session_table.ancestors(tx, found.session_id)
            return found if session_id in above else None

        job = await self._on.database.read(look)
        if job is None:
            raise JobNotFoundError(job_id)
        return job

    async def _read(self, job: Job, *, offset: int, bytes_max: int) -> bytes:
        try:
            return await self._on.filesystem.read(
                job.process.output, offset=offset, bytes_max=bytes_max
            )
        except FileNotFoundError:
            # The output was removed because it is too old; the row of the job stays.
            return b""


async def _admit(tx: Transaction, job: Job) -> None:
    await session_table.require(tx, job.session_id)
    of_session, of_all = await job_table.count_running(tx, job.session_id)
    rules.check_limits(in_session=of_session, in_total=of_all)
    await job_table.insert(tx, job)
