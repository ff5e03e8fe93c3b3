"""What people approved for good, by project: kept apart from the rules of agents.

The desk asks and adds; whoever manages approvals lists and removes. Keeping them on disk is an
adapter of the store.
"""

from typing import Protocol

from perdure.ports import IdSource
from perdure.schema.ids import ProjectID
from perdure.schema.permission import SavedRule


class SavedRules(Protocol):
    """Where approvals are kept. An approval is unique by project, action and resource."""

    async def list(self, project_id: ProjectID) -> tuple[SavedRule, ...]: ...
    async def add(
        self, project_id: ProjectID, *, action: str, resources: tuple[str, ...]
    ) -> None: ...
    async def remove(self, rule_id: str) -> None:
        """Forget one; unknown ids are no error."""
        ...


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
