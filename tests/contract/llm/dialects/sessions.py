"""A whole Session of five turns, as it is stored: with one provider, another one, and back.

It has reasoning, three parallel calls of which one fails, an image, call ids that each answer
counts anew, and an answer without reasoning.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import UNSET

from perdure.core.request.conversation import Conversation
from perdure.llm.message import LLMMessage
from perdure.schema.ids import MessageID, ToolCallID
from perdure.schema.models.model import ModelRef
from perdure.schema.session.message import (
    AssistantMessage,
    Created,
    ReasoningPart,
    SessionMessage,
    Span,
    SystemMessage,
    TextPart,
    ToolPart,
    ToolTime,
    UserMessage,
)
from perdure.schema.session.prompt import FileAttachment
from perdure.schema.session.tool import (
    CompletedState,
    ErrorState,
    PartProvider,
    ProviderMetadata,
    TextContent,
    error_info,
)
from tests.contract.llm.stored_histories import PNG

FOREIGN: Final = ModelRef(id="another", provider_id="elsewhere")


@dataclass(frozen=True, slots=True, kw_only=True)
class Native:
    """What a provider's answers have beside their text."""

    reasoning: ProviderMetadata | None = None
    call: ProviderMetadata | None = None


def requests_of(model: ModelRef, native: Native) -> Iterator[tuple[LLMMessage, ...]]:
    """The conversation of each request that the model is sent in the Session."""
    history = _session(model, native)
    for end, message in enumerate(history):
        if isinstance(message, AssistantMessage) and message.model == model:
            yield _lowered(history[:end], model)
    yield _lowered(history, model)


def _lowered(history: Sequence[SessionMessage], model: ModelRef) -> tuple[LLMMessage, ...]:
    said = Conversation(model)
    return tuple(part for message in history for part in said.lower(message))


def _session(model: ModelRef, native: Native) -> list[SessionMessage]:
    def own(number: int, text: str, *calls: ToolPart, thought: str = "") -> AssistantMessage:
        return _answer(number, text, *calls, thought=thought, model=model, native=native)

    call = native.call
    return [
        _asked(1, "Look at this.", PNG),
        own(2, "A picture.", thought="thought-1"),
        _asked(3, "Now work."),
        own(4, "Let me see.", *(_call(at, call) for at in range(3)), thought="thought-2"),
        own(5, "One failed.", thought="thought-3"),
        SystemMessage(id=MessageID("msg_6"), time=Created(created=6), text="It is Friday."),
        _asked(7, "Ask the other."),
        _answer(
            8,
            "I look too.",
            _call(0, None),
            thought="foreign thought",
            model=FOREIGN,
            native=Native(reasoning={"anthropic": {"signature": "Zm9v"}}),
        ),
        _answer(9, "Seen.", model=FOREIGN, native=Native()),
        _asked(10, "And you again?"),
        own(11, "Once more.", _call(0, call), thought="thought-4"),
        own(12, "Same as before."),
        _asked(13, "Thanks."),
    ]


def _asked(number: int, text: str, *images: str) -> UserMessage:
    files = tuple(FileAttachment(uri=uri, mime="image/png", name="a.png") for uri in images)
    return UserMessage(
        id=MessageID(f"msg_{number}"),
        time=Created(created=number),
        text=text,
        files=files or UNSET,
    )


def _answer(
    number: int,
    text: str,
    *calls: ToolPart,
    model: ModelRef,
    native: Native,
    thought: str = "",
) -> AssistantMessage:
    thinking = ReasoningPart(
        id=f"r{number}", text=thought, provider_metadata=_numbered(native.reasoning, thought)
    )
    return AssistantMessage(
        id=MessageID(f"msg_{number}"),
        time=Span(created=number, completed=number),
        agent="build",
        model=model,
        content=(*((thinking,) if thought else ()), TextPart(id=f"t{number}", text=text), *calls),
        finish="tool-calls" if calls else "stop",
    )


def _numbered(metadata: ProviderMetadata | None, thought: str) -> ProviderMetadata:
    """Details of OpenRouter hold the text of the reasoning too."""
    found = metadata or {}
    if "openai_compatible" not in found:
        return found
    detail = {"type": "reasoning.text", "text": thought, "signature": "c2ln", "index": 0}
    return {"openai_compatible": {"reasoning_details": [detail]}}


def _call(at: int, native: ProviderMetadata | None) -> ToolPart:
    failed = at == 1
    state = (
        ErrorState(input={"n": at}, content=(), structured={}, error=error_info("no such file"))
        if failed
        else CompletedState(
            input={"n": at},
            content=(TextContent(text=f"found {at}"),),
            output_paths=(),
            structured={},
        )
    )
    return ToolPart(
        id=ToolCallID(f"call_{at}"),
        name="read",
        state=state,
        time=ToolTime(created=1, ran=1, completed=1),
        provider=PartProvider(executed=False, metadata=native or UNSET),
    )
