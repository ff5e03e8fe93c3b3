"""What people approved for good, by project: kept apart from the rules of agents.

The desk asks and adds; whoever manages approvals lists and removes. Keeping them on disk is an
adapter of the store.
"""

from typing import Protocol

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
