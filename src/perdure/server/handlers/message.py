"""The messages of a Session: a page of them, or one, and which of them the model is sent."""

from typing import Final

from msgspec import UNSET

from perdure.core import limits
from perdure.protocol import cursor
from perdure.protocol.cursor import MessageCursor
from perdure.protocol.session import message
from perdure.protocol.session.message import ExcludeMessage, ListMessages
from perdure.schema.errors import InvalidCursorError
from perdure.schema.ids import MessageID
from perdure.schema.query import Direction, MessageAnchor, MessageRow, Order
from perdure.schema.session.message import SessionMessage
from perdure.server.call import Call, Handlers
from perdure.server.results import Encoded, EncodedPage


async def list_messages(call: Call[ListMessages, None]) -> EncodedPage[SessionMessage]:
    order, limit, anchor = _position(call)
    live = call.runtime.hub.answers.capture(call.session_id)
    found = await call.runtime.sessions.messages(
        call.session_id, limit=limit, order=order, anchor=anchor
    )

    def link(row: MessageRow, direction: Direction) -> str:
        sealed = MessageCursor(
            session_id=call.session_id, order=order, limit=limit, direction=direction, seq=row.seq
        )
        return cursor.seal(sealed, key=call.settings.cursor_key)

    rows = found.rows
    return EncodedPage(
        items=tuple(row.data if live is None else live.show(row.id, row.data) for row in rows),
        previous=link(rows[0], "previous") if rows and found.has_previous else None,
        next=link(rows[-1], "next") if rows and found.has_next else None,
    )


async def get(call: Call[None, None]) -> Encoded[SessionMessage]:
    message_id = MessageID(call.params["messageID"])
    live = call.runtime.hub.answers.capture(call.session_id)
    data = await call.runtime.sessions.message(call.session_id, message_id)
    return Encoded(data if live is None else live.show(message_id, data))


async def exclude(call: Call[None, ExcludeMessage]) -> Encoded[SessionMessage]:
    body = call.body
    return Encoded(
        await call.runtime.changes.exclude(
            call.session_id,
            MessageID(call.params["messageID"]),
            excluded=body.excluded,
            call_id=UNSET if body.call_id is None else body.call_id,
        )
    )


def _position(call: Call[ListMessages, None]) -> tuple[Order, int, MessageAnchor | None]:
    query = call.query
    if not query.cursor:
        return query.order or "desc", query.limit or limits.PAGE_ITEMS_DEFAULT, None
    for name in ("limit", "order"):
        if getattr(query, name) is not None:
            raise InvalidCursorError(f"Cursor cannot be combined with {name}")
    at = cursor.open_messages(
        query.cursor, key=call.settings.cursor_key, session_id=call.session_id
    )
    return at.order, at.limit, MessageAnchor(seq=at.seq, direction=at.direction)


HANDLERS: Final[Handlers] = {
    message.LIST.operation_id: list_messages,
    message.GET.operation_id: get,
    message.EXCLUDE.operation_id: exclude,
}
