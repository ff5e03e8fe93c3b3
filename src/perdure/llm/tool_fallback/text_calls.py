"""A ModelCall that reads the calls which its model prints.

Text is passed on as it arrives. Only its end waits for the end of the answer: if the text turns out
to be a call (llm.tool_fallback.text_parser), it ends with what was said beside it, and the call
follows as any other does. An answer with a native call, or one that was cut off, is left as it is.
"""

from collections.abc import AsyncGenerator, Callable, Sequence

from msgspec import field

from perdure.llm.encoding.shared import json_text
from perdure.llm.event import (
    Finish,
    LLMEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputEnd,
    ToolInputStart,
)
from perdure.llm.model_call import ModelCall
from perdure.llm.request import LLMRequest, ToolDefinition
from perdure.llm.tool_fallback.text_parser import ParsedAnswer
from perdure.schema.value import State

Read = Callable[[str, Sequence[ToolDefinition]], ParsedAnswer | None]


def with_text_calls(call: ModelCall, read: Read) -> ModelCall:
    """`call`, with what `read` finds in the text of its answers."""

    async def asked(request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        answer = _Answer()
        stream = call(request)
        try:
            async for batch in stream:
                if out := answer.take(batch, lambda text: read(text, request.tools)):
                    yield out
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    return asked


class _Answer(State):
    pieces: list[str] = field(default_factory=list[str])
    """Of the newest text."""
    held: TextEnd | None = None
    called: bool = False

    def take(
        self, batch: Sequence[LLMEvent], read: Callable[[str], ParsedAnswer | None]
    ) -> tuple[LLMEvent, ...]:
        out: list[LLMEvent] = []
        for event in batch:
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
                case _:
                    pass
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
