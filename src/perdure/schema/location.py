"""Locations: a directory, optionally inside a workspace, and its project."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record
from perdure.schema.ids import ProjectID, SuppliedWorkspaceID


class LocationRef(Record):
    """A reference to a Location. Equal references are the same Location."""

    directory: str
    workspace_id: SuppliedWorkspaceID | UnsetType = UNSET


class ProjectRef(Record):
    """The project of a Location; `global` and `/` outside any repository."""

    id: ProjectID
    directory: str


class LocationInfo(Record):
    """A Location with its project resolved, as clients see it."""

    directory: str
    project: ProjectRef
    workspace_id: SuppliedWorkspaceID | UnsetType = UNSET

    @property
    def ref(self) -> LocationRef:
        return LocationRef(directory=self.directory, workspace_id=self.workspace_id)

    @property
    def subpath(self) -> str:
        """The path relative to the project's root; empty at the root and outside projects."""
        root = self.project.directory.rstrip("/") + "/"
        if root == "/" or not self.directory.startswith(root):
            return ""
        return self.directory.removeprefix(root)


class ProjectTime(Record):
    created: int
    """When its first Session was created; when the server started if it has none."""
    updated: int
    """When a Session of it last changed."""


class ProjectInfo(Record):
    id: ProjectID
    directory: str
    """Its root: that of the newest Session, `/` for everything outside a repository."""
    directories: tuple[str, ...]
    """Every root where a Session worked, the newest first: clones and work trees."""
    time: ProjectTime
    vcs: Literal["git"] | UnsetType = UNSET
