"""A reference: a directory beside the project that the model may be told of by name."""

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record


class LocalReference(Record, tag_field="type", tag="local"):
    """A directory of this machine."""

    path: str
    description: str | UnsetType = UNSET
    hidden: bool | UnsetType = UNSET


class GitReference(Record, tag_field="type", tag="git"):
    """A repository, of which a copy may lie on this machine."""

    repository: str
    branch: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    hidden: bool | UnsetType = UNSET


ReferenceSource = LocalReference | GitReference


class ReferenceInfo(Record):
    name: str
    path: str
    """Absolute: where it lies."""
    source: ReferenceSource
    description: str | UnsetType = UNSET
    hidden: bool | UnsetType = UNSET
