"""A reference: a named directory outside the project that the model may read."""

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record


class LocalReference(Record, tag_field="type", tag="local"):
    """A directory on this machine."""

    path: str
    description: str | UnsetType = UNSET
    hidden: bool | UnsetType = UNSET


class GitReference(Record, tag_field="type", tag="git"):
    """A repository, which may have a copy on this machine."""

    repository: str
    branch: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    hidden: bool | UnsetType = UNSET


ReferenceSource = LocalReference | GitReference


class ReferenceInfo(Record):
    name: str
    path: str
    """The absolute path."""
    source: ReferenceSource
    description: str | UnsetType = UNSET
    hidden: bool | UnsetType = UNSET
