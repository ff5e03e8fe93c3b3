"""Background jobs of a Session."""

from typing import Final

from perdure.protocol.session import job
from perdure.schema.ids import JobID
from perdure.schema.session.job import JobInfo, JobOutput
from perdure.server.call import Call, Handlers


async def list_jobs(call: Call[None, None]) -> tuple[JobInfo, ...]:
    return await call.runtime.jobs.list(call.session_id)


async def get(call: Call[None, None]) -> JobOutput:
    return await call.runtime.jobs.get(call.session_id, JobID(call.params["jobID"]))


async def cancel(call: Call[None, None]) -> JobInfo:
    # The user ends it, so the Session gets a Notice.
    return await call.runtime.jobs.cancel(call.session_id, JobID(call.params["jobID"]), quiet=False)


HANDLERS: Final[Handlers] = {
    job.LIST.operation_id: list_jobs,
    job.GET.operation_id: get,
    job.CANCEL.operation_id: cancel,
}
