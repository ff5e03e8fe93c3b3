"""V1 messages: list them with their parts, and prompt a Session."""

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET, UnsetType

from perdure.core import limits
from perdure.protocol.v1 import message
from perdure.protocol.v1.message import (
    ListV1Messages,
    PromptV1Session,
    V1Assistant,
    V1Message,
    V1PartInput,
)
from perdure.protocol.v1.part import V1SourceText
from perdure.schema import codec, ids
from perdure.schema.errors import InvalidRequestError, MessageNotFoundError
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.models.model import ModelRef
from perdure.schema.query import MessageAnchor
from perdure.schema.session.message import SessionMessage
from perdure.schema.session.prompt import AgentMention, FileInput, PromptInput, TextSource
from perdure.schema.session.session import SessionInfo
from perdure.server.call import Call, Handlers
from perdure.server.v1 import shapes
from perdure.server.v1.stream.prompt_origins import PromptOrigins

if TYPE_CHECKING:
    from perdure.runtime.app.runtime import Runtime

_REFUSED: Final = ("format", "system", "tools")


async def load_all(
    runtime: "Runtime", session_id: SessionID
) -> tuple[SessionInfo, list[SessionMessage]]:
    """The Session and all of its messages, oldest first, with what open parts say so far."""
    live = runtime.hub.answers.capture(session_id)
    info = codec.decode(SessionInfo, await runtime.sessions.get(session_id))
    found: list[SessionMessage] = []
    anchor = None
    while True:
        page = await runtime.sessions.messages(
            session_id, limit=limits.PAGE_ITEMS_MAX, order="asc", anchor=anchor
        )
        for row in page.rows:
            data = row.data if live is None else live.show(row.id, row.data)
            found.append(shapes.decode_message(data))
        if not page.has_next:
            return info, found
        anchor = MessageAnchor(seq=page.rows[-1].seq, direction="next")


async def list_messages(call: Call[ListV1Messages, None]) -> tuple[V1Message, ...]:
    shown = await _show_all(call.runtime, call.session_id)
    if call.query.before:
        shown = [each for each in shown if each.info.id < call.query.before]
    limit = call.query.limit
    return tuple(shown if limit is None else shown[-max(limit, 1) :])


async def get(call: Call[None, None]) -> V1Message:
    asked = call.params["messageID"]
    for each in await _show_all(call.runtime, call.session_id):
        if each.info.id == asked:
            return each
    raise MessageNotFoundError(call.session_id, MessageID(asked))


class V1Prompts:
    """Prompts of V1 clients; their events are told in the form of V1 (server.v1.prompt_origins)."""

    def __init__(self, origins: PromptOrigins) -> None:
        self._origins = origins

    async def prompt(self, call: Call[None, PromptV1Session]) -> V1Message:
        """Admit the prompt, wait until the Session is idle, and return its last answer."""
        admitted = await self._admit(call)
        return await wait_for_answer(call.runtime, call.session_id, admitted)

    async def prompt_async(self, call: Call[None, PromptV1Session]) -> None:
        await self._admit(call)

    async def _admit(self, call: Call[None, PromptV1Session]) -> MessageID:
        with self._origins.admitting(call.session_id) as remember:
            receipt_id = await _admit(call)
            remember(receipt_id)
            return receipt_id


async def wait_for_answer(
    runtime: "Runtime", session_id: SessionID, prompt_id: MessageID
) -> V1Message:
    """The last answer to a prompt, once the Session is idle; the prompt if there is none."""
    await runtime.sessions.wait(session_id)
    shown = await _show_all(runtime, session_id)
    places = [place for place, each in enumerate(shown) if each.info.id == prompt_id]
    if not places:
        raise MessageNotFoundError(session_id, prompt_id)
    answers = [each for each in shown[places[0] :] if isinstance(each.info, V1Assistant)]
    return answers[-1] if answers else shown[places[0]]


async def _admit(call: Call[None, PromptV1Session]) -> MessageID:
    body, sessions = call.body, call.runtime.sessions
    for name in _REFUSED:
        if getattr(body, name):
            raise InvalidRequestError(f"{name} is not offered for a prompt", field=name)
    if body.message_id is not None and not ids.well_formed("msg", body.message_id):
        raise InvalidRequestError("Invalid message ID", field="messageID")
    given = _to_input(body.parts)
    if body.agent:
        await sessions.switch_agent(call.session_id, body.agent)
    if body.model is not None:
        variant = body.variant or body.model.variant
        model = ModelRef(body.model.model_id, body.model.provider_id, variant)
        await sessions.switch_model(call.session_id, model)
    receipt = await sessions.prompt(
        call.session_id,
        given,
        location=call.session_location,
        id=None if body.message_id is None else MessageID(body.message_id),
        resume=body.no_reply is not True,
    )
    return receipt.id


def _to_input(parts: tuple[V1PartInput, ...]) -> PromptInput:
    texts: list[str] = []
    files: list[FileInput] = []
    agents: list[AgentMention] = []
    for part in parts:
        match part.type:
            case "text":
                texts.append(part.text or "")
            case "file":
                if not part.url:
                    raise InvalidRequestError("A file part needs a url", field="parts")
                files.append(FileInput(part.url, part.filename, source=_place(part)))
            case "agent":
                agents.append(AgentMention(part.name or ""))
            case "subtask":
                texts.append(f"@{part.agent or ''} {part.prompt or ''}".strip())
                agents.append(AgentMention(part.agent or ""))
    return PromptInput("\n".join(texts), tuple(files) or UNSET, tuple(agents) or UNSET)


def _place(part: V1PartInput) -> TextSource | UnsetType:
    """The place in the text of the prompt that names the file."""
    place = None if part.source is UNSET else part.source.get("text")
    if place is None:
        return UNSET
    try:
        found = codec.convert(V1SourceText, place)
    except msgspec.ValidationError as error:
        raise InvalidRequestError(f"source.text of a file part: {error}", field="parts") from error
    return TextSource(found.start, found.end, found.value)


async def _show_all(runtime: "Runtime", session_id: SessionID) -> list[V1Message]:
    info, found = await load_all(runtime, session_id)
    shown = shapes.messages(info, found)
    known = {each.info.id for each in shown}
    snapshot = await runtime.snapshots.take(session_id, limit=1)
    for pending in snapshot.inbox:
        if pending.id not in known:
            told = shapes.user(info, pending.id, pending.time_created)
            parts = shapes.prompt_parts(session_id, pending.id, pending.prompt)
            shown.append(V1Message(told, tuple(parts)))
    return shown


HANDLERS: Final[Handlers] = {
    message.LIST.operation_id: list_messages,
    message.GET.operation_id: get,
}


def make_handlers(origins: PromptOrigins) -> Handlers:
    prompts = V1Prompts(origins)
    return {
        **HANDLERS,
        message.PROMPT.operation_id: prompts.prompt,
        message.PROMPT_ASYNC.operation_id: prompts.prompt_async,
    }
