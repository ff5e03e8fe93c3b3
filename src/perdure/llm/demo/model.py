"""The built-in offline model: deterministic, and not an AI.

It recognises a few tasks by their words (llm.demo.script) and drives the real tools through them.
It keeps no state between turns: the progress of a task is read from the conversation, so a Session
may stop and continue anywhere. It never claims to understand.
"""

from collections.abc import AsyncGenerator
from typing import Final

from perdure.llm.demo import script as demo_script
from perdure.llm.demo import title
from perdure.llm.demo.script import Call, Script
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
from perdure.llm.message import LLMMessage, Part, TextPart, ToolResultPart
from perdure.llm.request import LLMRequest
from perdure.schema.value import Value

RESULT_CHARS_MAX: Final = 4_000


async def demo_call(request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
    """Implements llm.model_call.ModelCall."""
    progress = _progress(request)
    if title.is_asked(progress.prompt):
        for events in _spoken(title.title_of(progress.prompt)):
            yield events
        yield (Finish("stop"),)
        return
    script = demo_script.script_for(progress.prompt)
    call = _next_call(script, progress)
    if call is None:
        spoken = _closing(script, progress)
    elif call.tool not in {tool.name for tool in request.tools}:
        spoken, call = f"The next step needs the {call.tool} tool, which is not offered here.", None
    else:
        spoken = call.says
    if not progress.results:
        spoken = f"{demo_script.INTRODUCTION} {spoken}"
    for events in _spoken(spoken):
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
    prompted = [at for at, message in enumerate(messages) if message.role == "user"]
    if not prompted:
        return _Progress(prompt="", results=())
    prompt, since = messages[prompted[-1]], messages[prompted[-1] + 1 :]
    parts: list[Part] = [part for message in since for part in message.content]
    return _Progress(
        prompt=_text_of(prompt),
        results=tuple(part for part in parts if isinstance(part, ToolResultPart)),
    )


def _next_call(script: Script, progress: _Progress) -> Call | None:
    done = len(progress.results)
    if done >= len(script.calls) or _failed(progress):
        return None
    return script.calls[done]


def _closing(script: Script, progress: _Progress) -> str:
    if not progress.results:
        return script.closing
    result = shared.lower_result(progress.results[-1].result).text
    if len(result) > RESULT_CHARS_MAX:
        result = f"{result[:RESULT_CHARS_MAX]}\n[and more]"
    if _failed(progress):
        return f"The {progress.results[-1].name} tool failed, and the script ends here:\n\n{result}"
    return f"{script.closing}\n\n{result}" if script.shows_result else script.closing


def _failed(progress: _Progress) -> bool:
    return bool(progress.results) and progress.results[-1].result.type == "error"


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
