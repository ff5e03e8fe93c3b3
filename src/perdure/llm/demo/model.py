"""The built-in offline model: deterministic, and not an AI.

It recognises a few tasks by their words (llm.demo.tasks), does the parts of a prompt one after the
other (llm.demo.script), and drives the real tools through them. It keeps no state between turns:
the progress is read from the conversation, so a Session may stop and continue anywhere. It never
claims to understand.
"""

import re
from collections.abc import AsyncGenerator, Sequence
from typing import Final

from perdure.llm.demo import script, title
from perdure.llm.demo.tasks import Call, Part
from perdure.llm.encoding import shared
from perdure.llm.event import (
    Finish,
    LLMEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from perdure.llm.message import LLMMessage, TextPart, ToolResultPart
from perdure.llm.request import LLMRequest
from perdure.schema import codec
from perdure.schema.value import Value

RESULT_CHARS_MAX: Final = 4_000
INTERRUPTED: Final = "Tool execution interrupted"
"""How the result of a call begins whose server was stopped; a test compares it with the text of
core.session.recovery."""
_CONTENT: Final = re.compile(r'"content":("(?:[^"\\]|\\.)*")')
GO_ON: Final = "Your last answer was cut"
"""How the runtime begins when it asks again for an answer that was cut. It is no new prompt."""


async def demo_call(request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
    """Implements llm.model_call.ModelCall."""
    progress = _progress(request)
    if title.is_asked(progress.prompt):
        for events in _spoken(title.title_of(progress.prompt)):
            yield events
        yield (Finish("stop"),)
        return
    step = _next_step(script.parts_of(progress.prompt), progress.results)
    says, call = list(step.says), step.call
    if call is not None and call.tool not in {tool.name for tool in request.tools}:
        says.append(f"The next step needs the {call.tool} tool, which is not offered here.")
        call = None
    elif call is not None:
        says.append(call.says)
    spoken = "\n\n".join(filter(None, says))
    if not progress.results:
        spoken = f"{script.INTRODUCTION} {spoken}".strip()
    for events in _spoken(spoken or "That was all."):
        yield events
    if call is not None:
        yield _called(call, f"call_{len(progress.results)}")
    yield (Finish("stop" if call is None else "tool-calls"),)


class _Progress(Value, kw_only=True):
    """The latest prompt, and the tool results since."""

    prompt: str
    results: tuple[ToolResultPart, ...]


def _progress(request: LLMRequest) -> _Progress:
    messages = [message for segment in request.segments for message in segment.messages]
    prompted = [
        at
        for at, message in enumerate(messages)
        if message.role == "user" and not _text_of(message).startswith(GO_ON)
    ]
    if not prompted:
        return _Progress(prompt="", results=())
    prompt, since = messages[prompted[-1]], messages[prompted[-1] + 1 :]
    parts = [part for message in since for part in message.content]
    return _Progress(
        prompt=_text_of(prompt),
        results=tuple(part for part in parts if isinstance(part, ToolResultPart)),
    )


class _Step(Value, kw_only=True):
    """What the model says next, and the tool that it calls, if any."""

    says: tuple[str, ...]
    call: Call | None = None


def _next_step(parts: Sequence[Part], results: Sequence[ToolResultPart]) -> _Step:
    """The step after these results: each call of each part takes one, in order."""
    rest = list(results)
    says: list[str] = []
    for part in parts:
        last: ToolResultPart | None = None
        for call in part.calls:
            says = says if last is None else []
            while rest and call.repeatable and _is_interrupted(rest[0]):
                rest.pop(0)
                says = ["The server was stopped while this ran, so it is done again."]
            if not rest:
                return _Step(says=tuple(says), call=call)
            last = rest.pop(0)
            if last.result.type == "error":
                return _Step(says=(_describe_failure(last),))
        closing = part.closing
        if last is not None and part.shows_result:
            closing = f"{closing}\n\n{_text_of_result(last)}"
        says = [closing] if last is not None else [*says, closing]
    return _Step(says=tuple(says))


def _is_interrupted(part: ToolResultPart) -> bool:
    is_error = part.result.type == "error"
    return is_error and shared.lower_result(part.result).text.startswith(INTERRUPTED)


def _describe_failure(part: ToolResultPart) -> str:
    text = _text_of_result(part)
    return f"The {part.name} tool failed, and the script ends here:\n\n{text}"


def _text_of_result(part: ToolResultPart) -> str:
    text = shared.lower_result(part.result).text
    if part.name == "read" and (content := _CONTENT.search(text)) is not None:
        # What the file holds, and not how the tool tells it.
        text = codec.decode_any(content[1].encode())
    return text if len(text) <= RESULT_CHARS_MAX else f"{text[:RESULT_CHARS_MAX]}\n[and more]"


def _text_of(message: LLMMessage) -> str:
    return "\n".join(part.text for part in message.content if isinstance(part, TextPart))


def _spoken(text: str) -> list[tuple[LLMEvent, ...]]:
    """The text word by word, as a real model would stream it."""
    part = "text-0"
    *words, last = text.split(" ")
    deltas = [TextDelta(part, f"{word} ") for word in words]
    return [
        (TextStart(part),),
        *((delta,) for delta in deltas),
        (TextDelta(part, last), TextEnd(part)),
    ]


def _called(call: Call, id: str) -> tuple[LLMEvent, ...]:
    raw = shared.json_text(call.input)
    return (
        ToolInputStart(id, call.tool),
        ToolInputDelta(id, raw),
        ToolInputEnd(id, raw),
        ToolCall(id, call.tool, call.input),
    )
