"""Questions as clients see them: requests found by their Session, and answered there.

A request waits in memory at the desk of the Location where its Session works. Nothing here opens a
Location: one that is not open has nobody waiting, so to look there or to answer needs no directory.

Invariant: a request is seen and settled only under the Session it belongs to.
"""

from perdure.location.location_map import LocationMap
from perdure.location.questions import LocationQuestions
from perdure.runtime.sessions import Sessions
from perdure.schema import codec
from perdure.schema.errors import QuestionNotFoundError
from perdure.schema.ids import QuestionID, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.question import Answers, QuestionRequest
from perdure.schema.session import SessionInfo


class Questions:
    def __init__(self, sessions: Sessions, locations: LocationMap) -> None:
        self._sessions = sessions
        self._locations = locations

    async def list(self, session_id: SessionID) -> tuple[QuestionRequest, ...]:
        """What is pending for a Session, oldest first."""
        desk = await self._desk_of(session_id)
        return () if desk is None else desk.list(session_id)

    async def reply(self, session_id: SessionID, request_id: QuestionID, answers: Answers) -> None:
        """Settle a request with its answers.

        Raises InvalidRequestError when they do not fit the questions; the request then still waits.
        """
        (await self._holding(session_id, request_id)).reply(request_id, answers)

    async def reject(self, session_id: SessionID, request_id: QuestionID) -> None:
        """Settle a request without answers: the run that asked stops."""
        (await self._holding(session_id, request_id)).reject(request_id)

    async def pending(self, ref: LocationRef) -> tuple[QuestionRequest, ...]:
        """What is pending in a Location, for all its Sessions."""
        desk = self._desk(ref)
        return () if desk is None else desk.list()

    def _desk(self, ref: LocationRef) -> LocationQuestions | None:
        location = self._locations.if_open(ref)
        return None if location is None else location.questions

    async def _desk_of(self, session_id: SessionID) -> LocationQuestions | None:
        session = codec.decode(SessionInfo, await self._sessions.get(session_id))
        return self._desk(session.location)

    async def _holding(self, session_id: SessionID, request_id: QuestionID) -> LocationQuestions:
        """The desk where this Session has this request."""
        desk = await self._desk_of(session_id)
        if desk is None or desk.get(request_id).session_id != session_id:
            raise QuestionNotFoundError(request_id)
        return desk
