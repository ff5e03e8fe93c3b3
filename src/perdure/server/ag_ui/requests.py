"""What a Session waits for a person for, as interrupts of AG-UI, and their answers."""

from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from perdure.core.text import jsonc
from perdure.protocol.ag_ui import AgUiResume
from perdure.schema import codec
from perdure.schema.approval.pending import PermissionWord
from perdure.schema.approval.permission import PermissionRequest, Reply
from perdure.schema.approval.question import QuestionRequest
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.errors import (
    InvalidRequestError,
    PermissionNotFoundError,
    QuestionNotFoundError,
)
from perdure.schema.ids import PermissionID, QuestionID, SessionID

if TYPE_CHECKING:
    from perdure.runtime.app.runtime import Runtime

_REPLIES: Final[tuple[Reply, ...]] = ("once", "always", "reject")


async def list_interrupts(runtime: "Runtime", session_id: SessionID) -> list[JsonObject]:
    permissions = await runtime.permissions.list(session_id)
    questions = await runtime.questions.list(session_id)
    return [*map(_permission, permissions), *map(_question, questions)]


async def answer(runtime: "Runtime", session_id: SessionID, entry: AgUiResume) -> bool:
    """Settle a request; False if that was done before. Raises InvalidRequestError."""
    try:
        if entry.interrupt_id.startswith("per_"):
            word = PermissionWord(_reply(entry))
            request = PermissionID(entry.interrupt_id)
            await runtime.permissions.reply(session_id, request, word)
            return True
        question = QuestionID(entry.interrupt_id)
        if entry.status == "cancelled":
            await runtime.questions.reject(session_id, question)
        else:
            await runtime.questions.reply(session_id, question, _answers(entry))
    except (PermissionNotFoundError, QuestionNotFoundError):
        # The run was read again, or another client was faster.
        return False
    return True


def _permission(request: PermissionRequest) -> JsonObject:
    source = request.source
    call = {} if source is UNSET else {"toolCallId": f"{source.message_id}/{source.call_id}"}
    resources = ", ".join(request.resources)
    schema: JsonObject = {
        "type": "object",
        "properties": {"reply": {"type": "string", "enum": list(_REPLIES)}},
        "required": ["reply"],
    }
    return {
        "id": request.id,
        "reason": "tool_call" if call else "confirmation",
        "message": f"May it use {request.action}: {resources}",
        **call,
        "responseSchema": schema,
        "metadata": {"action": request.action, "resources": list(request.resources)},
    }


def _question(request: QuestionRequest) -> JsonObject:
    labels: JsonObject = {"type": "array", "items": {"type": "string"}}
    schema: JsonObject = {
        "type": "object",
        "properties": {"answers": {"type": "array", "items": labels}},
        "required": ["answers"],
    }
    shown: JsonValue = codec.decode_any(codec.encode(request.questions))
    return {
        "id": request.id,
        "reason": "input_required",
        "message": "\n".join(one.question for one in request.questions),
        "responseSchema": schema,
        "metadata": {"questions": shown},
    }


def _reply(entry: AgUiResume) -> Reply:
    if entry.status == "cancelled":
        return "reject"
    payload = entry.payload
    if jsonc.is_object(payload):
        payload = payload.get("reply", payload.get("approved"))
    if isinstance(payload, bool):
        return "once" if payload else "reject"
    for word in _REPLIES:
        if word == payload:
            return word
    raise InvalidRequestError(
        "The payload of a resume entry says `reply`: once, always or reject",
        kind="Payload",
        field="resume",
    )


def _answers(entry: AgUiResume) -> tuple[tuple[str, ...], ...]:
    payload = entry.payload
    given: JsonValue = payload.get("answers") if jsonc.is_object(payload) else payload
    lists = given if jsonc.is_list(given) else []
    if lists and all(jsonc.is_list(one) and all(isinstance(x, str) for x in one) for one in lists):
        return tuple(tuple(map(str, one)) for one in lists if jsonc.is_list(one))
    raise InvalidRequestError(
        "The payload of a resume entry says `answers`: a list of labels for each question",
        kind="Payload",
        field="resume",
    )
