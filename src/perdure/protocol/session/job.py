"""Operations on background jobs: list them, read their output, and end them.

These are extensions of the published contract, in its style.
"""

from typing import Final

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.codec import Payload
from perdure.schema.errors import DamagedRowError, JobNotFoundError, SessionNotFoundError
from perdure.schema.ids import SuppliedJobID
from perdure.schema.session.job import JobInfo, JobOutput


class JobParams(Payload, frozen=True):
    job_id: SuppliedJobID


_GROUP: Final = "jobs"
_ON_SESSION: Final = (*REFUSALS, SessionNotFoundError, DamagedRowError)
_ON_JOB: Final = (*_ON_SESSION, JobNotFoundError)

LIST: Final = Endpoint(
    operation_id="v2.session.job.list",
    method="GET",
    path="/api/session/{sessionID}/job",
    group=_GROUP,
    scope="session",
    success=Success("data", tuple[JobInfo, ...]),
    errors=_ON_SESSION,
)
GET: Final = Endpoint(
    operation_id="v2.session.job.get",
    method="GET",
    path="/api/session/{sessionID}/job/{jobID}",
    group=_GROUP,
    scope="session",
    params=JobParams,
    success=Success("data", JobOutput),
    errors=_ON_JOB,
)
CANCEL: Final = Endpoint(
    operation_id="v2.session.job.cancel",
    method="POST",
    path="/api/session/{sessionID}/job/{jobID}/cancel",
    group=_GROUP,
    scope="session",
    params=JobParams,
    success=Success("data", JobInfo),
    errors=_ON_JOB,
)

ENDPOINTS: Final = (LIST, GET, CANCEL)
