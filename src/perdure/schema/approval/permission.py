"""Permission rules, and the request to a person if a rule says `ask`."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import JsonObject, Record
from perdure.schema.ids import MessageID, PermissionID, ProjectID, SessionID, ToolCallID
from perdure.schema.value import Value

Effect = Literal["allow", "deny", "ask"]
Reply = Literal["once", "always", "reject"]
Headless = Literal["wait", "deny", "fail"]
"""If a person is needed: wait for one, refuse so that the model goes on, or let the run fail."""


class Rule(Record):
    """A permission rule with two wildcard patterns; the last matching rule of a set wins."""

    action: str
    resource: str
    effect: Effect


Ruleset = tuple[Rule, ...]


class SessionRule(Record):
    """A rule for one Session and those below it. The last that matches and has not expired wins.

    It can deny and ask, and allow what would be asked about. It allows nothing that a rule denies.
    """

    action: str
    resource: str
    effect: Effect
    expires: int | UnsetType = UNSET
    """Time in milliseconds after which it no longer counts."""


SessionRules = tuple[SessionRule, ...]


class PermissionSource(Record):
    """The tool call that asks."""

    type: Literal["tool"]
    message_id: MessageID
    call_id: ToolCallID


class PermissionInput(Record):
    """A permission question, before rules decide whether a person must be asked."""

    action: str
    resources: tuple[str, ...]
    save: tuple[str, ...] | UnsetType = UNSET
    metadata: JsonObject | UnsetType = UNSET
    source: PermissionSource | UnsetType = UNSET


class PermissionDecision(Record):
    """The decision. A request with this id is pending only if the effect is `ask`."""

    id: PermissionID
    effect: Effect


class ProposedChange(Record):
    """What a tool would do to one file if it is allowed."""

    path: str
    status: Literal["added", "modified", "deleted"]
    additions: int
    deletions: int
    patch: str
    """A unified diff; its beginning if it is very long, and then the last line says so."""


class PermissionRequest(Record):
    id: PermissionID
    session_id: SessionID
    action: str
    resources: tuple[str, ...]
    save: tuple[str, ...] | UnsetType = UNSET
    metadata: JsonObject | UnsetType = UNSET
    source: PermissionSource | UnsetType = UNSET
    changes: tuple[ProposedChange, ...] | UnsetType = UNSET
    """An extension: the changes of files that are asked about."""
    notes: tuple[str, ...] | UnsetType = UNSET
    """An extension: what is unusual about it, in words for the person who decides."""


Scope = Literal["session", "agent", "project", "global"]
"""How far a saved approval reaches: one Session, one agent of a project, a project, everything."""


class SavedPlace(Value):
    """Where approvals are given and count; see location.project.place."""

    project_id: ProjectID
    key: str
    directory: str


class ApprovalScope(Value, kw_only=True):
    """How far an approval of one agent's request reaches, and until when."""

    session_id: SessionID
    agent: str
    reach: Scope = "project"
    expires: int | None = None
    """Time in milliseconds."""


class SavedRule(Record):
    """An approval that a person saved.

    It counts at one place on this machine, whose directory was `directory` when it was given. One
    with neither `directory` nor the scope `global` is of an older version and counts nowhere.
    """

    id: str
    project_id: ProjectID
    action: str
    resource: str
    scope: Scope | UnsetType = UNSET
    directory: str | UnsetType = UNSET
    session_id: SessionID | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    expires: int | UnsetType = UNSET
    """Time in milliseconds after which it no longer counts."""
