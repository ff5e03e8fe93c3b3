"""Ports for stored approvals: pending requests, and the rules that a user saved.

A process keeps its own pending requests in memory; the store shows them to other processes, also
after a crash. The adapters are in store.tables.
"""

from collections.abc import Sequence
from typing import Protocol

from perdure.schema.approval.pending import PendingRequest, PendingWord, StoredRequest
from perdure.schema.approval.permission import ApprovalScope, SavedPlace, SavedRule
from perdure.schema.ids import ProjectID, SessionID


class PendingStore(Protocol):
    """Stores the pending requests of one Location."""

    async def add(self, request: PendingRequest) -> None:
        """Store a request durably. Raises UniqueViolationError when the id is taken."""
        ...

    async def remove(self, ids: Sequence[str]) -> None:
        """Remove settled requests. Never fails: a row that stays does no harm.

        One of a tool call stays until the call is settled.
        """
        ...

    async def adopt(self, request: PendingRequest) -> StoredRequest | None:
        """Find what the same call left in a process that is gone."""
        ...

    async def claim(self, request_id: str) -> PendingWord | None:
        """Take over a request that waits here now; return the answer that it already has."""
        ...

    async def use(self, request_id: str) -> None:
        """Record that the call goes on with the answer, before it does."""
        ...


class NoPendingStore:
    """Stores nothing: pending requests stay private to the process."""

    async def add(self, request: PendingRequest) -> None:
        return

    async def remove(self, ids: Sequence[str]) -> None:
        return

    async def adopt(self, request: PendingRequest) -> StoredRequest | None:
        return None

    async def claim(self, request_id: str) -> PendingWord | None:
        return None

    async def use(self, request_id: str) -> None:
        return


class SavedRules(Protocol):
    """Stores saved approvals, unique by place, scope, action and resource."""

    async def list(self, project_id: ProjectID) -> tuple[SavedRule, ...]:
        """All approvals of a project, for display."""
        ...

    async def list_applying(
        self, place: str, *, session_id: SessionID, agent: str, now: int
    ) -> tuple[SavedRule, ...]:
        """The approvals that count for an agent of a Session at a place."""
        ...

    async def add(
        self, place: SavedPlace, scope: ApprovalScope, *, action: str, resources: tuple[str, ...]
    ) -> None: ...
    async def remove(self, rule_id: str) -> None:
        """Remove a rule; an unknown id is not an error."""
        ...
