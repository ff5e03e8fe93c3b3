"""V1 commands, shell commands and the diff of a Session."""

import itertools
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, structs
from msgspec.structs import replace

from perdure.core import limits
from perdure.protocol.v1 import work
from perdure.protocol.v1.file import V1FileDiff
from perdure.protocol.v1.message import V1Message
from perdure.protocol.v1.work import (
    DiffV1Session,
    InitV1Session,
    ListAllV1Sessions,
    RunV1Command,
    RunV1Shell,
    V1GlobalSession,
    V1ProjectName,
)
from perdure.schema import codec, ids
from perdure.schema.errors import InvalidRequestError, MessageNotFoundError
from perdure.schema.ids import MessageID
from perdure.schema.models.model import ModelRef
from perdure.schema.query import SessionQuery
from perdure.schema.session.command import CommandRequest
from perdure.schema.session.message import SessionMessage, UserMessage
from perdure.schema.session.prompt import FileInput
from perdure.schema.session.session import SessionInfo
from perdure.server.call import Call, Handlers
from perdure.server.v1 import file, location, message, shapes

if TYPE_CHECKING:
    from perdure.server.v1.stream.events import V1Events


_TRUE: Final = frozenset({"true", "1"})


class SessionWork:
    def __init__(self, events: "V1Events") -> None:
        self._events = events

    async def command(self, call: Call[None, RunV1Command]) -> V1Message:
        """Run a command by name, wait until the Session is idle, and return its last answer."""
        body = call.body
        asked = CommandRequest(
            name=body.command,
            arguments=body.arguments,
            id=_message_id(body.message_id),
            agent=body.agent or None,
            model=_model(body.model, body.variant),
            files=tuple(
                FileInput(part.url, part.filename) for part in body.parts or () if part.url
            ),
        )
        with self._events.origins.admitting(call.session_id) as remember:
            receipt = await call.runtime.commands.run(call.session_id, asked)
            remember(receipt.id)
        answer = await message.wait_for_answer(call.runtime, call.session_id, receipt.id)
        told = {
            "name": body.command,
            "sessionID": call.session_id,
            "arguments": body.arguments,
            "messageID": answer.info.id,
        }
        self._events.tell("command.executed", told, call.session_location)
        return answer

    async def shell(self, call: Call[None, RunV1Shell]) -> V1Message:
        """Run a command of the user; the answer shows it as a call of bash."""
        body = call.body
        if body.agent:
            await call.runtime.sessions.switch_agent(call.session_id, body.agent)
        if body.model is not None:
            model = ModelRef(body.model.model_id, body.model.provider_id, body.model.variant)
            await call.runtime.sessions.switch_model(call.session_id, model)
        asked = _message_id(body.message_id)
        with self._events.origins.admitting(call.session_id):
            done = await call.runtime.shells.run(call.session_id, body.command, id=asked)
        info, _ = await message.load_all(call.runtime, call.session_id)
        return shapes.shell(info, done)[1]

    async def init(self, call: Call[None, InitV1Session]) -> bool:
        body = call.body
        model = None
        if body.provider_id and body.model_id:
            model = ModelRef(body.model_id, body.provider_id)
        asked = CommandRequest(name="init", id=_message_id(body.message_id), model=model)
        with self._events.origins.admitting(call.session_id) as remember:
            remember((await call.runtime.commands.run(call.session_id, asked)).id)
        await call.runtime.sessions.wait(call.session_id)
        return True


async def diff(call: Call[DiffV1Session, None]) -> tuple[V1FileDiff, ...]:
    """What the Session changed; with a message of the user, what was done for that."""
    first = last = None
    asked = _message_id(call.query.message_id)
    if asked is not None:
        _, found = await message.load_all(call.runtime, call.session_id)
        first, last = _turn_of(call, found, asked)
    session, files = await call.runtime.session_diffs.diff(call.session_id, first=first, last=last)
    shown = await call.runtime.files.hide_denied(session.location, files)
    return tuple(map(file.show_diff, shown))


async def list_all(call: Call[ListAllV1Sessions, None]) -> tuple[V1GlobalSession, ...]:
    """The Sessions of all directories, the newest first."""
    asked = call.query
    wanted = min(asked.limit or limits.PAGE_ITEMS_MAX, limits.PAGE_ITEMS_MAX)
    query = SessionQuery(
        search=asked.search or None, archived=None if asked.archived in _TRUE else False
    )
    page = await call.runtime.sessions.list(query, limit=limits.PAGE_ITEMS_MAX, anchor=None)
    roots = {
        found.id: found.directory
        for found in await call.runtime.projects.list(location.resolve(call))
    }
    infos = (codec.decode(SessionInfo, row.data) for row in page.rows)
    shown = (
        _global(info, roots.get(info.project_id, ""))
        for info in infos
        if info.time.updated >= (asked.start or 0)
        and (asked.cursor is None or info.time.updated < asked.cursor)
        and not (asked.roots in _TRUE and info.parent_id)
    )
    return tuple(itertools.islice(shown, wanted))


def _global(info: SessionInfo, root: str) -> V1GlobalSession:
    session = shapes.session(info)
    project = V1ProjectName(info.project_id, root) if root else None
    return V1GlobalSession(**structs.asdict(session), project=project)


def _turn_of(
    call: Call[DiffV1Session, None], found: list[SessionMessage], asked: MessageID
) -> tuple[MessageID, MessageID]:
    """The first and the last message of the turn that a message of the user began."""
    places = [place for place, each in enumerate(found) if each.id == asked]
    if not places:
        raise MessageNotFoundError(call.session_id, asked)
    rest = found[places[0] + 1 :]
    ends = [place for place, each in enumerate(rest) if isinstance(each, UserMessage)]
    turn = rest[: ends[0]] if ends else rest
    return asked, turn[-1].id if turn else asked


def _message_id(given: str | None) -> MessageID | None:
    if given is None:
        return None
    if not ids.well_formed("msg", given):
        raise InvalidRequestError("Invalid message ID", field="messageID")
    return MessageID(given)


def _model(name: str | None, variant: str | None) -> ModelRef | None:
    if not name:
        return None
    try:
        model = ModelRef.parse(name)
    except ValueError as error:
        raise InvalidRequestError(str(error), field="model") from error
    return replace(model, variant=variant or model.variant or UNSET)


HANDLERS: Final[Handlers] = {
    work.DIFF.operation_id: diff,
    work.LIST_ALL.operation_id: list_all,
}


def make_handlers(events: "V1Events") -> Handlers:
    own = SessionWork(events)
    return {
        **HANDLERS,
        work.COMMAND.operation_id: own.command,
        work.SHELL.operation_id: own.shell,
        work.INIT.operation_id: own.init,
    }
