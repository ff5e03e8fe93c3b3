"""Questions of Sessions and Locations, and their answers."""

from collections.abc import Mapping
from typing import Final

from perdure.protocol.approval import question
from perdure.protocol.approval.question import ReplyQuestion
from perdure.schema.approval.question import QuestionRequest
from perdure.schema.ids import QuestionID
from perdure.server.call import Call, Handlers


async def list_of_session(call: Call[None, None]) -> tuple[QuestionRequest, ...]:
    return await call.runtime.questions.list(call.session_id)


async def reply(call: Call[None, ReplyQuestion]) -> None:
    await call.runtime.questions.reply(call.session_id, _request_id(call.params), call.body.answers)


async def reject(call: Call[None, None]) -> None:
    await call.runtime.questions.reject(call.session_id, _request_id(call.params))


async def list_requests(call: Call[None, None]) -> tuple[QuestionRequest, ...]:
    return await call.runtime.questions.pending(call.location())


def _request_id(params: Mapping[str, str]) -> QuestionID:
    return QuestionID(params["requestID"])


HANDLERS: Final[Handlers] = {
    question.LIST.operation_id: list_of_session,
    question.REPLY.operation_id: reply,
    question.REJECT.operation_id: reject,
    question.LIST_REQUESTS.operation_id: list_requests,
}
