"""The QuestionDesk of a Location: who waits for a person's answers, and what the answers were.

Pending requests live in memory, with the tool call that waits for them. Whether a tool may ask at
all is a permission and decided before. What an answer may be is in core.answers.

Invariant: a request is settled once, its settlement is announced before the waiter goes on, and a
waiter that goes away takes its request with it.
"""

import asyncio
from collections.abc import Callable
from typing import assert_never

from msgspec import UNSET

from perdure.core import answers, limits
from perdure.ports import IdSource, QuestionAsk, QuestionBlockedError, QuestionRejectedError
from perdure.schema.errors import QuestionNotFoundError
from perdure.schema.ids import QuestionID, SessionID
from perdure.schema.live_event import LiveEvent, QuestionRejected, QuestionReplied
from perdure.schema.permission import Headless
from perdure.schema.question import Answers, QuestionRequest
from perdure.schema.value import Value


class Answered(Value):
    answers: Answers


class Rejected(Value):
    pass


Outcome = Answered | Rejected


class _Pending(Value):
    request: QuestionRequest
    outcome: asyncio.Future[Outcome]


class LocationQuestions:
    def __init__(
        self,
        *,
        ids: IdSource,
        publish: Callable[[LiveEvent], None],
        headless: Headless = "wait",
    ) -> None:
        self._ids = ids
        self._publish = publish
        self._headless: Headless = headless
        self._pending: dict[QuestionID, _Pending] = {}

    async def ask(self, ask: QuestionAsk) -> Answers:
        """ports.QuestionDesk: the answers, or one of the Question errors."""
        if self._headless == "deny":
            raise QuestionBlockedError("Nobody is there to answer. Go on without the answers.")
        pending = self._open(ask)
        try:
            outcome = await pending.outcome
        finally:
            self._pending.pop(pending.request.id, None)
        match outcome:
            case Answered(answers=given):
                return given
            case Rejected():
                raise QuestionRejectedError("The person would not answer.")
            case _:
                assert_never(outcome)

    def list(self, session_id: SessionID | None = None) -> tuple[QuestionRequest, ...]:
        """What is pending, oldest first, of one Session or of all."""
        requests = (pending.request for pending in self._pending.values())
        return tuple(r for r in requests if session_id is None or r.session_id == session_id)

    def get(self, request_id: QuestionID) -> QuestionRequest:
        """A pending request; raises QuestionNotFoundError."""
        return self._find(request_id).request

    def reply(self, request_id: QuestionID, given: Answers) -> None:
        """Settle a request with its answers.

        Raises InvalidRequestError when they do not fit the questions; the request then still waits.
        """
        pending = self._find(request_id)
        answers.check(pending.request.questions, given)
        request = pending.request
        event = QuestionReplied(session_id=request.session_id, request_id=request.id, answers=given)
        self._settle(pending, event, Answered(given))

    def reject(self, request_id: QuestionID) -> None:
        """Settle a request without answers: the run that asked stops."""
        pending = self._find(request_id)
        request = pending.request
        event = QuestionRejected(session_id=request.session_id, request_id=request.id)
        self._settle(pending, event, Rejected())

    def close(self) -> None:
        """The Location goes away: nobody will answer any more."""
        for request_id in tuple(self._pending):
            self.reject(request_id)

    @property
    def waiting(self) -> bool:
        return bool(self._pending)

    def _open(self, ask: QuestionAsk) -> _Pending:
        if len(self._pending) >= limits.QUESTIONS_PENDING_MAX:
            raise QuestionBlockedError(
                f"Too many questions are waiting for an answer ({limits.QUESTIONS_PENDING_MAX})."
            )
        request = QuestionRequest(
            id=QuestionID(self._ids.named("que")),
            session_id=ask.session_id,
            questions=ask.questions,
            tool=ask.tool or UNSET,
        )
        pending = _Pending(request, asyncio.get_running_loop().create_future())
        # Announced first: a request that nobody can hear of must not be waited for.
        self._publish(request)
        self._pending[request.id] = pending
        return pending

    def _find(self, request_id: QuestionID) -> _Pending:
        pending = self._pending.get(request_id)
        if pending is None:
            raise QuestionNotFoundError(request_id)
        return pending

    def _settle(self, pending: _Pending, event: LiveEvent, outcome: Outcome) -> None:
        del self._pending[pending.request.id]
        self._publish(event)
        if not pending.outcome.done():
            pending.outcome.set_result(outcome)
