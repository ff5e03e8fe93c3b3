"""The PermissionGate of a Location: who waits for a person's word, and what the word was.

Rules are evaluated in core.approval.rules. What they leave open becomes a pending request,
announced to whoever listens and answered by `reply`. Pending requests live in memory, with the tool
call that waits for them, and in the book; what a person approves for good goes to SavedRules.

Invariant: a request is settled once, its settlement is announced before the waiter goes on, and a
waiter that goes away takes its request with it. Rules are those of when the request was made.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import assert_never

from msgspec import UNSET, field

from perdure.core import limits
from perdure.core.approval import rules as permission
from perdure.core.approval.rules import Decision
from perdure.core.session import subagent
from perdure.location.approval.stores import NoPendingStore, PendingStore, SavedRules
from perdure.ports import (
    IdSource,
    PermissionAsk,
    PermissionBlockedError,
    PermissionCorrectedError,
    PermissionDeclinedError,
    UniqueViolationError,
)
from perdure.schema.approval.permission import (
    Effect,
    Headless,
    PermissionDecision,
    PermissionRequest,
    Reply,
    Ruleset,
)
from perdure.schema.errors import PermissionConflictError, PermissionNotFoundError
from perdure.schema.ids import PermissionID, ProjectID, SessionID
from perdure.schema.live_event import LiveEvent, PermissionReplied
from perdure.schema.value import State, Value


class Allowed(Value):
    pass


class Declined(Value):
    pass


class Corrected(Value):
    feedback: str


class Unanswered(Value):
    """Nobody said anything for as long as we were to wait."""


Outcome = Allowed | Declined | Corrected | Unanswered


class _Pending(Value):
    request: PermissionRequest
    ask: PermissionAsk
    rules: Ruleset
    outcome: asyncio.Future[Outcome]


class PendingPermissions(State):
    """What those who are judged by different rules have in common."""

    pending: dict[PermissionID, _Pending] = field(default_factory=dict[PermissionID, _Pending])
    saves: int = 0
    """Counts approvals, so that a decision made on an older list is made again."""
    book: PendingStore = field(default_factory=NoPendingStore)
    settled: list[PermissionID] = field(default_factory=list[PermissionID])
    """No longer pending, and still in the book."""


class LocationPermissions:
    def __init__(
        self,
        *,
        rules: Callable[[str], Ruleset],
        saved: SavedRules,
        project: Callable[[], Awaitable[ProjectID]],
        ids: IdSource,
        publish: Callable[[LiveEvent], None],
        headless: Headless = "wait",
        patience_seconds: float | None = None,
        desk: PendingPermissions | None = None,
    ) -> None:
        self._rules = rules
        self._saved = saved
        self._project = project
        self._ids = ids
        self._publish = publish
        self._headless: Headless = headless
        self._patience_seconds = patience_seconds
        self._desk = desk or PendingPermissions()
        self._pending = self._desk.pending

    def under(self, rules: Callable[[str], Ruleset]) -> "LocationPermissions":
        """The same desk, with what waits there, for those who are judged by other rules."""
        return LocationPermissions(
            rules=rules,
            saved=self._saved,
            project=self._project,
            ids=self._ids,
            publish=self._publish,
            headless=self._headless,
            patience_seconds=self._patience_seconds,
            desk=self._desk,
        )

    async def require(self, ask: PermissionAsk) -> None:
        """ports.PermissionGate: return when allowed, else raise one of the Permission errors."""
        ask = self._refined(ask)
        decision = await self._decide(ask)
        if decision.effect == "allow":
            return
        if decision.effect == "deny":
            raise PermissionBlockedError(_denied(ask, decision))
        if self._headless == "deny":
            raise PermissionBlockedError(_unattended(ask, decision))
        pending = await self._open(self._ids.permission(), ask)
        try:
            await asyncio.wait((pending.outcome,), timeout=self._patience_seconds)
        finally:
            if not pending.outcome.done():
                self._settle(pending, "reject", Unanswered())
            await self._tidy()
        _raise_unless_allowed(pending)

    async def ask(
        self, ask: PermissionAsk, *, request_id: PermissionID | None = None
    ) -> PermissionDecision:
        """Evaluate without waiting; a request is left pending only when a person must decide."""
        ask = self._refined(ask)
        decision = await self._decide(ask)
        chosen = request_id or self._ids.permission()
        if chosen in self._pending:
            raise PermissionConflictError(chosen)
        if decision.effect == "ask":
            await self._open(chosen, ask)
        return PermissionDecision(chosen, decision.effect)

    async def judge(self, ask: PermissionAsk) -> Effect:
        """What rules and approvals say. Nobody is asked, and nothing is left pending."""
        return (await self._decide(self._refined(ask))).effect

    def list(self, session_id: SessionID | None = None) -> tuple[PermissionRequest, ...]:
        """What is pending, oldest first, of one Session or of all."""
        requests = (pending.request for pending in self._pending.values())
        return tuple(r for r in requests if session_id is None or r.session_id == session_id)

    def has(self, request_id: PermissionID, session_id: SessionID) -> bool:
        """Whether this Session has this request pending."""
        pending = self._pending.get(request_id)
        return pending is not None and pending.request.session_id == session_id

    async def reply(
        self, request_id: PermissionID, reply: Reply, *, message: str | None = None
    ) -> None:
        """Settle a request, and with it those that the same word settles."""
        pending = self._find(request_id)
        match reply:
            case "once":
                self._settle(pending, "once", Allowed())
            case "always":
                await self._approve(pending)
            case "reject":
                self._settle(pending, "reject", Corrected(message) if message else Declined())
                self._decline(pending.request.session_id)
            case _:
                assert_never(reply)
        await self._tidy()

    def close(self) -> None:
        """The Location goes away: nobody will answer any more."""
        self._decline(None)

    @property
    def waiting(self) -> bool:
        return bool(self._pending)

    def _refined(self, ask: PermissionAsk) -> PermissionAsk:
        if ask.refine is None:
            return ask
        judges = (self._rules(ask.agent), *subagent.inherited_rules(ask.above, self._rules))
        effects = {permission.common_effect(rules, ask.action) for rules in judges}
        return ask if effects <= {"allow", "deny"} else ask.refine()

    async def _decide(self, ask: PermissionAsk) -> Decision:
        rules = self._rules(ask.agent)
        bounds = subagent.inherited_rules(ask.above, self._rules)
        if denied := subagent.find_denial(
            bounds, action=ask.action, resources=ask.resources, parts=ask.parts
        ):
            return denied
        if ask.protected:
            return permission.decide_protected(rules, action=ask.action, resources=ask.resources)
        decision = permission.decide(
            rules, (), action=ask.action, resources=ask.resources, parts=ask.parts
        )
        if decision.effect != "ask":
            return decision
        while True:
            saves = self._desk.saves
            approvals = await self._approvals()
            if saves == self._desk.saves:
                return permission.decide(
                    rules,
                    approvals,
                    action=ask.action,
                    resources=ask.resources,
                    parts=ask.parts,
                )

    async def _approvals(self) -> Ruleset:
        saved = await self._saved.list(await self._project())
        return permission.approvals((rule.action, rule.resource) for rule in saved)

    async def _open(self, request_id: PermissionID, ask: PermissionAsk) -> _Pending:
        rules = self._rules(ask.agent)
        request = _request(request_id, ask)
        pending = _Pending(request, ask, rules, asyncio.get_running_loop().create_future())
        try:
            await self._desk.book.add(request)
            if len(self._pending) >= limits.PERMISSIONS_PENDING_MAX:
                raise PermissionBlockedError(
                    f"Too many permission requests are waiting ({limits.PERMISSIONS_PENDING_MAX})."
                )
            # Announced first: a request that nobody can hear of must not be waited for.
            self._publish(request)
        except UniqueViolationError as error:
            raise PermissionConflictError(request_id) from error
        except BaseException:
            self._desk.settled.append(request_id)
            await self._tidy()
            raise
        self._pending[request_id] = pending
        return pending

    async def _tidy(self) -> None:
        """Take from the book what is settled."""
        settled, self._desk.settled = self._desk.settled, []
        if settled:
            await self._desk.book.remove(settled)

    def _find(self, request_id: PermissionID) -> _Pending:
        pending = self._pending.get(request_id)
        if pending is None:
            raise PermissionNotFoundError(request_id)
        return pending

    def _settle(self, pending: _Pending, reply: Reply, outcome: Outcome) -> None:
        del self._pending[pending.request.id]
        self._desk.settled.append(pending.request.id)
        self._publish(
            PermissionReplied(
                session_id=pending.request.session_id, request_id=pending.request.id, reply=reply
            )
        )
        if not pending.outcome.done():
            pending.outcome.set_result(outcome)

    async def _approve(self, pending: _Pending) -> None:
        save = pending.ask.save
        if not save:
            self._settle(pending, "always", Allowed())
            return
        project = await self._project()
        await self._saved.add(project, action=pending.ask.action, resources=save)
        self._desk.saves += 1
        approvals = await self._approvals()
        # While it was being saved the request may have been settled, or its waiter have gone.
        if pending.request.id in self._pending:
            self._settle(pending, "always", Allowed())
        for other in tuple(self._pending.values()):
            if _allows(other, approvals):
                self._settle(other, "always", Allowed())

    def _decline(self, session_id: SessionID | None) -> None:
        for pending in tuple(self._pending.values()):
            if session_id is None or pending.request.session_id == session_id:
                self._settle(pending, "reject", Declined())


def _allows(pending: _Pending, approvals: Ruleset) -> bool:
    ask = pending.ask
    if ask.protected:
        return False
    decision = permission.decide(
        pending.rules, approvals, action=ask.action, resources=ask.resources, parts=ask.parts
    )
    return decision.effect == "allow"


def _request(request_id: PermissionID, ask: PermissionAsk) -> PermissionRequest:
    return PermissionRequest(
        id=request_id,
        session_id=ask.session_id,
        action=ask.action,
        resources=ask.resources,
        save=ask.save or UNSET,
        metadata=UNSET if ask.metadata is None else ask.metadata,
        source=ask.source or UNSET,
    )


def _raise_unless_allowed(pending: _Pending) -> None:
    outcome = pending.outcome.result()
    match outcome:
        case Allowed():
            return
        case Declined():
            raise PermissionDeclinedError("The person declined.")
        case Corrected(feedback=feedback):
            raise PermissionCorrectedError(feedback)
        case Unanswered():
            raise PermissionBlockedError(_unanswered(pending.ask))
        case _:
            assert_never(outcome)


def _denied(ask: PermissionAsk, decision: Decision) -> str:
    rule = decision.rule
    assert rule is not None, "only a rule denies"
    return (
        f"Denied by the rule {rule.action} {rule.resource}: agent {ask.agent!r} may not "
        f"{ask.action} {decision.resource}."
    )


def _unattended(ask: PermissionAsk, decision: Decision) -> str:
    said = f"{ask.action} {decision.resource} needs a person's approval, and nobody is there to "
    if ask.protected:
        return f"{said}give it. It is protected: no permission rule can allow it."
    return f"{said}give it. A permission rule that allows it would let it pass."


def _unanswered(ask: PermissionAsk) -> str:
    shown = ", ".join(ask.resources)
    return f"{ask.action} {shown} needs a person's approval, and nobody answered in time."
