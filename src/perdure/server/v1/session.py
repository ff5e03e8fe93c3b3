"""V1 Sessions: find, create, change, fork, revert, compact and stop them."""

from typing import Final

from perdure.core import limits
from perdure.protocol.v1 import session
from perdure.protocol.v1.session import (
    CreateV1Session,
    ForkV1Session,
    ListV1Sessions,
    RevertV1Session,
    SummarizeV1Session,
    UpdateV1Session,
    V1Session,
    V1Status,
)
from perdure.schema import codec
from perdure.schema.errors import InvalidRequestError, MessageNotFoundError
from perdure.schema.ids import MessageID
from perdure.schema.query import SessionQuery
from perdure.schema.session.session import SessionInfo
from perdure.schema.session.todo import Todos
from perdure.server.binding import Decoded
from perdure.server.call import Call, Handlers
from perdure.server.v1 import location, shapes
from perdure.server.v1.message import load_all


async def list_sessions(call: Call[ListV1Sessions, None]) -> tuple[V1Session, ...]:
    asked = call.query
    limit = asked.limit or limits.PAGE_ITEMS_DEFAULT
    if limit < 1 or limit > limits.PAGE_ITEMS_MAX:
        raise InvalidRequestError(f"limit is not between 1 and {limits.PAGE_ITEMS_MAX}")
    where = location.find_named(call)
    query = SessionQuery(
        directory=None if where is None else where.directory, search=asked.search or None
    )
    found = await call.runtime.sessions.list(query, limit=limit, anchor=None)
    infos = [codec.decode(SessionInfo, row.data) for row in found.rows]
    return tuple(
        shapes.session(info)
        for info in infos
        if info.time.updated >= (asked.start or 0)
        and not (asked.roots in ("true", "1") and info.parent_id)
    )


async def create(call: Call[None, CreateV1Session]) -> V1Session:
    body = call.body
    if body.parent_id:
        raise InvalidRequestError("parentID cannot be set when a Session is created by V1")
    made = await call.runtime.sessions.create(
        agent=body.agent,
        model=body.model,
        location=location.resolve(call),
        title=body.title or None,
        metadata=body.metadata,
        permissions=shapes.session_rules(body.permission or ()),
    )
    return shapes.session(made)


async def status(call: Call[None, None]) -> dict[str, V1Status]:
    return dict.fromkeys(await call.runtime.sessions.list_active(), V1Status("busy"))


async def get(call: Call[None, None]) -> V1Session:
    return await _load(call)


async def update(call: Call[None, UpdateV1Session]) -> V1Session:
    body = call.body
    if body.metadata:
        raise InvalidRequestError("metadata of a Session cannot be changed by V1")
    if body.permission is not None:
        rules = shapes.session_rules(body.permission)
        await call.runtime.changes.set_rules(call.session_id, rules)
    if body.title:
        await call.runtime.changes.rename(call.session_id, body.title)
    if body.time is not None:
        if body.time.archived:
            await call.runtime.changes.archive(call.session_id)
        else:
            await call.runtime.changes.unarchive(call.session_id)
    return await _load(call)


async def delete(call: Call[None, None]) -> bool:
    await call.runtime.deletions.delete(call.session_id)
    return True


async def children(call: Call[None, None]) -> tuple[V1Session, ...]:
    found = await call.runtime.children.list_children(call.session_id)
    return tuple(shapes.session(codec.decode(SessionInfo, data)) for data in found)


async def todo(call: Call[None, None]) -> Todos:
    return await call.runtime.todos.load_todos(call.session_id)


async def abort(call: Call[None, None]) -> bool:
    await call.runtime.sessions.interrupt(call.session_id)
    return True


async def fork(call: Call[None, ForkV1Session]) -> V1Session:
    """V1 leaves the named message out; a fork of the runtime ends with the message it is given."""
    asked = call.body.message_id
    last = None
    if asked is not None:
        _, found = await load_all(call.runtime, call.session_id)
        ids = [message.id for message in found]
        if asked not in ids:
            raise MessageNotFoundError(call.session_id, MessageID(asked))
        place = ids.index(MessageID(asked))
        if place == 0:
            raise InvalidRequestError("A fork before the first message would be empty")
        last = ids[place - 1]
    return shapes.session(await call.runtime.forks.fork(call.session_id, message_id=last))


async def revert(call: Call[None, RevertV1Session]) -> V1Session:
    await call.runtime.sessions.revert.stage(
        call.session_id, MessageID(call.body.message_id), files=True
    )
    return await _load(call)


async def unrevert(call: Call[None, None]) -> V1Session:
    await call.runtime.sessions.revert.clear(call.session_id)
    return await _load(call)


async def summarize(call: Call[None, SummarizeV1Session]) -> bool:
    await call.runtime.sessions.compact(call.session_id)
    return True


async def _load(call: Call[Decoded, Decoded]) -> V1Session:
    data = await call.runtime.sessions.get(call.session_id)
    return shapes.session(codec.decode(SessionInfo, data))


HANDLERS: Final[Handlers] = {
    session.LIST.operation_id: list_sessions,
    session.CREATE.operation_id: create,
    session.STATUS.operation_id: status,
    session.GET.operation_id: get,
    session.UPDATE.operation_id: update,
    session.DELETE.operation_id: delete,
    session.CHILDREN.operation_id: children,
    session.TODO.operation_id: todo,
    session.ABORT.operation_id: abort,
    session.FORK.operation_id: fork,
    session.REVERT.operation_id: revert,
    session.UNREVERT.operation_id: unrevert,
    session.SUMMARIZE.operation_id: summarize,
}
