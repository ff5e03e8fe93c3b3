"""AG-UI 1.0: a run of a Session as a stream of events for user interfaces of others.

It stands beside the contract: it is another's protocol, and the clients of ours do not need it. Its
messages are open: fields that are not known here are left alone.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.codec import JsonObject, JsonValue, Payload
from perdure.schema.errors import (
    InboxFullError,
    PromptConflictError,
    ServiceUnavailableError,
)

GROUP: Final = "ag-ui"
PATH: Final = b"/ag-ui"
ID_CHARS_MAX: Final = 500
_Id = Annotated[str, Meta(min_length=1, max_length=ID_CHARS_MAX)]
_NAMES: Final = {
    "thread_id": "threadId",
    "run_id": "runId",
    "interrupt_id": "interruptId",
}


class AgUiMessage(Payload, frozen=True):
    """A message of the interface. Only what the user says is read."""

    id: _Id
    role: str
    content: JsonValue = None


class AgUiResume(Payload, frozen=True, rename=_NAMES):
    """An answer to an interrupt."""

    interrupt_id: _Id
    status: Literal["resolved", "cancelled"]
    payload: JsonValue = None


class RunAgent(Payload, frozen=True, rename=_NAMES):
    thread_id: _Id
    run_id: _Id
    messages: tuple[AgUiMessage, ...] = ()
    resume: tuple[AgUiResume, ...] | None = None


RUN: Final = Endpoint(
    operation_id="ag-ui.run",
    method="POST",
    path=PATH.decode(),
    group=GROUP,
    body=RunAgent,
    success=Success("durable_stream", JsonObject),
    errors=(*REFUSALS, PromptConflictError, InboxFullError, ServiceUnavailableError),
)

AG_UI_API: Final = (RUN,)
