"""Compaction with a summariser that misbehaves, in windows of every size.

The model counts tokens in its own way and refuses what does not fit. Time is virtual, so that one
that never answers costs nothing. Everything else is the real runtime on a real database.
`PERDURE_SESSIONS` asks for more Sessions that are drawn, each from its seed.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Final, Literal

import pytest
from msgspec.structs import replace

from perdure.core.models.catalog import CatalogProvider, host_provider
from perdure.core.request import token_budget
from perdure.host import environment
from perdure.host.process_locks import ProcessLocks
from perdure.llm.error import LLMError
from perdure.llm.event import Finish, LLMEvent, TextDelta, TextEnd, TextStart, Usage
from perdure.llm.message import LLMMessage, TextPart
from perdure.llm.model_call import ModelCall
from perdure.llm.request import LLMRequest
from perdure.runtime.app.runtime import Platform, Runtime, RuntimeSettings, compose
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.ids import Seq, SessionID
from perdure.schema.models.model import ModelLimit
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.prompt import PromptInput
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.testing import SeededIds
from tests.figures import Figure
from tests.harness.simulation.virtual_clock import VirtualClock
from tests.harness.simulation.virtual_loop import VirtualLoop

Manner = Literal[
    "well", "fails", "breaks", "echoes", "overflows", "stalls", "says nothing", "never stops"
]
MANNERS: Final[tuple[Manner, ...]] = (
    "well", "fails", "breaks", "echoes", "overflows", "stalls", "says nothing", "never stops",
)  # fmt: skip
WINDOWS: Final = (8_000, 32_000, 200_000)
SESSIONS: Final = "compacted sessions"
SUMMARY: Final = "## Objective\n- going on"
SESSION: Final = SessionID("ses_torture")
DIRECTIVE: Final = "NEVER touch main.c, and ALWAYS answer in Latin."
ROUNDS: Final = 16
DRAWN: Final = int(os.environ.get("PERDURE_SESSIONS", "4"))
_TEN_MEGABYTES: Final = 10 * 1024 * 1024
_WORDS: Final = ("lorem", "ipsum", "dolor", "\u00fcber", "if (x) {", "\n", "0x1f")


@dataclass
class Model:
    """Implements llm.model_call.ModelCall."""

    context: int
    manner: Manner
    factor: float
    """Its tokens for one of ours."""
    turns: list[LLMRequest] = field(default_factory=list[LLMRequest])
    summaries: int = 0
    refused: int = 0

    async def __call__(self, request: LLMRequest) -> AsyncIterator[tuple[LLMEvent, ...]]:
        if request.system:
            async for batch in self._turn(request):
                yield batch
            return
        self.summaries += 1
        async for batch in self._condense(request):
            yield batch

    async def _turn(self, request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        size = self.count(request)
        if size > self.context:
            self.refused += 1
            raise LLMError("overflow", "too many tokens")
        self.turns.append(request)
        usage = Usage(input=size, output=3)
        yield (TextStart("t"), TextDelta("t", "Bene est."), TextEnd("t"), Finish("stop", usage))

    async def _condense(self, request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        match self.manner:
            case "well":
                assert self.count(request) <= self.context
                said = SUMMARY
            case "fails":
                raise LLMError("provider-internal", "down")
            case "overflows":
                raise LLMError("overflow", "too many tokens")
            case "breaks":
                raise ZeroDivisionError("a bug of somebody else's")
            case "echoes":
                said = "".join(_texts(request))
            case "says nothing":
                said = " \n"
            case "stalls":
                yield (TextStart("t"), TextDelta("t", "half a"))
                await asyncio.get_running_loop().create_future()
                return
            case "never stops":
                yield (TextStart("t"),)
                for _ in range(_TEN_MEGABYTES // 4_096):
                    yield (TextDelta("t", "x" * 4_096),)
                said = ""
        yield (TextStart("t"), TextDelta("t", said), TextEnd("t"), Finish("stop", None))

    def count(self, request: LLMRequest) -> int:
        messages = [message for run in request.runs for message in run.messages]
        fixed = token_budget.estimate_fixed(request.system, request.tools)
        return round(self.factor * (fixed + token_budget.estimate_messages(messages)))


def _texts(request: LLMRequest) -> list[str]:
    parts = (part for run in request.runs for message in run.messages for part in message.content)
    return [part.text for part in parts if isinstance(part, TextPart)]


def provider(model: ModelCall, context: int) -> CatalogProvider:
    supplied = host_provider("torture", {"one": model})
    limit = ModelLimit(context=context, output=context // 16)
    models = {name: replace(found, limit=limit) for name, found in supplied.models.items()}
    return replace(supplied, models=models)


@asynccontextmanager
async def opened(
    root: Path, loop: VirtualLoop, model: ModelCall, context: int
) -> AsyncGenerator[Runtime]:
    clock = VirtualClock(loop)
    path = str(root / "perdure.db")
    migrate.migrate(path)
    # In the smallest windows there is no room for many tools, whatever is condensed.
    denied: list[JsonObject] = [{"action": "*", "resource": "*", "effect": "deny"}]
    small = 0 < context < 20_000
    configuration: JsonObject = {"permissions": denied} if small else {}
    (root / "opencode.json").write_bytes(codec.encode(configuration))
    settings = RuntimeSettings(
        environment=environment.from_variables({"HOME": str(root), "TMPDIR": str(root)}),
        data_dir=str(root),
        default_directory=str(root),
        providers=(provider(model, context),),
    )
    async with AsyncExitStack() as stack:
        locks = ProcessLocks(str(root / "processes"), "prc_torture")
        database = SqliteDatabase(path, inline=True)
        foundations = Platform(
            database=await stack.enter_async_context(database),
            processes=stack.enter_context(locks),
            clock=clock,
            ids=SeededIds(1, clock),
        )
        yield await stack.enter_async_context(compose(settings, foundations, path))


@cache
def material(context: int) -> tuple[str, ...]:
    """Of every size up to half of what fits, more often of a large one, so that windows fill.

    Drawn once: every summariser gets the same.
    """
    chance = Random(context)
    sizes = (1 + int(context // 6 * chance.random() ** (1 / 3)) for _ in range(ROUNDS))
    return tuple(" ".join(chance.choices(_WORDS, k=words)) for words in sizes)


async def converse(runtime: Runtime, context: int) -> list[SessionEvent]:
    """A directive, then the material; the whole log."""
    await runtime.sessions.create(id=SESSION)
    for text in (DIRECTIVE, *material(context)):
        await runtime.sessions.prompt(SESSION, PromptInput(text=text))
        await runtime.sessions.wait(SESSION)
    log = await runtime.store.read(SESSION, after=Seq(-1), limit=100_000)
    return [event for _, _, event in log]


def tortured(
    root: Path, *, context: int, manner: Manner, factor: float, told: bool = True
) -> tuple[Model, list[SessionEvent]]:
    model = Model(context, manner, factor)
    loop = VirtualLoop(Random(f"{context} {manner}"))

    async def run() -> list[SessionEvent]:
        async with opened(root, loop, model, context if told else 0) as runtime:
            return await converse(runtime, context)

    try:
        return model, loop.run_until_complete(run())
    finally:
        loop.bury()
        loop.close()


@pytest.mark.parametrize("factor", [0.7, 1.0, 1.3])
@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("context", WINDOWS)
def test_a_session_goes_on_whatever_its_summariser_does(
    tmp_path: Path, context: int, manner: Manner, factor: float, figure: Figure
) -> None:
    _check_session(*tortured(tmp_path, context=context, manner=manner, factor=factor))
    figure(SESSIONS, 1)


@pytest.mark.parametrize("seed", range(DRAWN))
def test_a_session_goes_on_in_a_window_of_any_size(
    tmp_path: Path, seed: int, figure: Figure
) -> None:
    chance = Random(f"session {seed}")
    _check_session(
        *tortured(
            tmp_path,
            context=round(WINDOWS[0] * (WINDOWS[-1] / WINDOWS[0]) ** chance.random()),
            manner=chance.choice(MANNERS),
            factor=chance.uniform(0.7, 1.3),
        )
    )
    figure(SESSIONS, 1)


def _check_session(model: Model, log: list[SessionEvent]) -> None:
    steps = [event for event in log if isinstance(event, events.StepEnded | events.StepFailed)]
    assert len(steps) == ROUNDS + 1
    assert not any(isinstance(step, events.StepFailed) for step in steps)
    compacted = [event for event in log if isinstance(event, events.CompactionEnded)]
    assert compacted
    _check_tries(log)
    _check_sizes(model)
    for checkpoint in compacted:
        carried = "" if not checkpoint.directives else "\n".join(checkpoint.directives)
        assert DIRECTIVE in carried + checkpoint.recent
    _check_prefixes(model)
    if model.manner == "well":
        assert model.summaries >= len(compacted)
        assert {checkpoint.text for checkpoint in compacted} == {SUMMARY}


@pytest.mark.parametrize("manner", MANNERS)
def test_a_window_that_nobody_knows_is_found_out_once_it_is_full(
    tmp_path: Path, manner: Manner, figure: Figure
) -> None:
    model, log = tortured(tmp_path, context=32_000, manner=manner, factor=1.0, told=False)
    assert not any(isinstance(event, events.StepFailed) for event in log)
    assert model.refused == sum(isinstance(event, events.CompactionEnded) for event in log) > 0
    _check_tries(log)
    _check_prefixes(model)
    figure(SESSIONS, 1)


def _check_tries(log: list[SessionEvent]) -> None:
    """Each was begun once, came to its end, and there were at most two before one answer."""
    in_a_row = 0
    for event in log:
        if isinstance(event, events.CompactionStarted):
            in_a_row += 1
            assert in_a_row <= 2
        elif isinstance(event, events.StepStarted):
            in_a_row = 0
    begun = [e.message_id for e in log if isinstance(e, events.CompactionStarted)]
    ended = [e.message_id for e in log if isinstance(e, events.CompactionEnded)]
    assert begun == ended


def _check_sizes(model: Model) -> None:
    """The first request of an epoch leaves a fifth of the window free."""
    firsts = [request for request in model.turns if _is_fresh(request)]
    assert firsts
    for request in firsts:
        assert model.count(request) <= 0.8 * model.context


def _is_fresh(request: LLMRequest) -> bool:
    messages = [message for run in request.runs for message in run.messages]
    return len(messages) == 1 and "<conversation-checkpoint>" in _texts(request)[0]


def _check_prefixes(model: Model) -> None:
    """Within an epoch each request begins with the whole of the one before it."""
    before: tuple[LLMMessage, ...] = ()
    system: tuple[str, ...] = ()
    for request in model.turns:
        messages = tuple(message for run in request.runs for message in run.messages)
        if not _is_fresh(request):
            assert messages[: len(before)] == before
            assert not system or request.system == system
        before, system = messages, request.system
