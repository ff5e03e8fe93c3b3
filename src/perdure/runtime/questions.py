"""Questions as clients see them: requests found by their Session, and answered there.

A request waits at the desk of the Location where its Session works, here or in another process
(store.pending_table): both are seen, and an answer to the other is left where its process finds it.
Nothing here opens a Location: one that is not open has nobody waiting here.

Invariant: a request is seen and settled only under the Session it belongs to.
"""

from collections.abc import Iterable, Iterator

from perdure.core import answers as core_answers
from perdure.location.location_map import LocationMap
from perdure.location.questions import LocationQuestions
from perdure.runtime import pending_requests
from perdure.runtime.sessions import Sessions
from perdure.schema import codec
from perdure.schema.errors import QuestionNotFoundError
from perdure.schema.ids import QuestionID, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.pending import AnswersGiven, AnswersRefused, PendingWord
from perdure.schema.question import Answers, QuestionRequest
from perdure.schema.session import SessionInfo
from perdure.store.pending_table import PendingRequests, PendingRow


class Questions:
    def __init__(
        self, sessions: Sessions, locations: LocationMap, requests: PendingRequests
    ) -> None:
        self._sessions = sessions
        self._locations = locations
        self._requests = requests

    async def list(self, session_id: SessionID) -> tuple[QuestionRequest, ...]:
        """What is pending for a Session, oldest first."""
        desk = await self._desk_of(session_id)
        here = () if desk is None else desk.list(session_id)
        return (*await self._elsewhere(session_id), *here)

    async def reply(self, session_id: SessionID, request_id: QuestionID, answers: Answers) -> None:
        """Settle a request with its answers.

        Raises InvalidRequestError when they do not fit the questions; the request then still waits.
        """
        desk = await self._desk_of(session_id)
        if desk is not None and desk.has(request_id, session_id):
            desk.reply(request_id, answers)
            return
        for request in await self._elsewhere(session_id):
            if request.id == request_id:
                core_answers.check(request.questions, answers)
        await self._leave_word(session_id, request_id, AnswersGiven(answers=answers))

    async def reject(self, session_id: SessionID, request_id: QuestionID) -> None:
        """Settle a request without answers: the run that asked stops."""
        desk = await self._desk_of(session_id)
        if desk is not None and desk.has(request_id, session_id):
            desk.reject(request_id)
            return
        await self._leave_word(session_id, request_id, AnswersRefused())

    async def pending(self, ref: LocationRef) -> tuple[QuestionRequest, ...]:
        """What is pending in a Location, for all its Sessions."""
        desk = self._desk(ref)
        rows = await self._requests.elsewhere("question")
        elsewhere = [row for row in rows if pending_requests.is_at(row, ref)]
        return (*_requests(elsewhere), *(() if desk is None else desk.list()))

    async def _elsewhere(self, session_id: SessionID) -> tuple[QuestionRequest, ...]:
        rows = await self._requests.elsewhere("question", session_id=session_id)
        return tuple(_requests(rows))

    async def _leave_word(
        self, session_id: SessionID, request_id: QuestionID, word: PendingWord
    ) -> None:
        if not await self._requests.answer(request_id, session_id, word):
            raise QuestionNotFoundError(request_id)

    def _desk(self, ref: LocationRef) -> LocationQuestions | None:
        location = self._locations.if_open(ref)
        return None if location is None else location.questions

    async def _desk_of(self, session_id: SessionID) -> LocationQuestions | None:
        session = codec.decode(SessionInfo, await self._sessions.get(session_id))
        return self._desk(session.location)


def _requests(rows: Iterable[PendingRow]) -> Iterator[QuestionRequest]:
    return (row.request for row in rows if isinstance(row.request, QuestionRequest))
