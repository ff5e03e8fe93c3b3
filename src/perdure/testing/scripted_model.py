"""A model that gives the answers that a test wrote, and keeps the requests.

It replaces only the provider: runtime, tools and store are the real ones. Requests are answered in
the order in which the turns were scripted; a request without a scripted turn fails the test.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator

from msgspec import field

from perdure.llm.error import LLMError, Reason
from perdure.llm.event import (
    Finish,
    FinishReason,
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
    Usage,
)
from perdure.llm.message import LLMMessage, TextPart
from perdure.llm.request import LLMRequest
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.value import State, Value


class Reasoning(Value):
    text: str


class Call(Value):
    name: str
    input: JsonObject
    id: str | None = None


class InvalidCall(Value):
    """A call whose input is not JSON."""

    name: str
    raw: str
    id: str | None = None


class Failure(Value):
    """The call fails here."""

    error: LLMError


class StreamError(Value):
    """The provider reports, inside its stream, that it failed."""

    message: str
    reason: Reason = "unknown"
    retry_after_ms: int | None = None


class Pause(State):
    """A point at which the turn is held. `reached` is set there; `release` lets the turn go on."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    _open: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        self._open.set()

    async def wait(self) -> None:
        self.reached.set()
        await self._open.wait()


class Text(Value):
    """With `hold` the turn is held after the first word."""

    text: str
    hold: Pause | None = None


Step = Text | Reasoning | Call | InvalidCall | Failure | StreamError | Pause
_Atom = tuple[LLMEvent, ...] | Pause | LLMError


def text(value: str, *, hold: Pause | None = None) -> Text:
    return Text(value, hold)


def reasoning(value: str) -> Reasoning:
    return Reasoning(value)


def tool_call(name: str, input: JsonObject, *, id: str | None = None) -> Call:
    return Call(name, input, id)


def invalid_call(name: str, raw: str, *, id: str | None = None) -> InvalidCall:
    return InvalidCall(name, raw, id)


def failure(error: LLMError) -> Failure:
    return Failure(error)


def pause() -> Pause:
    return Pause()


class ScriptedModel:
    """Implements llm.model_call.ModelCall."""

    def __init__(self) -> None:
        self.requests: list[LLMRequest] = []
        self.abandoned = 0
        """The number of turns that were closed before their end."""
        self._turns: deque[list[_Atom]] = deque()
        self._calls = 0
        self._asked = asyncio.Event()

    def turn(
        self, *steps: Step, finish: FinishReason | None = None, usage: Usage | None = None
    ) -> "ScriptedModel":
        """Script the next turn. Its finish reason follows from its steps unless it is given."""
        atoms = [atom for number, step in enumerate(steps) for atom in self._atoms(step, number)]
        atoms.append((Finish(finish or _finish_of(steps), usage),))
        self._turns.append(atoms)
        return self

    async def until_asked(self, count: int) -> None:
        """Wait until `count` requests have arrived since the model was made."""
        while len(self.requests) < count:
            self._asked.clear()
            await self._asked.wait()

    async def __call__(self, request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        self.requests.append(request)
        self._asked.set()
        assert self._turns, f"turn {len(self.requests)} was asked for but not scripted"
        atoms = self._turns.popleft()
        ended = False
        try:
            for atom in atoms:
                if isinstance(atom, Pause):
                    await atom.wait()
                    continue
                ended = isinstance(atom, LLMError) or isinstance(atom[-1], Finish | ProviderError)
                if isinstance(atom, LLMError):
                    raise atom
                yield atom
                if ended:
                    return
        finally:
            self.abandoned += not ended

    def _atoms(self, step: Step, number: int) -> list[_Atom]:
        match step:
            case Text(text=value, hold=hold):
                return _text_atoms(f"text-{number}", value, hold)
            case Reasoning(text=value):
                part = f"reasoning-{number}"
                return [(ReasoningStart(part), ReasoningDelta(part, value), ReasoningEnd(part))]
            case Call(name=name, input=input, id=given):
                call = self._call_id(given)
                raw = codec.encode(input).decode()
                return [(*_input(call, name, raw), ToolCall(call, name, input))]
            case InvalidCall(name=name, raw=raw, id=given):
                call = self._call_id(given)
                invalid = ToolInputInvalid(call, name, "the tool's input is not JSON")
                return [(*_input(call, name, raw), invalid)]
            case StreamError(message=message, reason=reason, retry_after_ms=wait):
                error = ProviderError(message=message, reason=reason, retry_after_ms=wait)
                return [(error,)]
            case Failure(error=error):
                return [error]
            case Pause():
                return [step]

    def _call_id(self, given: str | None) -> str:
        self._calls += 1
        return given or f"call_{self._calls}"


def texts_of(request: LLMRequest, role: str = "user") -> list[str]:
    """The texts that one role contributes to a request, in order."""
    messages: list[LLMMessage] = [
        message for segment in request.segments for message in segment.messages
    ]
    return [
        part.text
        for message in messages
        if message.role == role
        for part in message.content
        if isinstance(part, TextPart)
    ]


def _finish_of(steps: tuple[Step, ...]) -> FinishReason:
    return "tool-calls" if any(isinstance(s, Call | InvalidCall) for s in steps) else "stop"


def _text_atoms(part: str, value: str, hold: Pause | None) -> list[_Atom]:
    first, *rest = _words(value)
    end: tuple[LLMEvent, ...] = (*(TextDelta(part, word) for word in rest), TextEnd(part))
    start: tuple[LLMEvent, ...] = (TextStart(part), TextDelta(part, first))
    return [start + end] if hold is None else [start, hold, end]


def _input(id: str, name: str, raw: str) -> tuple[LLMEvent, ...]:
    return (ToolInputStart(id, name), ToolInputDelta(id, raw), ToolInputEnd(id, raw))


def _words(value: str) -> list[str]:
    *words, last = value.split(" ")
    return [*(f"{word} " for word in words), last]
