"""The Questioner of a Location: asks the user questions and waits for the answers.

Pending requests are kept in memory, with the tool call that waits, and in a PendingStore. Whether
a tool may ask at all is a permission and decided before. core.approval.question_answers checks the
answers.

Invariant: a request is settled once, its settlement is published before the waiter continues, and
a cancelled waiter removes its request.
"""

import asyncio
from collections.abc import Callable
from typing import assert_never

from msgspec import UNSET

from perdure.core import limits
from perdure.core.approval import question_answers
from perdure.location.approval.stores import NoPendingStore, PendingStore
from perdure.ports import (
    IdSource,
    QuestionAsk,
    QuestionBlockedError,
    QuestionRejectedError,
    QuestionUnattendedError,
)
from perdure.schema.approval.pending import AnswersGiven, PendingWord, StoredRequest
from perdure.schema.approval.permission import Headless
from perdure.schema.approval.question import Answers, QuestionRequest
from perdure.schema.errors import QuestionNotFoundError
from perdure.schema.ids import QuestionID, SessionID
from perdure.schema.live_event import LiveEvent, QuestionRejected, QuestionReplied
from perdure.schema.value import Value


class Answered(Value):
    answers: Answers


class Rejected(Value):
    pass


class Unanswered(Value):
    """No reply came within the timeout."""


Outcome = Answered | Rejected | Unanswered


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
        unattended: Callable[[], Headless] = lambda: "wait",
        reply_timeout_seconds: float | None = None,
        store: PendingStore | None = None,
    ) -> None:
        self._ids = ids
        self._publish = publish
        self._headless: Headless = headless
        self._unattended = unattended
        self._reply_timeout_seconds = reply_timeout_seconds
        self._store: PendingStore = store or NoPendingStore()
        self._pending: dict[QuestionID, _Pending] = {}
        self._suspended = False

    async def ask(self, ask: QuestionAsk) -> Answers:
        """ports.Questioner: return the answers, or raise one of the Question errors."""
        absence = self._headless if self._headless != "wait" else self._unattended()
        if absence == "deny":
            raise QuestionBlockedError("Nobody is there to answer. Go on without the answers.")
        if absence == "fail":
            raise QuestionUnattendedError("A question needs a person, and none is there to answer.")
        pending = await self._open(ask)
        try:
            await asyncio.wait((pending.outcome,), timeout=self._reply_timeout_seconds)
        finally:
            if not pending.outcome.done() and not self._suspended:
                self._refuse(pending, Unanswered())
            self._pending.pop(pending.request.id, None)
            await self._store.remove([pending.request.id])
        outcome = pending.outcome.result()
        match outcome:
            case Answered(answers=answers):
                return answers
            case Rejected():
                raise QuestionRejectedError("The person would not answer.")
            case Unanswered():
                raise QuestionBlockedError("Nobody answered in time. Go on without the answers.")
            case _:
                assert_never(outcome)

    def list(self, session_id: SessionID | None = None) -> tuple[QuestionRequest, ...]:
        """The pending requests of one Session or of all, oldest first."""
        requests = (pending.request for pending in self._pending.values())
        return tuple(r for r in requests if session_id is None or r.session_id == session_id)

    def has(self, request_id: QuestionID, session_id: SessionID) -> bool:
        """Whether this Session has this request pending."""
        pending = self._pending.get(request_id)
        return pending is not None and pending.request.session_id == session_id

    def reply(self, request_id: QuestionID, answers: Answers) -> None:
        """Settle a request with its answers.

        Raises InvalidRequestError when they do not fit the questions; the request stays pending.
        """
        pending = self._find(request_id)
        question_answers.check_answers(pending.request.questions, answers)
        request = pending.request
        event = QuestionReplied(
            session_id=request.session_id, request_id=request.id, answers=answers
        )
        self._settle(pending, event, Answered(answers))

    def reject(self, request_id: QuestionID) -> None:
        """Settle a request without answers: the run that asked stops."""
        self._refuse(self._find(request_id), Rejected())

    def suspend(self) -> None:
        """The process ends: leave what waits to the next one."""
        self._suspended = True

    def close(self) -> None:
        """Reject all pending requests, because the Location closes."""
        if self._suspended:
            self._pending.clear()
        for request_id in tuple(self._pending):
            self.reject(request_id)

    @property
    def waiting(self) -> bool:
        return bool(self._pending)

    async def _open(self, ask: QuestionAsk) -> _Pending:
        request = QuestionRequest(
            id=QuestionID(self._ids.named("que")),
            session_id=ask.session_id,
            questions=ask.questions,
            tool=ask.tool or UNSET,
        )
        stored = await self._store.adopt(request) or StoredRequest(None)
        for void in stored.void:
            if isinstance(void, QuestionRequest):
                self._publish(QuestionRejected(session_id=void.session_id, request_id=void.id))
        if isinstance(stored.request, QuestionRequest):
            request = stored.request
        pending = _Pending(request, asyncio.get_running_loop().create_future())
        try:
            if stored.request is None:
                await self._store.add(request)
            elif await self._claim(pending):
                return pending
            if len(self._pending) >= limits.QUESTIONS_PENDING_MAX:
                most = limits.QUESTIONS_PENDING_MAX
                raise QuestionBlockedError(f"Too many questions wait for an answer ({most}).")
            # Published first: a request that no client can see must not be waited for.
            self._publish(request)
        except BaseException:
            if request.id in self._pending and not self._suspended:
                self._refuse(pending, Unanswered())
            await self._store.remove([request.id])
            raise
        self._pending[request.id] = pending
        return pending

    async def _claim(self, pending: _Pending) -> bool:
        """Take over a request of an earlier process; return whether it is answered already."""
        request_id = pending.request.id
        # Pending first: at no moment is it shown by no process.
        self._pending[request_id] = pending
        word = await self._store.claim(request_id)
        if word is not None and request_id in self._pending:
            self._answer(request_id, word)
        return pending.outcome.done()

    def _answer(self, request_id: QuestionID, word: PendingWord) -> None:
        if isinstance(word, AnswersGiven):
            self.reply(request_id, word.answers)
        else:
            self.reject(request_id)

    def _find(self, request_id: QuestionID) -> _Pending:
        pending = self._pending.get(request_id)
        if pending is None:
            raise QuestionNotFoundError(request_id)
        return pending

    def _refuse(self, pending: _Pending, outcome: Rejected | Unanswered) -> None:
        request = pending.request
        event = QuestionRejected(session_id=request.session_id, request_id=request.id)
        self._settle(pending, event, outcome)

    def _settle(self, pending: _Pending, event: LiveEvent, outcome: Outcome) -> None:
        del self._pending[pending.request.id]
        self._publish(event)
        if not pending.outcome.done():
            pending.outcome.set_result(outcome)
