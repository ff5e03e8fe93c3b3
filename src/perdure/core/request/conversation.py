"""The messages of a Session as one conversation with a model: lowered in order.

Providers refuse a call id that occurs twice, and some servers count theirs anew in each answer. The
first call of an id keeps it; a later one gets an id made from its message, so that the next request
has the same. A provider may also refuse native parts that it made itself (signatures, encrypted
reasoning): the step that was then sent without them is marked, and all before it stay without.
"""

from collections.abc import Iterable
from hashlib import blake2b

from msgspec import UNSET, field
from msgspec.structs import replace

from perdure.core.request import history_to_llm
from perdure.llm.message import LLMMessage, Part, ToolCallPart, ToolResultPart
from perdure.schema.models.model import ModelRef, StepRoute
from perdure.schema.session.message import AssistantMessage, SessionMessage
from perdure.schema.value import State


class Conversation(State):
    """Lowers messages for one model. Each must be given once, in order."""

    model: ModelRef
    route: StepRoute | None = None
    call_ids: set[str] = field(default_factory=set[str])
    """Those of the calls so far."""

    def lower(self, message: SessionMessage, *, native: bool = True) -> tuple[LLMMessage, ...]:
        """As history_to_llm.lower, with call ids that no earlier message has."""
        lowered = history_to_llm.lower(message, self.model, route=self.route, native=native)
        own = {part.id for part in _calls(lowered)}
        taken = own & self.call_ids
        renamed = {call_id: _derive_id(message.id, call_id) for call_id in taken}
        self.call_ids |= (own - taken) | {*renamed.values()}
        if not renamed:
            return lowered
        return tuple(
            replace(said, content=tuple(_renamed(part, renamed) for part in said.content))
            for said in lowered
        )


def begins_plain(message: SessionMessage) -> bool:
    """Whether all answers before this one are sent without their native parts."""
    if not isinstance(message, AssistantMessage) or message.route is UNSET:
        return False
    return message.route.plain is True


def _calls(lowered: Iterable[LLMMessage]) -> Iterable[ToolCallPart]:
    parts = (part for message in lowered for part in message.content)
    return (p for p in parts if isinstance(p, ToolCallPart) and not p.provider_executed)


def _renamed(part: Part, names: dict[str, str]) -> Part:
    match part:
        case ToolCallPart(provider_executed=False) | ToolResultPart(provider_executed=False):
            return replace(part, id=names.get(part.id, part.id))
        case _:
            return part


def _derive_id(message_id: str, call_id: str) -> str:
    digest = blake2b(f"{message_id} {call_id}".encode("utf-8", "surrogatepass"), digest_size=12)
    return f"call_{digest.hexdigest()}"
