"""Lists and answers questions by Session.

A request waits in the Location where its Session works, in this or another process
(store.tables.pending_table). Requests of all processes are listed; an answer for another process is
stored, and that process finds it. Nothing here opens a Location: one that is not open has no
request waiting here.

Invariant: a request is shown and settled only under the Session it belongs to, or one above that.
"""

from perdure.core.approval import question_answers as core_answers
from perdure.location.approval.questions import LocationQuestions
from perdure.location.registry import LocationRegistry
from perdure.ports import Database
from perdure.runtime.human.pending import PendingView
from perdure.runtime.session.sessions import Sessions
from perdure.schema import codec
from perdure.schema.approval.pending import AnswersGiven, AnswersRefused, PendingWord
from perdure.schema.approval.question import Answers, QuestionRequest
from perdure.schema.errors import QuestionNotFoundError
from perdure.schema.ids import QuestionID, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.session.session import SessionInfo
from perdure.store.tables.pending_table import PendingRequests


class Questions:
    def __init__(
        self,
        sessions: Sessions,
        locations: LocationRegistry,
        requests: PendingRequests,
        *,
        database: Database,
    ) -> None:
        self._sessions = sessions
        self._locations = locations
        self._requests = requests
        self._pending = PendingView(
            "question", QuestionRequest, here=self._list_here, requests=requests, database=database
        )

    async def list(self, session_id: SessionID) -> tuple[QuestionRequest, ...]:
        """Return the pending requests of a Session and all below it."""
        return await self._pending.list_below(session_id)

    async def reply(self, session_id: SessionID, request_id: QuestionID, answers: Answers) -> None:
        """Settle a request with its answers.

        Raises InvalidRequestError when they do not fit the questions; the request then still waits.
        """
        request = await self._find(session_id, request_id)
        core_answers.check_answers(request.questions, answers)
        await self._store_answer(request.session_id, request_id, AnswersGiven(answers=answers))
        waiting = await self._find_open_for(request.session_id)
        if waiting is not None and waiting.has(request_id, request.session_id):
            waiting.reply(request_id, answers)

    async def reject(self, session_id: SessionID, request_id: QuestionID) -> None:
        """Settle a request without answers: the run that asked stops."""
        request = await self._find(session_id, request_id)
        await self._store_answer(request.session_id, request_id, AnswersRefused())
        waiting = await self._find_open_for(request.session_id)
        if waiting is not None and waiting.has(request_id, request.session_id):
            waiting.reject(request_id)

    async def list_everywhere(self) -> tuple[QuestionRequest, ...]:
        """Return the pending requests of all Sessions of all Locations."""
        return await self._pending.list_everywhere(it.ref for it in self._locations.list_open())

    async def pending(self, ref: LocationRef) -> tuple[QuestionRequest, ...]:
        """Return the pending requests of all Sessions of a Location."""
        return await self._pending.list_at(ref)

    async def _find(self, session_id: SessionID, request_id: QuestionID) -> QuestionRequest:
        for request in await self.list(session_id):
            if request.id == request_id:
                return request
        raise QuestionNotFoundError(request_id)

    async def _store_answer(
        self, session_id: SessionID, request_id: QuestionID, word: PendingWord
    ) -> None:
        if not await self._requests.answer(request_id, session_id, word):
            raise QuestionNotFoundError(request_id)

    def _find_open(self, ref: LocationRef) -> LocationQuestions | None:
        location = self._locations.get_open(ref)
        return None if location is None else location.questions

    async def _find_open_for(self, session_id: SessionID) -> LocationQuestions | None:
        session = codec.decode(SessionInfo, await self._sessions.get(session_id))
        return self._find_open(session.location)

    def _list_here(self, ref: LocationRef) -> tuple[QuestionRequest, ...]:
        waiting = self._find_open(ref)
        return () if waiting is None else waiting.list()
