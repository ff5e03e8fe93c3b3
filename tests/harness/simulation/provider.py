"""A provider whose every answer is drawn from the seed: good, slow, broken, hostile or silent.

An answer is drawn as a whole, as a list of chunks, and then sent in virtual time. A new way for a
provider to behave is one more function in `BEHAVIOURS`. While the conditions are calm only plain
answers are drawn, so that a simulation can come to rest.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from random import Random
from typing import Final, get_args

from perdure.core import limits
from perdure.llm import event as llm
from perdure.llm.error import LLMError, Reason
from perdure.llm.event import LLMEvent
from perdure.llm.message import ToolResult
from perdure.llm.request import LLMRequest
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.ids import SessionID
from perdure.schema.value import State, Value
from tests.harness.checkers.witness import Witness

WORDS: Final = ("so", "then", "we", "look", "at", "the", "\u00fcber", "\U0001f600", "file", "\n")
SUBAGENTS: Final = ("general", "explore")
_LARGE: Final = "x" * limits.ANSWER_HOSTED_BYTES_MAX
_REASONS: Final[tuple[Reason, ...]] = get_args(Reason)


class SimulatedDefect(Exception):
    """An injected bug of a provider or tool. Any other exception is a bug of the runtime."""


class Conditions(State):
    """Shared conditions of all simulated providers and tools."""

    calm: bool = False
    """Only plain answers, so that the run can come to rest."""
    insistent: SessionID | None = None
    """The Session whose model makes the same call in every answer, whatever came of it."""
    outage: bool = False
    """The project's directory is gone; opening it for the first time fails."""


class Delay(Value):
    seconds: float


class Stall(Value):
    """Nothing comes any more, and the connection stays open."""


Chunk = tuple[LLMEvent, ...] | Delay | Stall | LLMError | MemoryError | SimulatedDefect


class SimulatedProvider:
    """Implements llm.model_call.ModelCall for one process."""

    def __init__(
        self, process: str, chance: Random, witness: Witness, conditions: Conditions
    ) -> None:
        self._process = process
        self._chance = chance
        self._witness = witness
        self._conditions = conditions
        self._calls = 0

    async def __call__(self, request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        session_id = self._witness.asked(self._process, request)
        for chunk in self._script(request, session_id):
            if isinstance(chunk, Delay):
                await asyncio.sleep(chunk.seconds)
            elif isinstance(chunk, Stall):
                await self._stall(session_id)
            elif isinstance(chunk, SimulatedDefect):
                self._witness.defect(session_id)
                raise chunk
            elif isinstance(chunk, LLMError | MemoryError):
                self._witness.refused(session_id, getattr(chunk, "reason", None))
                raise chunk
            else:
                for event in chunk:
                    if isinstance(event, llm.ProviderError):
                        self._witness.refused(session_id, event.reason)
                yield chunk

    async def _stall(self, session_id: SessionID) -> None:
        self._witness.stalls_begin(self._process, session_id)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._witness.stalls_end(self._process, session_id)

    def _script(self, request: LLMRequest, session_id: SessionID) -> list[Chunk]:
        draw = Draw(self._chance, tuple(tool.name for tool in request.tools), self._next_call)
        if self._conditions.calm:
            return [*draw.text(), draw.finish("stop")]
        if self._conditions.insistent == session_id and draw.offers("sim_work"):
            return [*draw.call("sim_work"), draw.finish("tool-calls")]
        behaviours, weights = zip(*BEHAVIOURS, strict=True)
        (behaviour,) = self._chance.choices(behaviours, weights)
        return behaviour(draw)

    def _next_call(self) -> str:
        # Ids of calls repeat across turns: providers number them anew each time.
        self._calls = self._calls % 5 + 1
        return f"call_{self._calls}"


class Draw:
    """Pieces of an answer."""

    def __init__(self, chance: Random, tools: tuple[str, ...], call_id: Callable[[], str]) -> None:
        self.chance = chance
        self._tools = tools
        self._call_id = call_id

    def offers(self, tool: str) -> bool:
        return tool in self._tools

    def delay(self) -> Delay:
        return Delay(self.chance.choice((0.0, 0.001, 0.03, 0.4)))

    def words(self) -> str:
        return " ".join(self.chance.choices(WORDS, k=self.chance.randint(1, 6)))

    def text(self, *, id: str = "text-1", ended: bool = True) -> list[Chunk]:
        chunks: list[Chunk] = [self.delay(), (llm.TextStart(id),)]
        for _ in range(self.chance.randint(0, 3)):
            chunks += [self.delay(), (llm.TextDelta(id, self.words()),)]
        return [*chunks, (llm.TextEnd(id),)] if ended else chunks

    def reasoning(self) -> list[Chunk]:
        note = {"sim": {"signature": self.words()}}
        return [
            self.delay(),
            (llm.ReasoningStart("reasoning-1"), llm.ReasoningDelta("reasoning-1", self.words())),
            self.delay(),
            (llm.ReasoningEnd("reasoning-1", self.chance.choice((None, note))),),
        ]

    def call(self, wanted: str | None = None) -> list[Chunk]:
        name, given = self._tool_and_input() if wanted is None else (wanted, self._input(wanted))
        call = self._call_id()
        raw = codec.encode(given).decode()
        opened = (llm.ToolInputStart(call, name), llm.ToolInputDelta(call, raw[:4]))
        if self.chance.random() < 0.1:
            broken = llm.ToolInputInvalid(call, name, "the tool's input is not JSON")
            return [opened, self.delay(), (llm.ToolInputEnd(call, raw[:4]), broken)]
        rest = (llm.ToolInputDelta(call, raw[4:]), llm.ToolInputEnd(call, raw))
        return [opened, self.delay(), (*rest, llm.ToolCall(call, name, given)), self.delay()]

    def _tool_and_input(self) -> tuple[str, JsonObject]:
        """Mostly a simulated tool; never one that would start a process or a thread."""
        known = [name for name in self._tools if name.startswith("sim_")]
        others = ("read", "question", "todowrite", "sim_nowhere")
        name = self.chance.choice((*known, *known, *others))
        return name, {"wrong": 1} if self.chance.random() < 0.1 else self._input(name)

    def _input(self, name: str) -> JsonObject:
        match name:
            case "read":
                return {"path": self.chance.choice(("notes.txt", "nowhere.txt", "."))}
            case "question":
                option = {"label": "yes", "description": self.words()}
                asked = {"question": self.words(), "header": "sim", "options": [option]}
                return {"questions": [asked] * self.chance.randint(1, 2)}
            case "task":
                given: JsonObject = {
                    "description": self.words(),
                    "prompt": self.words(),
                    "subagent_type": self.chance.choice((*SUBAGENTS, *SUBAGENTS, "nobody")),
                }
                return given | ({"background": True} if self.chance.random() < 0.3 else {})
            case "todowrite":
                item = {"content": self.words(), "status": "pending", "priority": "low"}
                return {"todos": [item] * self.chance.randint(0, 3)}
            case _:
                return {"note": self.words()}

    def hosted(self) -> list[Chunk]:
        call = self._call_id()
        made = llm.ToolCall(call, "web_search", {"query": self.words()}, provider_executed=True)
        result = llm.HostedToolResult(call, ToolResult("json", {"found": self.words()}))
        return [(made,), self.delay(), *([(result,)] if self.chance.random() < 0.7 else [])]

    def finish(self, reason: llm.FinishReason) -> Chunk:
        usage = llm.Usage(input=self.chance.randint(1, 99), output=self.chance.randint(1, 99))
        return (llm.Finish(reason, self.chance.choice((None, usage))),)

    def error(self) -> LLMError:
        return LLMError(self.chance.choice(_REASONS), f"simulated: {self.words()}")

    def calls(self) -> list[Chunk]:
        return [chunk for _ in range(self.chance.randint(1, 3)) for chunk in self.call()]


def _answers(draw: Draw) -> list[Chunk]:
    return [*draw.text(), *draw.text(id="text-2"), draw.finish("stop")]


def _thinks(draw: Draw) -> list[Chunk]:
    return [*draw.reasoning(), *draw.text(), draw.finish("stop")]


def _works(draw: Draw) -> list[Chunk]:
    return [*draw.reasoning(), *draw.text(), *draw.calls(), draw.finish("tool-calls")]


def _works_at_once(draw: Draw) -> list[Chunk]:
    """Everything arrives in one piece."""
    chunks = [chunk for chunk in (*draw.text(), *draw.calls()) if isinstance(chunk, tuple)]
    together = tuple(event for chunk in chunks for event in chunk)
    finish = draw.finish("tool-calls")
    assert isinstance(finish, tuple)
    return [(*together, *finish)]


def _asks(draw: Draw) -> list[Chunk]:
    """Wants to know something of a person, perhaps beside other work."""
    beside = draw.call() if draw.chance.random() < 0.5 else []
    return [*draw.call("question"), *beside, draw.finish("tool-calls")]


def _delegates(draw: Draw) -> list[Chunk]:
    """Has others do a part of it, perhaps several at once, and beside other work."""
    tasks = [chunk for _ in range(draw.chance.randint(1, 2)) for chunk in draw.call("task")]
    beside = draw.call() if draw.chance.random() < 0.5 else []
    return [*tasks, *beside, draw.finish("tool-calls")]


def _searches(draw: Draw) -> list[Chunk]:
    return [*draw.hosted(), *draw.text(), draw.finish("stop")]


def _fails_at_once(draw: Draw) -> list[Chunk]:
    return [draw.delay(), draw.error()]


def _is_full(draw: Draw) -> list[Chunk]:
    """Says that the request was too large, in one way or the other."""
    said = f"simulated: {draw.words()}"
    event = llm.ProviderError(message=said, reason="overflow")
    return [draw.delay(), draw.chance.choice((LLMError("overflow", said), (event,)))]


def _fails_midway(draw: Draw) -> list[Chunk]:
    return [*draw.text(ended=False), draw.delay(), draw.error()]


def _fails_after_calls(draw: Draw) -> list[Chunk]:
    return [*draw.calls(), draw.delay(), draw.error()]


def _reports_error(draw: Draw) -> list[Chunk]:
    error = llm.ProviderError(message=draw.words(), reason=draw.chance.choice(_REASONS))
    return [*draw.text(ended=False), *draw.calls(), (error,)]


def _stalls(draw: Draw) -> list[Chunk]:
    first = draw.chance.choice((draw.text(ended=False), draw.calls(), []))
    return [*first, Stall()]


def _breaks_off(draw: Draw) -> list[Chunk]:
    return [*draw.text(ended=False)]


def _breaks_rules(draw: Draw) -> list[Chunk]:
    twice: list[Chunk] = [*draw.text(), (llm.TextStart("text-1"),)]
    unopened: list[Chunk] = [(llm.TextDelta("text-9", "lost"),)]
    unknown: list[Chunk] = [(llm.ToolInputEnd("call_99", "{}"),)]
    return [*draw.chance.choice((twice, unopened, unknown)), draw.finish("stop")]


def _retries(draw: Draw) -> list[Chunk]:
    """Refuses for now, and says when to come back, if at all."""
    told = draw.chance.choice((None, 400, 20_000, 90_000))
    reason: Reason = draw.chance.choice(("overload", "quota-exceeded"))
    return [LLMError(reason, "simulated", status=529, retry_after_ms=told)]


def _is_empty(draw: Draw) -> list[Chunk]:
    return [draw.finish("stop")]


def _is_endless(draw: Draw) -> list[Chunk]:
    """Sends more than one answer may have, or more than there is memory for."""
    first = draw.chance.choice((draw.text(ended=False), draw.calls(), []))
    searched = draw.hosted()[0]
    assert isinstance(searched, tuple)
    (call,) = searched
    assert isinstance(call, llm.ToolCall)
    large: Chunk = (llm.HostedToolResult(call.id, ToolResult("text", _LARGE)),)
    return [*first, *draw.chance.choice(([searched, large], [MemoryError()]))]


def _has_a_bug(draw: Draw) -> list[Chunk]:
    first = draw.chance.choice((draw.text(ended=False), draw.calls(), []))
    return [*first, SimulatedDefect("simulated defect of a model call")]


Behaviour = Callable[[Draw], list[Chunk]]

BEHAVIOURS: Final[tuple[tuple[Behaviour, int], ...]] = (
    (_answers, 12),
    (_thinks, 6),
    (_works, 22),
    (_works_at_once, 10),
    (_asks, 5),
    (_delegates, 6),
    (_searches, 4),
    (_fails_at_once, 3),
    (_is_full, 3),
    (_fails_midway, 3),
    (_fails_after_calls, 3),
    (_reports_error, 3),
    (_stalls, 4),
    (_breaks_off, 2),
    (_breaks_rules, 2),
    (_retries, 2),
    (_is_empty, 2),
    (_has_a_bug, 2),
    (_is_endless, 2),
)
"""Each way to answer, and how often it is drawn."""
