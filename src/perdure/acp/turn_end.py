"""How the work of a prompt ended, as the protocol says it.

A failure is an error, never a `refusal`: after that a client takes back the prompt and all that
followed, and here nothing is taken back.
"""

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import UNSET

from perdure.core.session import budget
from perdure.schema.ids import MessageID
from perdure.schema.session.message import AssistantMessage, SessionMessage
from perdure.schema.value import Value

StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]

_INTERRUPTED: Final = "Provider turn interrupted"
"""The failure of an interrupted step. Repeated here, because a client loads no runtime."""
_FINISHES: Final[dict[str, StopReason]] = {"length": "max_tokens", "content-filter": "refusal"}


class Stopped(Value):
    reason: StopReason


class Failed(Value):
    message: str


class NotBegun(Value):
    """The prompt is stored, and has not joined the conversation."""


TurnEnd = Stopped | Failed | NotBegun


def find_end(messages: Sequence[SessionMessage], prompt: MessageID) -> TurnEnd:
    """How the work after a prompt ended, from the messages of an idle Session."""
    after: list[AssistantMessage] = []
    for message in reversed(messages):
        if isinstance(message, AssistantMessage):
            after.append(message)
        if message.id == prompt:
            return _end_of(after[0]) if after else Stopped("cancelled")
    return NotBegun()


def is_interrupt(message: AssistantMessage) -> bool:
    return message.error is not UNSET and message.error.message == _INTERRUPTED


def _end_of(last: AssistantMessage) -> TurnEnd:
    if last.error is UNSET:
        finish = "" if last.finish is UNSET else last.finish
        return Stopped(_FINISHES.get(finish, "end_turn"))
    if is_interrupt(last):
        return Stopped("cancelled")
    if budget.is_reached(last.error.message):
        return Stopped("max_turn_requests")
    return Failed(last.error.message)
