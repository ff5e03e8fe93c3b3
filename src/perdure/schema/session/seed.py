"""A Session as it was created."""

from msgspec import UNSET, UnsetType

from perdure.schema.approval.permission import SessionRules
from perdure.schema.codec import JsonObject, Record
from perdure.schema.ids import ProjectID, SessionID, WorkspaceID
from perdure.schema.models.model import ModelRef, TokenUsage
from perdure.schema.session.session import SessionTime


class SessionSeed(Record):
    """The Session at its creation."""

    id: SessionID
    slug: str
    project_id: ProjectID
    directory: str
    path: str
    title: str
    version: str
    cost: float
    tokens: TokenUsage
    time: SessionTime
    workspace_id: WorkspaceID | UnsetType = UNSET
    parent_id: SessionID | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    model: ModelRef | UnsetType = UNSET
    metadata: JsonObject | UnsetType = UNSET
    permissions: SessionRules | UnsetType = UNSET
