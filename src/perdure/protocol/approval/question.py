"""Question operations: pending questions, answers, and rejections.

Requests belong to a Session and are answered there. A Location lists those of all its Sessions.
"""

from typing import Final

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.approval.question import Answers, QuestionRequest
from perdure.schema.codec import Payload
from perdure.schema.errors import DamagedRowError, QuestionNotFoundError, SessionNotFoundError
from perdure.schema.ids import SuppliedQuestionID


class ReplyQuestion(Payload, frozen=True):
    """One list of labels per question, in order; an empty one leaves it unanswered."""

    answers: Answers


class QuestionParams(Payload, frozen=True):
    request_id: SuppliedQuestionID


_GROUP: Final = "questions"
_ON_SESSION: Final = (*REFUSALS, SessionNotFoundError, DamagedRowError)
_ON_REQUEST: Final = (*_ON_SESSION, QuestionNotFoundError)

LIST: Final = Endpoint(
    operation_id="v2.session.question.list",
    method="GET",
    path="/api/session/{sessionID}/question",
    group=_GROUP,
    scope="session",
    success=Success("data", tuple[QuestionRequest, ...]),
    errors=_ON_SESSION,
)
REPLY: Final = Endpoint(
    operation_id="v2.session.question.reply",
    method="POST",
    path="/api/session/{sessionID}/question/{requestID}/reply",
    other_routes=(("POST", "/api/session/{sessionID}/question/request/{requestID}/reply"),),
    group=_GROUP,
    scope="session",
    params=QuestionParams,
    body=ReplyQuestion,
    success=Success("no_content"),
    errors=_ON_REQUEST,
)
REJECT: Final = Endpoint(
    operation_id="v2.session.question.reject",
    method="POST",
    path="/api/session/{sessionID}/question/{requestID}/reject",
    other_routes=(("POST", "/api/session/{sessionID}/question/request/{requestID}/reject"),),
    group=_GROUP,
    scope="session",
    params=QuestionParams,
    success=Success("no_content"),
    errors=_ON_REQUEST,
)
LIST_REQUESTS: Final = Endpoint(
    operation_id="v2.question.request.list",
    method="GET",
    path="/api/question/request",
    group=_GROUP,
    scope="location",
    success=Success("location_data", tuple[QuestionRequest, ...]),
)

ENDPOINTS: Final = (LIST, REPLY, REJECT, LIST_REQUESTS)
