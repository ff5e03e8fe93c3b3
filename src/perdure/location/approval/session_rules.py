"""The rules of one Session, given when it was created or later: those that count now."""

from collections.abc import Awaitable, Callable
from typing import Final

from perdure.core.approval import rules as permission
from perdure.ports import Clock
from perdure.schema.approval.permission import Ruleset, SessionRules
from perdure.schema.ids import SessionID
from perdure.schema.value import Value

LoadRules = Callable[[SessionID], Awaitable[SessionRules]]
"""Reads the rules of a Session; none if there is no such Session."""


async def load_nothing(session_id: SessionID) -> SessionRules:
    return ()


class SessionRuleSource(Value):
    load_all: LoadRules = load_nothing
    clock: Clock | None = None
    """None: nothing expires."""
    home: str = ""

    async def load(self, session_id: SessionID) -> Ruleset:
        return self.current(await self.load_all(session_id))

    def current(self, rules: SessionRules) -> Ruleset:
        """Those that have not expired, with `~` expanded as in a configuration."""
        now = 0 if self.clock is None else self.clock.now_millis()
        return permission.expand_home(permission.current_rules(rules, now), self.home)


NO_SESSION_RULES: Final = SessionRuleSource()
