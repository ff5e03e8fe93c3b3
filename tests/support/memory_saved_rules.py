"""Saved approvals without a database, for tests of permission requests."""

from msgspec import UNSET

from perdure.ports import IdSource
from perdure.schema.approval.permission import ApprovalScope, SavedPlace, SavedRule
from perdure.schema.ids import ProjectID, SessionID


class MemorySavedRules:
    """Approvals that last as long as the process."""

    def __init__(self, ids: IdSource) -> None:
        self._ids = ids
        self._rules: dict[tuple[object, ...], tuple[str, SavedRule]] = {}

    async def list(self, project_id: ProjectID) -> tuple[SavedRule, ...]:
        listed = (rule for _, rule in self._rules.values())
        return tuple(rule for rule in listed if rule.project_id == project_id)

    async def list_applying(
        self, place: str, *, session_id: SessionID, agent: str, now: int
    ) -> tuple[SavedRule, ...]:
        return tuple(
            rule
            for at, rule in self._rules.values()
            if (at == place or rule.scope == "global")
            and rule.session_id in (UNSET, session_id)
            and rule.agent in (UNSET, agent)
            and (rule.expires is UNSET or rule.expires > now)
        )

    async def add(
        self, place: SavedPlace, scope: ApprovalScope, *, action: str, resources: tuple[str, ...]
    ) -> None:
        for resource in dict.fromkeys(resources):
            rule = SavedRule(
                id=self._ids.named("psv"),
                project_id=place.project_id,
                action=action,
                resource=resource,
                scope=scope.reach,
                session_id=scope.session_id if scope.reach == "session" else UNSET,
                agent=scope.agent if scope.reach == "agent" else UNSET,
                expires=UNSET if scope.expires is None else scope.expires,
            )
            same = (place.key, rule.scope, rule.session_id, rule.agent, action, resource)
            self._rules.setdefault(same, (place.key, rule))

    async def remove(self, rule_id: str) -> None:
        self._rules = {same: kept for same, kept in self._rules.items() if kept[1].id != rule_id}
