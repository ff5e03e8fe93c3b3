"""An agent: instructions for the model, and its permissions."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.approval.permission import Ruleset
from perdure.schema.codec import Record
from perdure.schema.models.model import ModelRef, RequestInfo

AgentMode = Literal["subagent", "primary", "all"]


class AgentInfo(Record):
    id: str
    request: RequestInfo
    mode: AgentMode
    hidden: bool
    permissions: Ruleset
    model: ModelRef | UnsetType = UNSET
    system: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    color: str | UnsetType = UNSET
    steps: int | UnsetType = UNSET
