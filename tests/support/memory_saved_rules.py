"""Saved approvals without a database, for tests of permission requests."""

from perdure.ports import IdSource
from perdure.schema.approval.permission import SavedRule
from perdure.schema.ids import ProjectID


class MemorySavedRules:
    """Approvals that last as long as the process."""

    def __init__(self, ids: IdSource) -> None:
        self._ids = ids
        self._rules: dict[str, SavedRule] = {}

    async def list(self, project_id: ProjectID) -> tuple[SavedRule, ...]:
        return tuple(rule for rule in self._rules.values() if rule.project_id == project_id)

    async def add(self, project_id: ProjectID, *, action: str, resources: tuple[str, ...]) -> None:
        known = {(rule.action, rule.resource) for rule in await self.list(project_id)}
        for resource in dict.fromkeys(resources):
            if (action, resource) not in known:
                rule = SavedRule(
                    id=self._ids.named("psv"),
                    project_id=project_id,
                    action=action,
                    resource=resource,
                )
                self._rules[rule.id] = rule

    async def remove(self, rule_id: str) -> None:
        self._rules.pop(rule_id, None)
