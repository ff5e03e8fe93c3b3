"""V1 permission requests and questions, and the answers to them."""

from typing import Final

from msgspec import UNSET

from perdure.protocol.v1 import approval
from perdure.protocol.v1.approval import (
    ReplyV1Permission,
    ReplyV1Question,
    RespondV1Permission,
    V1Asker,
    V1PermissionRequest,
)
from perdure.schema.approval.pending import PermissionWord
from perdure.schema.approval.permission import PermissionRequest
from perdure.schema.approval.question import QuestionRequest
from perdure.schema.errors import PermissionNotFoundError, QuestionNotFoundError
from perdure.schema.ids import PermissionID, QuestionID, SessionID
from perdure.server.binding import Decoded
from perdure.server.call import Call, Handlers
from perdure.server.v1 import location


def permission(asked: PermissionRequest) -> V1PermissionRequest:
    metadata = dict(asked.metadata or {})
    if asked.action == "bash":
        metadata.setdefault("command", "\n".join(asked.resources))
    if asked.action == "edit" and asked.resources:
        metadata.setdefault("filepath", ", ".join(asked.resources))
    if asked.changes:
        metadata.setdefault("diff", "".join(change.patch for change in asked.changes))
    if asked.notes:
        metadata.setdefault("notes", asked.notes)
    source = asked.source
    return V1PermissionRequest(
        id=asked.id,
        session_id=asked.session_id,
        permission=asked.action,
        patterns=asked.resources,
        metadata=metadata,
        always=asked.save or (),
        tool=UNSET if source is UNSET else V1Asker(source.message_id, source.call_id),
    )


async def list_permissions(call: Call[None, None]) -> tuple[V1PermissionRequest, ...]:
    found = await call.runtime.permissions.pending(location.resolve(call))
    return tuple(permission(each) for each in found)


async def reply_permission(call: Call[None, ReplyV1Permission]) -> bool:
    request_id = PermissionID(call.params["requestID"])
    owner = await _permission_owner(call, request_id)
    word = PermissionWord(reply=call.body.reply, message=call.body.message or UNSET)
    await call.runtime.permissions.reply(owner, request_id, word)
    return True


async def respond_permission(call: Call[None, RespondV1Permission]) -> bool:
    request_id = PermissionID(call.params["requestID"])
    word = PermissionWord(reply=call.body.response)
    await call.runtime.permissions.reply(call.session_id, request_id, word)
    return True


async def list_questions(call: Call[None, None]) -> tuple[QuestionRequest, ...]:
    return await call.runtime.questions.pending(location.resolve(call))


async def reply_question(call: Call[None, ReplyV1Question]) -> bool:
    request_id = QuestionID(call.params["requestID"])
    await call.runtime.questions.reply(
        await _question_owner(call, request_id), request_id, call.body.answers
    )
    return True


async def reject_question(call: Call[None, None]) -> bool:
    request_id = QuestionID(call.params["requestID"])
    await call.runtime.questions.reject(await _question_owner(call, request_id), request_id)
    return True


async def _permission_owner(call: Call[Decoded, Decoded], id: PermissionID) -> SessionID:
    for asked in await call.runtime.permissions.pending(location.resolve(call)):
        if asked.id == id:
            return asked.session_id
    raise PermissionNotFoundError(id)


async def _question_owner(call: Call[Decoded, Decoded], id: QuestionID) -> SessionID:
    for asked in await call.runtime.questions.pending(location.resolve(call)):
        if asked.id == id:
            return asked.session_id
    raise QuestionNotFoundError(id)


HANDLERS: Final[Handlers] = {
    approval.LIST_PERMISSIONS.operation_id: list_permissions,
    approval.REPLY_PERMISSION.operation_id: reply_permission,
    approval.RESPOND_PERMISSION.operation_id: respond_permission,
    approval.LIST_QUESTIONS.operation_id: list_questions,
    approval.REPLY_QUESTION.operation_id: reply_question,
    approval.REJECT_QUESTION.operation_id: reject_question,
}
