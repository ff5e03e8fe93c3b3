"""What may be done: rules, and the request put to a person when a rule says `ask`."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import JsonObject, Record
from perdure.schema.ids import MessageID, PermissionID, ProjectID, SessionID, ToolCallID

Effect = Literal["allow", "deny", "ask"]
Reply = Literal["once", "always", "reject"]
Headless = Literal["wait", "deny"]
"""What happens when a person is needed: wait for one, or refuse because none will come."""


class Rule(Record):
    """Both patterns are wildcards; the last matching rule of a set wins."""

    action: str
    resource: str
    effect: Effect


Ruleset = tuple[Rule, ...]


class PermissionSource(Record):
    """The tool call that wants to know."""

    type: Literal["tool"]
    message_id: MessageID
    call_id: ToolCallID


class PermissionInput(Record):
    """What somebody wants to do, before it is known whether a person must be asked."""

    action: str
    resources: tuple[str, ...]
    save: tuple[str, ...] | UnsetType = UNSET
    metadata: JsonObject | UnsetType = UNSET
    source: PermissionSource | UnsetType = UNSET


class PermissionDecision(Record):
    """What an asker is told. A request with this id is pending only when the effect is `ask`."""

    id: PermissionID
    effect: Effect


class PermissionRequest(Record):
    id: PermissionID
    session_id: SessionID
    action: str
    resources: tuple[str, ...]
    save: tuple[str, ...] | UnsetType = UNSET
    metadata: JsonObject | UnsetType = UNSET
    source: PermissionSource | UnsetType = UNSET


class SavedRule(Record):
    """Something a person approved for good, for one project."""

    id: str
    project_id: ProjectID
    action: str
    resource: str
