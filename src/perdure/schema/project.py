"""Projects as clients see them: a repository, and the directories where Sessions worked in it."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record
from perdure.schema.ids import ProjectID


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
