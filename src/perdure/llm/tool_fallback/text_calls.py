"""A ModelCall that turns calls in the model's text into tool calls.

Text is passed on as it arrives. Only its TextEnd waits for the end of the answer: if the text is a
call (llm.tool_fallback.text_parser), it ends with the remaining text, and the call follows. An
answer with a native call, or one that was cut off, is not changed.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import assert_never

from msgspec import field

from perdure.llm.encoding.shared import json_text
from perdure.llm.event import (
    Finish,
    HostedToolResult,
    LLMEvent,
    ProviderError,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputInvalid,
    ToolInputStart,
)
from perdure.llm.model_call import ModelCall
from perdure.llm.request import LLMRequest, ToolDefinition
from perdure.llm.tool_fallback.text_parser import ParsedAnswer
from perdure.net.streams import close_stream
from perdure.schema.value import State

Read = Callable[[str, Sequence[ToolDefinition]], ParsedAnswer | None]


def with_text_calls(call: ModelCall, read: Read) -> ModelCall:
    """Wrap `call`, adding the calls that `read` finds in its text."""

    async def asked(request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        answer = _Answer()
        stream = call(request)
        try:
            async for batch in stream:
                if out := answer.take(batch, lambda text: read(text, request.tools)):
                    yield out
        finally:
            await close_stream(stream)

    return asked


class _Answer(State):
    pieces: list[str] = field(default_factory=list[str])
    """Deltas of the newest text."""
    held: TextEnd | None = None
    called: bool = False

    def take(
        self, batch: Sequence[LLMEvent], read: Callable[[str], ParsedAnswer | None]
    ) -> tuple[LLMEvent, ...]:
        out: list[LLMEvent] = []
        for event in batch:
            if isinstance(event, TextDelta) and self.held is None:
                self.pieces.append(event.text)
                out.append(event)
                continue
            if isinstance(event, Finish):
                out += self._finished(event, read)
                continue
            out += self._released()
            match event:
                case TextEnd():
                    self.held = event
                    continue
                case TextStart():
                    self.pieces = []
                case TextDelta(text=text):
                    self.pieces.append(text)
                case ToolInputStart() | ToolCall():
                    self.called = True
                case (
                    ReasoningStart()
                    | ReasoningDelta()
                    | ReasoningEnd()
                    | ToolInputDelta()
                    | ToolInputEnd()
                    | ToolInputInvalid()
                    | HostedToolResult()
                    | ProviderError()
                ):
                    pass
                case _:
                    assert_never(event)
            out.append(event)
        return tuple(out)

    def _finished(
        self, finish: Finish, read: Callable[[str], ParsedAnswer | None]
    ) -> tuple[LLMEvent, ...]:
        if self.held is None or self.called or finish.reason != "stop":
            return (*self._released(), finish)
        printed = read("".join(self.pieces))
        if printed is None:
            return (*self._released(), finish)
        events: list[LLMEvent] = [TextEnd(self.held.id, printed.text)]
        for number, call in enumerate(printed.calls):
            call_id = f"call_{number}"
            events.append(ToolInputStart(call_id, call.name))
            events.append(ToolInputEnd(call_id, json_text(call.input)))
            events.append(ToolCall(call_id, call.name, call.input))
        reason = "tool-calls" if printed.calls else finish.reason
        return (*events, Finish(reason, finish.usage))

    def _released(self) -> tuple[LLMEvent, ...]:
        held, self.held = self.held, None
        return () if held is None else (held,)
