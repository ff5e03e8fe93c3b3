"""Where a Session works: a directory, perhaps inside a workspace, belonging to a project."""

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record
from perdure.schema.ids import ProjectID, SuppliedWorkspaceID


class LocationRef(Record):
    """Names a Location. Equal refs are the same Location."""

    directory: str
    workspace_id: SuppliedWorkspaceID | UnsetType = UNSET


class ProjectRef(Record):
    """The project a Location belongs to; `global` and `/` outside any repository."""

    id: ProjectID
    directory: str


class LocationInfo(Record):
    """A Location with its project resolved, as clients see it."""

    directory: str
    project: ProjectRef
    workspace_id: SuppliedWorkspaceID | UnsetType = UNSET
