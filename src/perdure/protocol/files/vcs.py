"""Version control of a Location: the branch, the files that are not committed, and their diffs."""

from typing import Final

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.codec import Payload
from perdure.schema.errors import ServiceUnavailableError
from perdure.schema.files.vcs import DiffBase, FileStatus, VcsInfo
from perdure.schema.session.session import FileDiff


class DiffFiles(Payload, frozen=True):
    """`base`: compare with the commit that is checked out (`head`), or with the default branch."""

    base: DiffBase | None = None


_GROUP: Final = "vcs"
_BY_GIT: Final = (*REFUSALS, ServiceUnavailableError)

GET: Final = Endpoint(
    operation_id="v2.vcs.get",
    method="GET",
    path="/api/vcs",
    group=_GROUP,
    scope="location",
    success=Success("location_data", VcsInfo),
)
STATUS: Final = Endpoint(
    operation_id="v2.vcs.status",
    method="GET",
    path="/api/vcs/status",
    group=_GROUP,
    scope="location",
    success=Success("location_data", tuple[FileStatus, ...]),
    errors=_BY_GIT,
)
DIFF: Final = Endpoint(
    operation_id="v2.vcs.diff",
    method="GET",
    path="/api/vcs/diff",
    group=_GROUP,
    scope="location",
    query=DiffFiles,
    success=Success("location_data", tuple[FileDiff, ...]),
    errors=_BY_GIT,
)

ENDPOINTS: Final = (GET, STATUS, DIFF)
