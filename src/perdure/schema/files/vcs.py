"""The version control of a Location as clients see it: the branch, and what is not committed."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record

ChangeStatus = Literal["added", "modified", "deleted"]
DiffBase = Literal["head", "branch"]
"""What a diff compares with: the commit that is checked out, or where the branch left the default
branch."""


class VcsInfo(Record):
    branch: str | UnsetType = UNSET
    """Not set outside a repository, and where no branch is checked out."""
    default_branch: str | UnsetType = UNSET


class FileStatus(Record):
    """A file that differs from the commit that is checked out."""

    path: str
    """Relative to the Location."""
    status: ChangeStatus
    additions: int
    deletions: int
