"""The PermissionGate of a Location: decides by rules, or asks the user and waits.

location.approval.location_rules decides by the rules. An action that they leave open becomes a
pending request, published as a live event and answered by `reply`. Pending requests are kept in
memory, with the tool call that waits, and in a PendingStore; an "always" reply is saved.

A request of a tool call outlives the process: when that ends, the request is left in the store, and
the process that goes on with the call adopts it.

Invariant: a request is settled once, its settlement is published before the waiter continues, and
a cancelled waiter settles its request. A request is judged by the rules of when it was made.
"""

import asyncio
from collections.abc import Callable
from typing import assert_never

from msgspec import UNSET, UnsetType, field

from perdure.core import limits
from perdure.core.approval import rules as permission
from perdure.core.approval.request_notes import list_notes
from perdure.core.approval.rules import Decision
from perdure.location.approval import permission_texts
from perdure.location.approval.approvals import LocationApprovals
from perdure.location.approval.location_rules import Judge, LocationRules
from perdure.location.approval.stores import NoPendingStore, PendingStore
from perdure.ports import (
    IdSource,
    PermissionAsk,
    PermissionBlockedError,
    PermissionCorrectedError,
    PermissionDeclinedError,
    PermissionUnattendedError,
    UniqueViolationError,
)
from perdure.schema.approval.pending import PermissionWord, StoredRequest
from perdure.schema.approval.permission import (
    Effect,
    Headless,
    PermissionDecision,
    PermissionRequest,
    ProposedChange,
    Reply,
    Ruleset,
    SessionRules,
)
from perdure.schema.errors import PermissionConflictError, PermissionNotFoundError
from perdure.schema.ids import PermissionID, SessionID
from perdure.schema.live_event import LiveEvent, PermissionReplied
from perdure.schema.settings.agent import AgentInfo
from perdure.schema.value import State, Value


class Allowed(Value):
    pass


class Declined(Value):
    pass


class Corrected(Value):
    feedback: str


class Unanswered(Value):
    """No reply came within the timeout."""


Outcome = Allowed | Declined | Corrected | Unanswered


class _Pending(Value):
    request: PermissionRequest
    ask: PermissionAsk
    judge: Judge
    outcome: asyncio.Future[Outcome]


class PendingPermissions(State):
    """The pending requests of a Location, shared by its gates with different rules."""

    pending: dict[PermissionID, _Pending] = field(default_factory=dict[PermissionID, _Pending])
    saves: int = 0
    """Counts saved rules, so that a decision made on an older list is repeated."""
    store: PendingStore = field(default_factory=NoPendingStore)
    settled: list[PermissionID] = field(default_factory=list[PermissionID])
    """Settled requests that are still in the store."""
    suspended: bool = False
    """Whether the process ends: requests are left to the next one."""


class LocationPermissions:
    """`headless` is for a program without any person; `unattended` says what counts just now."""

    def __init__(
        self,
        *,
        rules: LocationRules,
        approvals: LocationApprovals,
        ids: IdSource,
        publish: Callable[[LiveEvent], None],
        headless: Headless = "wait",
        unattended: Callable[[], Headless] = lambda: "wait",
        reply_timeout_seconds: float | None = None,
        shared: PendingPermissions | None = None,
    ) -> None:
        self._rules = rules
        self._approvals = approvals
        self._ids = ids
        self._publish = publish
        self._headless: Headless = headless
        self._unattended = unattended
        self._reply_timeout_seconds = reply_timeout_seconds
        self._shared = shared or PendingPermissions()
        self._pending = self._shared.pending

    def with_rules(self, rules: LocationRules) -> "LocationPermissions":
        """A gate with other rules and the same pending requests."""
        return LocationPermissions(
            rules=rules,
            approvals=self._approvals,
            ids=self._ids,
            publish=self._publish,
            headless=self._headless,
            unattended=self._unattended,
            reply_timeout_seconds=self._reply_timeout_seconds,
            shared=self._shared,
        )

    async def require(self, ask: PermissionAsk) -> None:
        """ports.PermissionGate: return when allowed, else raise one of the Permission errors."""
        judge = await self._judge(ask)
        ask = _refine(ask, judge)
        decision = await self._decide(ask, judge)
        if decision.effect == "allow":
            return
        if decision.effect == "deny":
            raise PermissionBlockedError(permission_texts.denied(ask, decision))
        absence = self._headless if self._headless != "wait" else self._unattended()
        if absence == "deny":
            raise PermissionBlockedError(permission_texts.unattended(ask, decision))
        if absence == "fail":
            raise PermissionUnattendedError(permission_texts.unattended(ask, decision))
        pending = await self._open(self._ids.permission(), ask, judge)
        try:
            await asyncio.wait((pending.outcome,), timeout=self._reply_timeout_seconds)
        finally:
            if not pending.outcome.done():
                self._leave(pending)
            await self._remove_settled()
        _raise_unless_allowed(pending)
        await self._shared.store.use(pending.request.id)

    async def ask(
        self, ask: PermissionAsk, *, request_id: PermissionID | None = None
    ) -> PermissionDecision:
        """Evaluate without waiting; leaves a pending request only when the user must decide."""
        judge = await self._judge(ask)
        ask = _refine(ask, judge)
        decision = await self._decide(ask, judge)
        chosen = request_id or self._ids.permission()
        if chosen in self._pending:
            raise PermissionConflictError(chosen)
        if decision.effect == "ask":
            await self._open(chosen, ask, judge)
        return PermissionDecision(chosen, decision.effect)

    async def evaluate(self, ask: PermissionAsk) -> Effect:
        """The effect of rules and saved rules, without asking the user."""
        judge = await self._judge(ask)
        return (await self._decide(_refine(ask, judge), judge)).effect

    async def effects(self, ask: PermissionAsk) -> Callable[[str], Effect]:
        """ports.PermissionGate: what rules and saved rules say, for many resources."""
        judge = await self._judge(ask)
        is_open = judge.is_open(ask.action)
        approvals = await self._approvals.list_applying(ask) if is_open else ()
        return judge.effect(ask.action, approvals)

    def session_bounds(self, rules: SessionRules | UnsetType) -> tuple[Ruleset, ...]:
        """The rules of a Session as a layer that decides which tools it is offered."""
        current = self._approvals.session.current(rules or ())
        return (permission.narrowing_rules(current),) if current else ()

    def reading(
        self, agent: AgentInfo | None, above: tuple[str, ...], session: SessionRules = ()
    ) -> Callable[[str], Effect]:
        """What rules alone say to showing canonical paths to the agent of a turn."""
        return self._rules.reading(agent, above, self._approvals.session.current(session))

    def list(self, session_id: SessionID | None = None) -> tuple[PermissionRequest, ...]:
        """The pending requests of one Session or of all, oldest first."""
        requests = (pending.request for pending in self._pending.values())
        return tuple(r for r in requests if session_id is None or r.session_id == session_id)

    def has(self, request_id: PermissionID, session_id: SessionID) -> bool:
        """Whether this Session has this request pending."""
        pending = self._pending.get(request_id)
        return pending is not None and pending.request.session_id == session_id

    async def reply(self, request_id: PermissionID, word: PermissionWord) -> None:
        """Settle a request, and the other requests that the same reply settles."""
        await self._answer(self._find(request_id), word)
        await self._remove_settled()

    async def restore(self, request: PermissionRequest) -> None:
        """Make a request pending here that an earlier process left, and for which no call waits."""
        ask = PermissionAsk(
            session_id=request.session_id,
            agent="",
            action=request.action,
            resources=request.resources,
            save=() if request.save is UNSET else request.save,
            protected=bool(request.metadata) and request.metadata.get("protected") is True,
        )
        outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._pending[request.id] = _Pending(request, ask, Judge(rules=((),)), outcome)

    def suspend(self) -> None:
        """The process ends: leave what waits to the next one."""
        self._shared.suspended = True

    def close(self) -> None:
        """Decline all pending requests, because the Location closes."""
        if self._shared.suspended:
            self._pending.clear()
        self._decline(None)

    @property
    def waiting(self) -> bool:
        return bool(self._pending)

    async def _judge(self, ask: PermissionAsk) -> Judge:
        session = await self._approvals.session.load(ask.session_id)
        return self._rules.judge(ask.agent, ask.above, session)

    async def _decide(self, ask: PermissionAsk, judge: Judge) -> Decision:
        decision = judge.decide(ask)
        if decision.effect != "ask":
            return decision
        while True:
            saves = self._shared.saves
            approvals = await self._approvals.list_applying(ask)
            if saves == self._shared.saves:
                return judge.decide(ask, approvals)

    async def _open(self, request_id: PermissionID, ask: PermissionAsk, judge: Judge) -> _Pending:
        request = _request(request_id, ask, () if ask.changes is None else await ask.changes())
        stored = await self._adopt(request)
        if isinstance(stored.request, PermissionRequest):
            request = stored.request
        pending = _Pending(request, ask, judge, asyncio.get_running_loop().create_future())
        try:
            if stored.request is None:
                await self._shared.store.add(request)
            elif await self._claim(pending):
                return pending
            if len(self._pending) >= limits.PERMISSIONS_PENDING_MAX:
                raise PermissionBlockedError(
                    f"Too many permission requests are waiting ({limits.PERMISSIONS_PENDING_MAX})."
                )
            # Published first: a request that no client can see must not be waited for.
            self._publish(request)
        except UniqueViolationError as error:
            raise PermissionConflictError(request_id) from error
        except BaseException:
            if request.id in self._pending:
                self._leave(pending)
            self._shared.settled.append(request.id)
            await self._remove_settled()
            raise
        self._pending[request.id] = pending
        return pending

    async def _adopt(self, request: PermissionRequest) -> StoredRequest:
        """What an earlier process of the same call left; what is void of it is published."""
        stored = await self._shared.store.adopt(request) or StoredRequest(None)
        for void in stored.void:
            if isinstance(void, PermissionRequest):
                self._publish(
                    PermissionReplied(
                        session_id=void.session_id, request_id=void.id, reply="reject"
                    )
                )
        return stored

    async def _claim(self, pending: _Pending) -> bool:
        """Take over a request of an earlier process; return whether it is answered already."""
        request_id = pending.request.id
        # Pending first: at no moment is it shown by no process.
        self._pending[request_id] = pending
        word = await self._shared.store.claim(request_id)
        if isinstance(word, PermissionWord) and request_id in self._pending:
            await self._answer(pending, word)
        return pending.outcome.done()

    async def _answer(self, pending: _Pending, word: PermissionWord) -> None:
        match word.reply:
            case "once":
                self._settle(pending, "once", Allowed())
            case "always":
                await self._approve(pending, word)
            case "reject":
                said = word.message or None
                self._settle(pending, "reject", Corrected(said) if said else Declined())
                self._decline(pending.request.session_id)
            case _:
                assert_never(word.reply)

    def _leave(self, pending: _Pending) -> None:
        """Its call does not wait any more: it was interrupted, is too late, or its process ends."""
        if self._shared.suspended:
            self._pending.pop(pending.request.id, None)
        else:
            self._settle(pending, "reject", Unanswered())

    async def _remove_settled(self) -> None:
        """Remove settled requests from the store."""
        settled, self._shared.settled = self._shared.settled, []
        if settled:
            await self._shared.store.remove(settled)

    def _find(self, request_id: PermissionID) -> _Pending:
        pending = self._pending.get(request_id)
        if pending is None:
            raise PermissionNotFoundError(request_id)
        return pending

    def _settle(self, pending: _Pending, reply: Reply, outcome: Outcome) -> None:
        del self._pending[pending.request.id]
        self._shared.settled.append(pending.request.id)
        self._publish(
            PermissionReplied(
                session_id=pending.request.session_id, request_id=pending.request.id, reply=reply
            )
        )
        if not pending.outcome.done():
            pending.outcome.set_result(outcome)

    async def _approve(self, pending: _Pending, word: PermissionWord) -> None:
        saved = await self._approvals.save(pending.ask, word)
        self._shared.saves += saved
        # The request may have been settled, or its waiter cancelled, while the rule was saved.
        if pending.request.id in self._pending:
            self._settle(pending, "always", Allowed())
        for other in tuple(self._pending.values()) if saved else ():
            approvals = await self._approvals.list_applying(other.ask)
            is_pending = other.request.id in self._pending
            if is_pending and other.judge.decide(other.ask, approvals).effect == "allow":
                self._settle(other, "always", Allowed())

    def _decline(self, session_id: SessionID | None) -> None:
        for pending in tuple(self._pending.values()):
            if session_id is None or pending.request.session_id == session_id:
                self._settle(pending, "reject", Declined())


def _refine(ask: PermissionAsk, judge: Judge) -> PermissionAsk:
    if ask.refine is None:
        return ask
    return ask.refine() if judge.is_open(ask.action) else ask


def _request(
    request_id: PermissionID, ask: PermissionAsk, changes: tuple[ProposedChange, ...]
) -> PermissionRequest:
    notes = list_notes(ask.resources, ask.metadata or {}, [change.patch for change in changes])
    return PermissionRequest(
        id=request_id,
        session_id=ask.session_id,
        action=ask.action,
        resources=ask.resources,
        save=ask.save or UNSET,
        metadata=UNSET if ask.metadata is None else ask.metadata,
        source=ask.source or UNSET,
        changes=changes or UNSET,
        notes=tuple(notes) or UNSET,
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
            raise PermissionBlockedError(permission_texts.unanswered(pending.ask))
        case _:
            assert_never(outcome)
