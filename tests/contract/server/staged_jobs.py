"""Background jobs, as the stage has them: one that runs, and who asked to end it."""

from dataclasses import dataclass, field

from msgspec.structs import replace

from perdure.schema.errors import JobNotFoundError
from perdure.schema.ids import JobID, SessionID, ToolCallID
from perdure.schema.session.job import JobInfo, JobOutput, JobTime

JOB = JobID("job_1")


@dataclass(slots=True)
class StagedJobs:
    cancelled: list[tuple[SessionID, JobID, bool]] = field(
        default_factory=list[tuple[SessionID, JobID, bool]]
    )

    async def list(self, session_id: SessionID) -> tuple[JobInfo, ...]:
        return (_job(session_id),)

    async def get(self, session_id: SessionID, job_id: JobID, /) -> JobOutput:
        if job_id != JOB:
            raise JobNotFoundError(job_id)
        return JobOutput(job=_job(session_id), output="listening\n", bytes=10, truncated=False)

    async def cancel(self, session_id: SessionID, job_id: JobID, /, *, quiet: bool) -> JobInfo:
        job = (await self.get(session_id, job_id)).job
        self.cancelled.append((session_id, job_id, quiet))
        return replace(job, state="cancelled", time=replace(job.time, ended=5), exit_code=143)


def _job(session_id: SessionID) -> JobInfo:
    return JobInfo(
        id=JOB,
        session_id=session_id,
        call_id=ToolCallID("call_1"),
        command="serve",
        directory="/work/here",
        state="running",
        path="/data/tool-output/tool_1",
        time=JobTime(started=1, deadline=9),
    )
