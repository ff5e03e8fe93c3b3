"""Where the desks of a Location write down who waits, so that it is known beyond their process.

The desk itself knows who waits with it; the book is for other processes, and for whoever comes
after a crash. Keeping it on disk is an adapter of the store.
"""

from collections.abc import Sequence
from typing import Protocol

from perdure.schema.approval.pending import PendingRequest
from perdure.schema.approval.permission import SavedRule
from perdure.schema.ids import ProjectID


class PendingStore(Protocol):
    async def add(self, request: PendingRequest) -> None:
        """Durable when this returns; raises UniqueViolationError when the id is taken."""
        ...

    async def remove(self, ids: Sequence[str]) -> None:
        """They wait no longer. Never fails: what stays by mistake does no harm."""
        ...


class NoPendingStore:
    """For a desk that nobody beyond its process has to know of."""

    async def add(self, request: PendingRequest) -> None:
        return

    async def remove(self, ids: Sequence[str]) -> None:
        return


class SavedRules(Protocol):
    """Where approvals are kept. An approval is unique by project, action and resource."""

    async def list(self, project_id: ProjectID) -> tuple[SavedRule, ...]: ...
    async def add(
        self, project_id: ProjectID, *, action: str, resources: tuple[str, ...]
    ) -> None: ...
    async def remove(self, rule_id: str) -> None:
        """Forget one; unknown ids are no error."""
        ...
