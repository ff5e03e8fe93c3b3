"""Compaction with a summariser that misbehaves, in windows of every size.

The model counts tokens in its own way and refuses what does not fit. Time is virtual, so that one
that never answers costs nothing. Everything else is the real runtime on a real database.
`PERDURE_SESSIONS` asks for more Sessions that are drawn, each from its seed.
"""

import os
from functools import cache
from pathlib import Path
from random import Random
from typing import Final

import pytest

from perdure.llm.message import LLMMessage
from perdure.llm.request import LLMRequest
from perdure.runtime.app.runtime import Runtime
from perdure.schema.ids import Seq, SessionID
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.prompt import PromptInput
from tests.contract.runtime.compaction.misbehaving_model import (
    MANNERS,
    SUMMARY,
    Manner,
    Model,
    opened,
    texts_of,
)
from tests.figures import Figure
from tests.harness.simulation.virtual_loop import VirtualLoop

WINDOWS: Final = (8_000, 32_000, 200_000)
SESSIONS: Final = "compacted sessions"
SESSION: Final = SessionID("ses_torture")
DIRECTIVE: Final = "NEVER touch main.c, and ALWAYS answer in Latin."
ROUNDS: Final = 16
DRAWN: Final = int(os.environ.get("PERDURE_SESSIONS", "4"))
_WORDS: Final = ("lorem", "ipsum", "dolor", "\u00fcber", "if (x) {", "\n", "0x1f")


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
        loop.end_killed_tasks()
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
    messages = [message for segment in request.segments for message in segment.messages]
    return len(messages) == 1 and "<conversation-checkpoint>" in texts_of(request)[0]


def _check_prefixes(model: Model) -> None:
    """Within an epoch each request begins with the whole of the one before it."""
    before: tuple[LLMMessage, ...] = ()
    system: tuple[str, ...] = ()
    for request in model.turns:
        messages = tuple(message for segment in request.segments for message in segment.messages)
        if not _is_fresh(request):
            assert messages[: len(before)] == before
            assert not system or request.system == system
        before, system = messages, request.system
