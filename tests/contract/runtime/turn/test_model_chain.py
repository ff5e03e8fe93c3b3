"""The chain of models of an agent: the next one answers while those before it cannot."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from msgspec import UNSET

from perdure.llm.error import LLMError
from perdure.schema import codec
from perdure.schema.ids import SessionID
from perdure.schema.models.model import ModelRef
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.prompt import PromptInput
from perdure.schema.session.session import ModelSubstitute
from perdure.testing import ScriptedModel
from perdure.testing.scripted_model import failure, text
from tests.contract.harness.faulty_runtime import MODEL, PATIENCE_SECONDS, Stage, staged

SESSION, OTHER = SessionID("ses_chain"), SessionID("ses_other")
CHAIN = ("test/scripted", "test/second", "test/third")
MINUTE = 60.0
QUOTA = failure(LLMError("quota-exceeded", "the plan is used up", status=429))
LATER = failure(
    LLMError("rate-limit", "come back later", status=429, retry_after_ms=int(40 * MINUTE * 1000))
)
SOON = failure(LLMError("rate-limit", "busy", status=429, retry_after_ms=5_000))
WRONG = failure(LLMError("invalid-request", "no such field", status=400))


def ref(name: str) -> ModelRef:
    return ModelRef(id=name, provider_id="test")


def on_stage(
    root: Path, others: Mapping[str, ScriptedModel], *, seed: int = 0
) -> AbstractAsyncContextManager[Stage]:
    (root / "project").mkdir(parents=True, exist_ok=True)
    document = {"agents": {"build": {"models": CHAIN}}}
    (root / "project/opencode.json").write_bytes(codec.encode(document))
    return staged(root, seed=seed, calls=others)


def others() -> dict[str, ScriptedModel]:
    return {"second": ScriptedModel(), "third": ScriptedModel()}


async def ask(stage: Stage, session: SessionID = SESSION, words: str = "go") -> list[SessionEvent]:
    await stage.runtime.sessions.prompt(session, PromptInput(text=words))
    return await stage.at_rest(session)


def switches(log: list[SessionEvent]) -> list[str | None]:
    """To which model the Session switched; None: back to the chosen one."""
    found = [event.substitute for event in log if isinstance(event, events.ModelSubstituted)]
    return [each.model.id if each else None for each in found]


def answered_by(log: list[SessionEvent]) -> list[str]:
    return [event.model.id for event in log if isinstance(event, events.StepStarted)]


async def test_with_the_first_two_down_the_third_answers(tmp_path: Path) -> None:
    calls = others()
    async with on_stage(tmp_path, calls) as stage:
        await stage.runtime.sessions.create(id=SESSION)
        stage.model.turn(LATER)
        calls["second"].turn(QUOTA)
        calls["third"].turn(text("here"))
        log = await ask(stage)
        assert isinstance(log[-1], events.StepEnded)
        assert switches(log) == ["second", "third"]
        assert answered_by(log) == ["third"]
        assert [len(stage.model.requests), len(calls["second"].requests)] == [1, 1]
        (first, _) = [e for e in log if isinstance(e, events.ModelSubstituted)]
        due = stage.clock.now_millis() + int(40 * MINUTE * 1000)
        assert first.substitute == ModelSubstitute(
            model=ref("second"), message="come back later", until=due
        )


async def test_the_chosen_model_answers_again_when_it_is_back(tmp_path: Path) -> None:
    calls = others()
    async with on_stage(tmp_path, calls) as stage:
        await stage.runtime.sessions.create(id=SESSION)
        stage.model.turn(LATER)
        calls["second"].turn(text("one")).turn(text("two"))
        await ask(stage)
        stage.clock.advance(39 * MINUTE)
        await ask(stage, words="more")
        assert (await stage.runtime.store.load_session(SESSION)).substitute
        stage.clock.advance(MINUTE)
        stage.model.turn(text("back"))
        log = await ask(stage, words="and now")
        assert switches(log) == ["second", None]
        assert answered_by(log) == ["second", "second", "scripted"]
        assert (await stage.runtime.store.load_session(SESSION)).substitute is UNSET


async def test_the_other_sessions_and_the_next_process_know_who_rests(tmp_path: Path) -> None:
    calls = others()
    async with on_stage(tmp_path, calls) as stage:
        await stage.runtime.sessions.create(id=SESSION)
        stage.model.turn(LATER)
        calls["second"].turn(text("one"))
        await ask(stage)
        await stage.runtime.sessions.create(id=OTHER)
        calls["second"].turn(text("two"))
        log = await ask(stage, OTHER)
        assert (switches(log), answered_by(log)) == (["second"], ["second"])
        assert len(stage.model.requests) == 1
    calls = others()
    async with on_stage(tmp_path, calls, seed=1) as stage:
        calls["second"].turn(text("three"))
        log = await ask(stage, OTHER, "again")
        assert (switches(log), answered_by(log)) == (["second"], ["second", "second"])
        assert stage.model.requests == []


async def test_a_short_wait_is_no_reason_to_switch(tmp_path: Path) -> None:
    calls = others()
    async with on_stage(tmp_path, calls) as stage:
        await stage.runtime.sessions.create(id=SESSION)
        stage.model.turn(SOON).turn(text("here"))
        await stage.runtime.sessions.prompt(SESSION, PromptInput(text="go"))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while 5.0 not in stage.clock.sleeps:
                await stage.clock.until_sleeps(len(stage.clock.sleeps) + 1)
        stage.clock.advance(5)
        log = await stage.at_rest(SESSION)
        assert (switches(log), answered_by(log)) == ([], ["scripted"])


async def test_a_request_that_no_model_would_take_is_not_passed_on(tmp_path: Path) -> None:
    calls = others()
    async with on_stage(tmp_path, calls) as stage:
        await stage.runtime.sessions.create(id=SESSION)
        stage.model.turn(WRONG)
        log = await ask(stage)
        assert isinstance(log[-1], events.StepFailed)
        assert (switches(log), calls["second"].requests) == ([], [])


@pytest.mark.parametrize(
    ("chosen", "expected"), [("second", ["third"]), ("third", []), ("other", [])]
)
async def test_a_person_who_chose_a_model_gets_only_those_after_it(
    tmp_path: Path, chosen: str, expected: list[str]
) -> None:
    calls = {**others(), "other": ScriptedModel()}
    async with on_stage(tmp_path, calls) as stage:
        await stage.runtime.sessions.create(id=SESSION, model=ref(chosen))
        calls[chosen].turn(QUOTA)
        if expected:
            calls["third"].turn(text("here"))
        log = await ask(stage)
        assert switches(log) == expected
        assert isinstance(log[-1], events.StepEnded if expected else events.StepFailed)


async def test_with_every_model_down_the_step_fails_once(tmp_path: Path) -> None:
    calls = others()
    async with on_stage(tmp_path, calls) as stage:
        await stage.runtime.sessions.create(id=SESSION)
        stage.model.turn(QUOTA)
        calls["second"].turn(QUOTA)
        calls["third"].turn(QUOTA)
        log = await ask(stage)
        assert switches(log) == ["second", "third"]
        assert sum(isinstance(event, events.StepFailed) for event in log) == 1
        # What rests is tried again if there is nothing else.
        stage.model.turn(text("here after all"))
        assert isinstance((await ask(stage, words="again"))[-1], events.StepEnded)


async def test_choosing_a_model_ends_the_substitution(tmp_path: Path) -> None:
    calls = others()
    async with on_stage(tmp_path, calls) as stage:
        await stage.runtime.sessions.create(id=SESSION)
        stage.model.turn(LATER)
        calls["second"].turn(text("one"))
        await ask(stage)
        await stage.runtime.sessions.switch_model(SESSION, ref("third"))
        assert (await stage.runtime.store.load_session(SESSION)).substitute is UNSET
        calls["third"].turn(text("as you wish"))
        assert answered_by(await ask(stage, words="more"))[-1] == "third"


async def test_a_model_without_a_chain_is_never_replaced(tmp_path: Path) -> None:
    async with staged(tmp_path, calls=others()) as stage:
        await stage.runtime.sessions.create(id=SESSION, model=MODEL)
        stage.model.turn(QUOTA)
        log = await ask(stage)
        assert (switches(log), isinstance(log[-1], events.StepFailed)) == ([], True)


@pytest.mark.parametrize("at", range(4))
async def test_an_interrupt_anywhere_in_a_switch_settles_the_turn(tmp_path: Path, at: int) -> None:
    calls = others()
    async with on_stage(tmp_path, calls) as stage:
        await stage.runtime.sessions.create(id=SESSION)
        stage.model.turn(LATER)
        calls["second"].turn(text("one")).turn(text("two"))
        await stage.runtime.sessions.prompt(SESSION, PromptInput(text="go"))
        for _ in range(at * 3):
            await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await stage.runtime.sessions.interrupt(SESSION)
        await stage.at_rest(SESSION)
