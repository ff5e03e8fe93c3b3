"""A provider that says "later": the Session waits as long as it may, over restarts, and is told."""

import asyncio
from pathlib import Path

import pytest

from perdure.core.session.retry import Retry
from perdure.llm.error import LLMError
from perdure.llm.http import errors
from perdure.runtime.turn.turn_end import TURN_INTERRUPTED
from perdure.schema import codec
from perdure.schema.codec import JsonValue
from perdure.schema.ids import SessionID
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.prompt import PromptInput
from perdure.store.tables import retry_table
from perdure.testing.manual_clock import EPOCH_MILLIS
from perdure.testing.scripted_model import StreamError, failure, text
from tests.contract.harness.faulty_runtime import MODEL, PATIENCE_SECONDS, Stage, staged

SESSION = SessionID("ses_waiting")
MINUTE = 60.0


def usage_limit(minutes: int) -> LLMError:
    """What a ChatGPT plan answers when it is used up."""
    resets_at = EPOCH_MILLIS // 1000 + minutes * 60
    said = {"type": "usage_limit_reached", "message": "The usage limit has been reached"}
    body = codec.encode({"error": {**said, "resets_at": resets_at}})
    return errors.from_response(
        status=429, headers={}, body=body, secrets=(), now_millis=EPOCH_MILLIS
    )


def configure(root: Path, patience: JsonValue) -> None:
    (root / "project").mkdir(parents=True, exist_ok=True)
    document = codec.encode({"experimental": {"patience": patience}})
    (root / "project/opencode.json").write_bytes(document)


async def begin(stage: Stage) -> None:
    await stage.runtime.sessions.create(id=SESSION, model=MODEL)
    await stage.runtime.sessions.prompt(SESSION, PromptInput(text="go"))


async def until_waiting(stage: Stage, count: int = 1) -> Retry:
    """Wait until the Session has failed so often and waits."""

    database = stage.runtime.store.database
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            slept = len(stage.clock.sleeps)
            found = await database.read(lambda tx: retry_table.get(tx, SESSION))
            if found is not None and found.failed >= count:
                return found
            await stage.clock.until_sleeps(slept + 1)


def failures(log: list[SessionEvent]) -> list[str]:
    return [event.error.message for event in log if isinstance(event, events.StepFailed)]


async def test_a_reset_in_forty_minutes_is_waited_for_over_a_restart(tmp_path: Path) -> None:
    configure(tmp_path, patience=True)
    async with staged(tmp_path) as stage:
        stage.model.turn(failure(usage_limit(40)))
        await begin(stage)
        await until_waiting(stage)
        (retried,) = [e for e in await stage.log(SESSION) if isinstance(e, events.Retried)]
        assert retried.next == EPOCH_MILLIS + 40 * MINUTE * 1000
        assert retried.error.metadata == {"reason": "quota-exceeded"}
    async with staged(tmp_path, seed=1) as stage:
        stage.clock.advance(30 * MINUTE)
        stage.model.turn(text("back"))
        waits = await until_waiting(stage)
        assert waits.due == retried.next
        stage.clock.advance(9 * MINUTE)
        await stage.clock.until_sleeps(len(stage.clock.sleeps) + 1)
        assert stage.model.requests == []
        stage.clock.advance(MINUTE)
        log = await stage.at_rest(SESSION)
        assert isinstance(log[-1], events.StepEnded)
        assert sum(isinstance(event, events.Retried) for event in log) == 1


async def test_a_machine_that_was_suspended_goes_on_when_the_time_has_come(
    tmp_path: Path,
) -> None:
    configure(tmp_path, patience=True)
    async with staged(tmp_path) as stage:
        stage.model.turn(failure(usage_limit(40))).turn(text("back"))
        await begin(stage)
        await until_waiting(stage)
        # No sleep is longer than a minute, so a suspended one costs no more than that.
        assert max(stage.clock.sleeps) <= MINUTE
        stage.clock.advance(40 * MINUTE)
        assert isinstance((await stage.at_rest(SESSION))[-1], events.StepEnded)


async def test_without_patience_the_step_says_when_to_come_back(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.model.turn(failure(usage_limit(40)))
        await begin(stage)
        (reason,) = failures(await stage.at_rest(SESSION))
        assert "come back in 40 min" in reason
        assert "`experimental.patience`" in reason


@pytest.mark.parametrize("patience", [2400, 2400.5])
async def test_the_patience_is_a_number_of_seconds(tmp_path: Path, patience: float) -> None:
    configure(tmp_path, patience)
    async with staged(tmp_path) as stage:
        stage.model.turn(failure(usage_limit(40))).turn(failure(usage_limit(1)))
        await begin(stage)
        await until_waiting(stage)
        stage.clock.advance(40 * MINUTE)
        # Both waits together are longer than the patience.
        assert len(failures(await stage.at_rest(SESSION))) == 1


async def test_an_interrupt_ends_a_long_wait_at_once(tmp_path: Path) -> None:
    configure(tmp_path, patience=True)
    async with staged(tmp_path) as stage:
        stage.model.turn(failure(usage_limit(40)))
        await begin(stage)
        await until_waiting(stage)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await stage.runtime.sessions.interrupt(SESSION)
        assert failures(await stage.log(SESSION)) == [TURN_INTERRUPTED]
        stage.model.turn(text("hello"))
        await stage.runtime.sessions.prompt(SESSION, PromptInput(text="again"))
        assert isinstance((await stage.at_rest(SESSION))[-1], events.StepEnded)


async def test_an_outage_without_a_time_is_outlasted_and_the_waits_before_a_restart_count(
    tmp_path: Path,
) -> None:
    configure(tmp_path, patience=600)
    down = failure(LLMError("transport", "unreachable"))
    async with staged(tmp_path) as stage:
        waits = Retry(failed=0, due=0, delay=0, step=0, message="")
        for failed in range(1, 8):
            stage.model.turn(down)
            await (begin(stage) if failed == 1 else asyncio.sleep(0))
            waits = await until_waiting(stage, failed)
            if failed < 7:
                stage.clock.advance(waits.delay / 1000)
        assert waits.waited > 30_000
        now = stage.clock.now_millis()
    async with staged(tmp_path, seed=1) as stage:
        stage.clock.set_millis(now)
        stage.model.turn(down)
        await until_waiting(stage, 7)
        stage.clock.advance(waits.delay / 1000)
        later = await until_waiting(stage, 8)
        assert later.waited == waits.waited + later.delay
        stage.model.turn(text("back"))
        stage.clock.advance(later.delay / 1000)
        assert isinstance((await stage.at_rest(SESSION))[-1], events.StepEnded)


async def test_a_time_that_is_told_inside_a_stream_is_waited_for(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        said = StreamError("Please try again in 20s", "rate-limit", retry_after_ms=20_000)
        stage.model.turn(said).turn(text("back"))
        await begin(stage)
        waits = await until_waiting(stage)
        assert waits.delay == 20_000
        stage.clock.advance(20)
        assert isinstance((await stage.at_rest(SESSION))[-1], events.StepEnded)
