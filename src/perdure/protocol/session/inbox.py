"""Inbox operations: list pending prompts, and change them before promotion.

These are extensions of the published contract, in its style.
"""

from typing import Final

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.protocol.session.message import MessageParams
from perdure.schema.codec import Payload
from perdure.schema.errors import (
    DamagedRowError,
    MessageNotFoundError,
    PromptSettledError,
    SessionNotFoundError,
)
from perdure.schema.ids import SuppliedMessageID
from perdure.schema.session.prompt import Delivery, PromptInput
from perdure.schema.session.receipt import AdmittedPrompt


class RevisePrompt(Payload, frozen=True):
    """Omitted fields stay unchanged."""

    prompt: PromptInput | None = None
    delivery: Delivery | None = None


class ReorderInbox(Payload, frozen=True):
    message_ids: tuple[SuppliedMessageID, ...]


_GROUP: Final = "inbox"
_ON_SESSION: Final = (*REFUSALS, SessionNotFoundError, DamagedRowError)
_ON_PROMPT: Final = (*_ON_SESSION, MessageNotFoundError, PromptSettledError)

LIST: Final = Endpoint(
    operation_id="v2.session.inbox.list",
    method="GET",
    path="/api/session/{sessionID}/inbox",
    group=_GROUP,
    scope="session",
    success=Success("data", tuple[AdmittedPrompt, ...]),
    errors=_ON_SESSION,
)
REVISE: Final = Endpoint(
    operation_id="v2.session.inbox.revise",
    method="PATCH",
    path="/api/session/{sessionID}/inbox/{messageID}",
    group=_GROUP,
    scope="session",
    params=MessageParams,
    body=RevisePrompt,
    success=Success("data", AdmittedPrompt),
    errors=_ON_PROMPT,
)
CANCEL: Final = Endpoint(
    operation_id="v2.session.inbox.cancel",
    method="DELETE",
    path="/api/session/{sessionID}/inbox/{messageID}",
    group=_GROUP,
    scope="session",
    params=MessageParams,
    success=Success("no_content"),
    errors=_ON_PROMPT,
)
REORDER: Final = Endpoint(
    operation_id="v2.session.inbox.reorder",
    method="POST",
    path="/api/session/{sessionID}/inbox/order",
    group=_GROUP,
    scope="session",
    body=ReorderInbox,
    success=Success("no_content"),
    errors=_ON_PROMPT,
)

ENDPOINTS: Final = (LIST, REVISE, CANCEL, REORDER)
