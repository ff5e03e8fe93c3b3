"""A turn that waits to be sent again: visible, durable, interruptible, and not started anew."""

import asyncio
from pathlib import Path

import pytest

from perdure.llm.error import LLMError
from perdure.runtime.turn.turn_end import TURN_INTERRUPTED
from perdure.schema.ids import SessionID
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.prompt import PromptInput
from perdure.store.tables import retry_table
from perdure.testing.manual_clock import EPOCH_MILLIS
from perdure.testing.scripted_model import (
    Step,
    StreamError,
    failure,
    reasoning,
    text,
    texts_of,
    tool_call,
)
from tests.contract.harness.faulty_runtime import MODEL, PATIENCE_SECONDS, Stage, staged

SESSION = SessionID("ses_retries")
WAIT = 60.0
BUSY = failure(LLMError("overload", "busy", status=529, retry_after_ms=int(WAIT * 1000)))


async def begin(stage: Stage, words: str = "go") -> None:
    await stage.runtime.sessions.create(id=SESSION, model=MODEL)
    await stage.runtime.sessions.prompt(SESSION, PromptInput(text=words))


async def until_waiting(stage: Stage, times: int = 1, *, seconds: float = WAIT) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while stage.clock.sleeps.count(seconds) < times:
            await stage.clock.until_sleeps(len(stage.clock.sleeps) + 1)


async def waits(stage: Stage) -> bool:
    found = await stage.runtime.store.database.read(lambda tx: retry_table.get(tx, SESSION))
    return found is not None


def failures(log: list[SessionEvent]) -> list[str]:
    return [event.error.message for event in log if isinstance(event, events.StepFailed)]


async def test_each_wait_is_a_fact_that_says_why_and_until_when(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.model.turn(BUSY).turn(text("back"))
        await begin(stage)
        await until_waiting(stage)
        (retried,) = [e for e in await stage.log(SESSION) if isinstance(e, events.Retried)]
        assert (retried.attempt, retried.error.message) == (1, "busy")
        assert (retried.error.status_code, retried.error.is_retryable) == (529, True)
        assert retried.error.metadata == {"reason": "overload"}
        assert retried.next == EPOCH_MILLIS + WAIT * 1000
        assert await waits(stage)
        stage.clock.advance(WAIT)
        log = await stage.at_rest(SESSION)
        assert isinstance(log[-1], events.StepEnded)
        assert not await waits(stage)
        assert stage.model.requests[0].segments == stage.model.requests[1].segments


async def test_who_watches_sees_the_wait_and_its_end(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.model.turn(BUSY).turn(text("back"))
        with stage.runtime.hub.subscribe() as reader:
            await begin(stage)
            await until_waiting(stage)
            stage.clock.advance(WAIT)
            await stage.at_rest(SESSION)
            seen = b""
            async with asyncio.timeout(PATIENCE_SECONDS):
                while b'"type":"idle"' not in seen:
                    seen += await reader.next() or b""
    due = EPOCH_MILLIS + int(WAIT * 1000)
    told = b'"status":{"type":"retry","attempt":1,"message":"busy","next":%d}' % due
    assert told in seen
    assert b'"type":"busy"' in seen[seen.index(told) :]


async def test_an_interrupt_ends_a_wait_at_once(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.model.turn(BUSY)
        await begin(stage)
        await until_waiting(stage)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await stage.runtime.sessions.interrupt(SESSION)
        assert failures(await stage.log(SESSION)) == [TURN_INTERRUPTED]
        assert not await waits(stage)
        assert len(stage.model.requests) == 1
        stage.model.turn(text("hello"))
        await stage.runtime.sessions.prompt(SESSION, PromptInput(text="again"))
        assert isinstance((await stage.at_rest(SESSION))[-1], events.StepEnded)


async def test_a_wait_goes_on_after_a_restart_where_it_was(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.model.turn(BUSY)
        await begin(stage)
        await until_waiting(stage)
        assert failures(await stage.log(SESSION)) == []
    async with staged(tmp_path, seed=1) as stage:
        stage.clock.advance(WAIT / 2)
        stage.model.turn(text("back"))
        await until_waiting(stage, seconds=WAIT / 2)
        assert stage.model.requests == []
        stage.clock.advance(WAIT / 2)
        log = await stage.at_rest(SESSION)
        assert isinstance(log[-1], events.StepEnded)
        assert sum(isinstance(event, events.Retried) for event in log) == 1
        assert texts_of(stage.model.requests[0])[0] == "go"


async def test_attempts_before_a_restart_count(tmp_path: Path) -> None:
    broken = failure(LLMError("transport", "cut", retry_after_ms=int(WAIT * 1000)))
    async with staged(tmp_path) as stage:
        stage.model.turn(broken).turn(broken)
        await begin(stage)
        await until_waiting(stage)
        stage.clock.advance(WAIT)
        await until_waiting(stage, 2)
    async with staged(tmp_path, seed=1) as stage:
        stage.clock.advance(2 * WAIT)
        stage.model.turn(broken)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await stage.model.until_asked(1)
        log = await stage.at_rest(SESSION)
        assert failures(log) == ["cut"]
        assert [e.attempt for e in log if isinstance(e, events.Retried)] == [1, 2]
        assert not await waits(stage)


async def test_a_turn_after_tools_is_sent_again_too(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.model.turn(tool_call("nothing", {})).turn(BUSY).turn(text("done"))
        await begin(stage)
        await until_waiting(stage)
        stage.clock.advance(WAIT)
        log = await stage.at_rest(SESSION)
        assert isinstance(log[-1], events.StepEnded)
        assert len(stage.model.requests) == 3


async def test_what_is_said_during_a_wait_is_heard_with_the_next_attempt(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.model.turn(BUSY).turn(text("both"))
        await begin(stage, "first")
        await until_waiting(stage)
        await stage.runtime.sessions.prompt(SESSION, PromptInput(text="second"))
        stage.clock.advance(WAIT)
        await stage.at_rest(SESSION)
        said = texts_of(stage.model.requests[1])
        assert [words for words in said if words in ("first", "second")] == ["first", "second"]
        assert len(stage.model.requests) == 2


@pytest.mark.parametrize("begun", [reasoning("hm"), text("half")])
async def test_nothing_is_sent_again_once_something_was_published(
    tmp_path: Path, begun: Step
) -> None:
    async with staged(tmp_path) as stage:
        stage.model.turn(begun, BUSY)
        await begin(stage)
        assert failures(await stage.at_rest(SESSION)) == ["busy"]
        assert len(stage.model.requests) == 1


async def test_an_error_at_the_head_of_a_stream_is_a_refusal_like_any_other(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        stage.model.turn(StreamError("Overloaded", "overload")).turn(text("back"))
        retried = asyncio.Event()
        stage.runtime.store.listen(
            lambda session_id, stored, location: (
                retried.set() if isinstance(stored[-1].event, events.Retried) else None
            )
        )
        await begin(stage)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await retried.wait()
        stage.clock.advance(WAIT)
        assert isinstance((await stage.at_rest(SESSION))[-1], events.StepEnded)
