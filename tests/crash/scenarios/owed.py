"""`python -m tests.crash.scenarios.owed [N]`: crash at every N-th point around an interrupt.

A process admits a prompt that is not to run, runs another one, admits a third behind that, and
interrupts. It is killed. The next process runs what is owed: never the first prompt, and not the
third once the interrupt was answered. It prints what is wrong and exits with 1 if anything is.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

from perdure.llm.event import LLMEvent
from perdure.llm.request import LLMRequest
from perdure.runtime.app.runtime import Runtime
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.models.model import ModelRef
from perdure.schema.session import event as events
from perdure.schema.session.prompt import PromptInput
from perdure.testing import ScriptedModel, text
from tests.crash.scenarios import scenario
from tests.crash.scenarios.scenario import Scenario
from tests.support import database_check

KEPT: Final = SessionID("ses_kept")
STOPPED: Final = SessionID("ses_stopped")
ASIDE: Final = MessageID("msg_aside")
BEGUN: Final = MessageID("msg_begun")
BEHIND: Final = MessageID("msg_behind")
MODEL: Final = ModelRef(id="one", provider_id="crash")
ANSWERED: Final = "interrupted"
"""The file that says that the client has the answer to its interrupt."""
WAIT_SECONDS: Final = 20
LOOK_SECONDS: Final = 0.02


class Model:
    """Implements llm.model_call.ModelCall. Answers at once, or never while it is `held`."""

    def __init__(self) -> None:
        self.held = False
        self.reached = asyncio.Event()

    async def __call__(self, request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        self.reached.set()
        if self.held and request.tools:
            await asyncio.get_running_loop().create_future()
        async for batch in ScriptedModel().turn(text("ok"))(request):
            yield batch


model = Model()


def main() -> int:
    each = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    return scenario.sweep(Scenario(_prepare, _work, _continue_and_check, model=model), each=each)


async def _prepare(runtime: Runtime, _: Path) -> None:
    for session_id in (KEPT, STOPPED):
        await runtime.sessions.create(id=session_id, model=MODEL)


async def _work(runtime: Runtime, site: Path) -> None:
    model.held = True
    await runtime.sessions.prompt(KEPT, PromptInput(text="aside"), id=ASIDE, resume=False)
    await runtime.sessions.prompt(STOPPED, PromptInput(text="begun"), id=BEGUN)
    await model.reached.wait()
    behind = PromptInput(text="behind")
    await runtime.sessions.prompt(STOPPED, behind, id=BEHIND, delivery="queue")
    await runtime.sessions.interrupt(STOPPED)
    (site / ANSWERED).touch()


async def _continue_and_check(runtime: Runtime, site: Path) -> None:
    for session_id in (KEPT, STOPPED):
        await _rest(runtime, session_id)
    assert await _promoted(runtime, KEPT) == [], "a prompt ran that was only admitted"
    promoted, log = await _promoted(runtime, STOPPED), await _log(runtime, STOPPED)
    admitted = [event.message_id for event in log if isinstance(event, events.PromptAdmitted)]
    if (site / ANSWERED).exists():
        assert promoted == [BEGUN], f"after the interrupt: {promoted}"
    else:
        assert promoted[:1] == admitted[:1], f"of {admitted} ran {promoted}"
    begun = sum(isinstance(event, events.StepStarted) for event in log)
    assert begun == sum(isinstance(event, events.StepEnded | events.StepFailed) for event in log)
    # Whatever waited runs once when it is asked for.
    await runtime.sessions.prompt(KEPT, PromptInput(text="aside"), id=ASIDE)
    if BEHIND in admitted:
        await runtime.changes.resume(STOPPED)
    for session_id in (KEPT, STOPPED):
        await _rest(runtime, session_id)
    assert await _promoted(runtime, KEPT) == [ASIDE]
    assert sorted(await _promoted(runtime, STOPPED)) == sorted(admitted)
    await database_check.check(site / "perdure.db")


async def _rest(runtime: Runtime, session_id: SessionID) -> None:
    """Wait until nothing runs. What may have been sent twice is given up."""
    async with asyncio.timeout(WAIT_SECONDS):
        await runtime.sessions.wait(session_id)
        if (await runtime.recovery.load_recovery(session_id)).waiting:
            await runtime.recovery.decide(session_id, "abandon")
            await runtime.sessions.wait(session_id)
        while runtime.sessions.active():
            await runtime.clock.sleep(LOOK_SECONDS)


async def _promoted(runtime: Runtime, session_id: SessionID) -> list[MessageID]:
    log = await _log(runtime, session_id)
    return [event.message_id for event in log if isinstance(event, events.PromptPromoted)]


async def _log(runtime: Runtime, session_id: SessionID) -> list[events.SessionEvent]:
    return [event for _, _, event in await runtime.store.read(session_id, limit=1_000)]


if __name__ == "__main__":
    sys.exit(main())
