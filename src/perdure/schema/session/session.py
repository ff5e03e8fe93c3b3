"""A Session as clients see it."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.approval.permission import SessionRules
from perdure.schema.codec import JsonObject, Record
from perdure.schema.ids import MessageID, ProjectID, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.models.model import ModelRef, TokenUsage
from perdure.schema.session.usage import SessionBudget


class SessionTime(Record):
    created: int
    updated: int
    archived: int | UnsetType = UNSET


class FileDiff(Record):
    path: str
    status: Literal["added", "modified", "deleted"]
    additions: int
    deletions: int
    patch: str


class FileConflict(Record):
    """A file that a revert does not change."""

    path: str
    reason: str


class RevertState(Record):
    """A revert that is staged but not committed."""

    message_id: MessageID
    part_id: str | UnsetType = UNSET
    snapshot: str | UnsetType = UNSET
    diff: str | UnsetType = UNSET
    files: tuple[FileDiff, ...] | UnsetType = UNSET
    conflicts: tuple[FileConflict, ...] | UnsetType = UNSET
    """An extension: files changed by the Session that the revert leaves alone."""


class ModelSubstitute(Record):
    """The model that answers while the chosen one cannot."""

    model: ModelRef
    message: str
    """Why the chosen model cannot answer."""
    until: int
    """When it is tried again, in milliseconds since the epoch."""


class SessionInfo(Record):
    id: SessionID
    project_id: ProjectID
    cost: float
    tokens: TokenUsage
    time: SessionTime
    title: str
    location: LocationRef
    parent_id: SessionID | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    model: ModelRef | UnsetType = UNSET
    subpath: str | UnsetType = UNSET
    revert: RevertState | UnsetType = UNSET
    budget: SessionBudget | UnsetType = UNSET
    substitute: ModelSubstitute | UnsetType = UNSET
    """An extension: the model of the agent's chain that stands in at the moment."""
    metadata: JsonObject | UnsetType = UNSET
    """Facts of the client that created the Session; the runtime does not read them."""
    permissions: SessionRules | UnsetType = UNSET
    """An extension: the permission rules of the Session, also those that have expired."""


class SessionActivity(Record):
    """What a Session is doing in this process."""

    type: Literal["running"]
