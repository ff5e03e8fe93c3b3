"""Questions as clients see them: requests found by their Session, and answered there.

A request waits at the desk of the Location where its Session works, here or in another process
(store.tables.pending_table): both are seen, and an answer to the other is left where its process
finds it. Nothing here opens a Location: one that is not open has nobody waiting here.

Invariant: a request is seen and settled only under the Session it belongs to, or one above that.
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
            "question", QuestionRequest, here=self._here, requests=requests, database=database
        )

    async def list(self, session_id: SessionID) -> tuple[QuestionRequest, ...]:
        """What is pending for a Session and all below it, oldest first of each."""
        return await self._pending.below(session_id)

    async def reply(self, session_id: SessionID, request_id: QuestionID, answers: Answers) -> None:
        """Settle a request with its answers.

        Raises InvalidRequestError when they do not fit the questions; the request then still waits.
        """
        request = await self._find(session_id, request_id)
        desk = await self._desk_of(request.session_id)
        if desk is not None and desk.has(request_id, request.session_id):
            desk.reply(request_id, answers)
            return
        core_answers.check_answers(request.questions, answers)
        await self._leave_word(request.session_id, request_id, AnswersGiven(answers=answers))

    async def reject(self, session_id: SessionID, request_id: QuestionID) -> None:
        """Settle a request without answers: the run that asked stops."""
        request = await self._find(session_id, request_id)
        desk = await self._desk_of(request.session_id)
        if desk is not None and desk.has(request_id, request.session_id):
            desk.reject(request_id)
            return
        await self._leave_word(request.session_id, request_id, AnswersRefused())

    async def pending(self, ref: LocationRef) -> tuple[QuestionRequest, ...]:
        """What is pending in a Location, for all its Sessions."""
        return await self._pending.at(ref)

    async def _find(self, session_id: SessionID, request_id: QuestionID) -> QuestionRequest:
        for request in await self.list(session_id):
            if request.id == request_id:
                return request
        raise QuestionNotFoundError(request_id)

    async def _leave_word(
        self, session_id: SessionID, request_id: QuestionID, word: PendingWord
    ) -> None:
        if not await self._requests.answer(request_id, session_id, word):
            raise QuestionNotFoundError(request_id)

    def _desk(self, ref: LocationRef) -> LocationQuestions | None:
        location = self._locations.get_open(ref)
        return None if location is None else location.questions

    async def _desk_of(self, session_id: SessionID) -> LocationQuestions | None:
        session = codec.decode(SessionInfo, await self._sessions.get(session_id))
        return self._desk(session.location)

    def _here(self, ref: LocationRef) -> tuple[QuestionRequest, ...]:
        desk = self._desk(ref)
        return () if desk is None else desk.list()
