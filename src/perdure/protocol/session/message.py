"""Message operations: a Session's projected messages, by page or one by one."""

from typing import Annotated, Final

from msgspec import Meta

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.codec import Payload
from perdure.schema.errors import (
    DamagedRowError,
    InvalidCursorError,
    MessageNotFoundError,
    SessionNotFoundError,
    UnknownError,
)
from perdure.schema.ids import SuppliedMessageID
from perdure.schema.query import Order
from perdure.schema.session.message import SessionMessage

MESSAGES_LIMIT_MAX: Final = 200


class ListMessages(Payload, frozen=True):
    """`cursor` continues a page of the same Session; an empty one is ignored."""

    limit: Annotated[int, Meta(ge=1, le=MESSAGES_LIMIT_MAX)] | None = None
    order: Order | None = None
    cursor: str | None = None


class MessageParams(Payload, frozen=True):
    message_id: SuppliedMessageID


_GROUP: Final = "messages"
_ON_SESSION: Final = (*REFUSALS, SessionNotFoundError, DamagedRowError)

LIST: Final = Endpoint(
    operation_id="v2.session.messages",
    method="GET",
    path="/api/session/{sessionID}/message",
    group=_GROUP,
    scope="session",
    query=ListMessages,
    success=Success("page", SessionMessage),
    errors=(*_ON_SESSION, InvalidCursorError, UnknownError),
)
GET: Final = Endpoint(
    operation_id="v2.session.message",
    method="GET",
    path="/api/session/{sessionID}/message/{messageID}",
    group=_GROUP,
    scope="session",
    params=MessageParams,
    success=Success("data", SessionMessage),
    errors=(*_ON_SESSION, MessageNotFoundError),
)

ENDPOINTS: Final = (LIST, GET)
