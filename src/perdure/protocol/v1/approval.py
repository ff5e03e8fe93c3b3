"""Permission requests and questions in V1, and the answers to them."""

from typing import Final

from msgspec import UNSET, UnsetType

from perdure.protocol.v1.endpoint import declare
from perdure.schema.approval.permission import Reply
from perdure.schema.approval.question import Answers, QuestionRequest
from perdure.schema.codec import JsonObject, Payload, Record


class V1Asker(Record):
    message_id: str
    call_id: str


class V1PermissionRequest(Record):
    id: str
    session_id: str
    permission: str
    patterns: tuple[str, ...]
    metadata: JsonObject
    always: tuple[str, ...]
    tool: V1Asker | UnsetType = UNSET


class ReplyV1Permission(Payload):
    reply: Reply
    message: str | None = None


class RespondV1Permission(Payload):
    response: Reply


class ReplyV1Question(Payload):
    answers: Answers


LIST_PERMISSIONS: Final = declare(
    "GET", "/permission", "permission.list", tuple[V1PermissionRequest, ...]
)
REPLY_PERMISSION: Final = declare(
    "POST", "/permission/{requestID}/reply", "permission.reply", bool, body=ReplyV1Permission
)
RESPOND_PERMISSION: Final = declare(
    "POST",
    "/session/{sessionID}/permissions/{requestID}",
    "permission.respond",
    bool,
    body=RespondV1Permission,
)
LIST_QUESTIONS: Final = declare("GET", "/question", "question.list", tuple[QuestionRequest, ...])
REPLY_QUESTION: Final = declare(
    "POST", "/question/{requestID}/reply", "question.reply", bool, body=ReplyV1Question
)
REJECT_QUESTION: Final = declare("POST", "/question/{requestID}/reject", "question.reject", bool)

ENDPOINTS: Final = (
    LIST_PERMISSIONS,
    REPLY_PERMISSION,
    RESPOND_PERMISSION,
    LIST_QUESTIONS,
    REPLY_QUESTION,
    REJECT_QUESTION,
)
