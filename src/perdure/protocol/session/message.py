"""Message operations: a Session's projected messages, by page or one by one.

To exclude a message from what the model is sent is an extension of the published contract.
"""

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
from perdure.schema.ids import SuppliedMessageID, ToolCallID
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


class ExcludeMessage(Payload, frozen=True):
    excluded: bool
    """Whether the model is not sent it, from the next turn on."""
    call_id: ToolCallID | None = None
    """The call whose result is meant; the whole message if omitted."""


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
EXCLUDE: Final = Endpoint(
    operation_id="v2.session.message.exclude",
    method="PATCH",
    path="/api/session/{sessionID}/message/{messageID}",
    group=_GROUP,
    scope="session",
    params=MessageParams,
    body=ExcludeMessage,
    success=Success("data", SessionMessage),
    errors=(*_ON_SESSION, MessageNotFoundError),
)

ENDPOINTS: Final = (LIST, GET, EXCLUDE)
