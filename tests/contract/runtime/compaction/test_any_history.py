"""Any history above the window comes down to four fifths of it, or fails with a reason to act on.

Each Session is drawn from its seed: a window from 8,000 to a million tokens, a history of every
kind of message, a summariser that may misbehave, and a last prompt that may be too large alone.
Then the process is opened anew. `PERDURE_SESSIONS` asks for more of them.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

import pytest

from perdure.core import limits
from perdure.core.request import token_budget
from perdure.llm.message import LLMMessage, TextPart
from perdure.llm.request import LLMRequest
from perdure.runtime.app.runtime import Runtime
from perdure.schema.ids import Seq, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.models.model import ModelLimit, ModelRef
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.prompt import PromptInput
from tests.contract.runtime.compaction.drawn_history import DrawnHistory
from tests.contract.runtime.compaction.misbehaving_model import MANNERS, Manner, Model, opened
from tests.figures import Figure
from tests.harness.simulation.virtual_loop import VirtualLoop
from tests.requirements import requirement

HISTORIES: Final = "histories above the window"
DRAWN: Final = int(os.environ.get("PERDURE_SESSIONS", "24"))
SESSION: Final = SessionID("ses_drawn")
MODEL: Final = ModelRef(id="one", provider_id="torture")
CONTEXTS: Final = (8_000, 1_000_000)
_BATCH: Final = 500


@dataclass(frozen=True)
class Case:
    context: int
    manner: Manner
    history: tuple[SessionEvent, ...]
    prompt: str
    too_large: bool
    """Whether the prompt alone is larger than the window."""

    @property
    def window(self) -> int:
        limit = ModelLimit(context=self.context, output=self.context // 16)
        buffer = limits.COMPACTION_BUFFER_TOKENS
        return token_budget.window(limit, buffer_tokens=buffer, output_tokens=None)


def draw(seed: int) -> Case:
    chance = Random(f"history {seed}")
    low, high = CONTEXTS
    context = round(low * (high / low) ** chance.random())
    drawn = DrawnHistory(SESSION, MODEL, chance)
    # A large window is filled once, a small one up to four times.
    total = round(context * chance.uniform(1.1, 1.5 if context > 200_000 else 4.0))
    largest = round(context * chance.choice((0.05, 0.3, 1.5)))
    too_large = chance.random() < 0.25
    return Case(
        context=context,
        manner=chance.choice(MANNERS),
        history=tuple(drawn.events(total=total, largest=largest)),
        prompt=drawn.text(round(context * 1.2) if too_large else chance.randint(1, 200)),
        too_large=too_large,
    )


@requirement("S36")
@pytest.mark.parametrize("seed", range(DRAWN))
def test_any_history_above_the_window_fits_or_fails_with_a_reason(
    tmp_path: Path, seed: int, figure: Figure
) -> None:
    case = draw(seed)
    model = Model(case.context, case.manner, 1.0)
    loop = VirtualLoop(Random(seed))
    try:
        before = loop.run_until_complete(_ask(tmp_path, loop, model, case, case.prompt))
        _check_first(case, model, before)
        told = len(model.turns)
        after = loop.run_until_complete(_ask(tmp_path, loop, model, case, "and now"))
    finally:
        loop.end_killed_tasks()
        loop.close()
    assert len(model.turns) == told + 1, "the Session goes on, whatever became of the prompt"
    assert model.count(model.turns[-1]) <= case.window
    if told and not _compacted(after[len(before) :]):
        assert _messages(model.turns[-1])[: len(_messages(model.turns[0]))] == _messages(
            model.turns[0]
        )
    figure(HISTORIES, 1)


async def _ask(
    root: Path, loop: VirtualLoop, model: Model, case: Case, prompt: str
) -> list[SessionEvent]:
    """Open a process, send a prompt, and return the whole log."""
    async with opened(root, loop, model, case.context) as runtime:
        if not await runtime.sessions.exists(SESSION):
            await runtime.sessions.create(id=SESSION, model=MODEL)
            await _write(runtime, root, case.history)
        await runtime.sessions.prompt(SESSION, PromptInput(text=prompt))
        await runtime.sessions.wait(SESSION)
        log = await runtime.store.read(SESSION, after=Seq(-1), limit=1_000_000)
        return [event for _, _, event in log]


async def _write(runtime: Runtime, root: Path, history: tuple[SessionEvent, ...]) -> None:
    location = LocationRef(directory=str(root))
    for start in range(0, len(history), _BATCH):
        await runtime.store.append(SESSION, history[start : start + _BATCH], location=location)


def _check_first(case: Case, model: Model, log: list[SessionEvent]) -> None:
    written = 1 + len(case.history)
    new = log[written:]
    (step,) = [event for event in new if isinstance(event, events.StepEnded | events.StepFailed)]
    if isinstance(step, events.StepFailed):
        assert case.too_large
        (prompt,) = [event for event in new if isinstance(event, events.PromptPromoted)]
        assert f"Message {prompt.message_id} alone has about" in step.error.message
        assert f"--exclude {prompt.message_id}" in step.error.message
        assert model.turns == []
        return
    assert not case.too_large
    assert model.refused == 0
    if not _compacted(new):
        # Few pictures count as much as a long text: some histories fit after all.
        assert model.count(model.turns[-1]) <= case.window
        return
    assert model.count(model.turns[-1]) <= 0.8 * case.window
    if not any(isinstance(event, events.CompactionEnded) for event in new):
        assert model.summaries == 0, "pruning needs no model"
        assert _messages(model.turns[-1])[-1].content == (TextPart(case.prompt),)


def _compacted(log: list[SessionEvent]) -> bool:
    return any(isinstance(event, events.CompactionEnded | events.ToolPruned) for event in log)


def _messages(request: LLMRequest) -> tuple[LLMMessage, ...]:
    return tuple(message for segment in request.segments for message in segment.messages)
