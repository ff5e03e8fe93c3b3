"""The saved approvals of a Location: which of them count for a request, and saving new ones.

They count at the place of the Location (location.project.place). While that cannot be looked at,
none counts and none is saved.
"""

from collections.abc import Awaitable, Callable

from msgspec import UNSET

from perdure.core.approval import rules as permission
from perdure.location.approval.session_rules import NO_SESSION_RULES, SessionRuleSource
from perdure.location.approval.stores import SavedRules
from perdure.ports import Clock, PermissionAsk
from perdure.schema.approval.pending import PermissionWord
from perdure.schema.approval.permission import ApprovalScope, Ruleset, SavedPlace


class LocationApprovals:
    def __init__(
        self,
        saved: SavedRules,
        *,
        place: Callable[[], Awaitable[SavedPlace | None]],
        clock: Clock,
        session: SessionRuleSource = NO_SESSION_RULES,
    ) -> None:
        self.session = session
        """The rules that a person gave to single Sessions."""
        self._saved = saved
        self._place = place
        self._clock = clock

    async def list_applying(self, ask: PermissionAsk) -> Ruleset:
        """The approvals that count for a request, as rules that allow."""
        place = await self._place()
        if place is None:
            return ()
        saved = await self._saved.list_applying(
            place.key, session_id=ask.session_id, agent=ask.agent, now=self._clock.now_millis()
        )
        return permission.approvals((rule.action, rule.resource) for rule in saved)

    async def save(self, ask: PermissionAsk, word: PermissionWord) -> bool:
        """Save what an `always` allows; False if there is nothing to save, or no place for it."""
        place = await self._place() if ask.save else None
        if place is None:
            return False
        until = None
        if word.seconds is not UNSET:
            until = self._clock.now_millis() + word.seconds * 1000
        scope = ApprovalScope(
            session_id=ask.session_id, agent=ask.agent, reach=word.scope or "project", expires=until
        )
        await self._saved.add(place, scope, action=ask.action, resources=ask.save)
        return True
