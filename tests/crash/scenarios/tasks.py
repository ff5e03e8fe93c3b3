"""`python -m tests.crash.scenarios.tasks [N]`: crash at every N-th point of a subagent.

In a process a parent calls a subagent; the process waits for both, and is killed. The next process
continues with what is left. There must be at most one child, and its result must be told to the
parent once: by the call, or by a notice. It prints what is wrong and exits with 1 if anything is.
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
from perdure.schema.session.prompt import PromptInput
from perdure.testing import ScriptedModel, text, tool_call
from perdure.testing.scripted_model import texts_of
from tests.crash.scenarios import scenario
from tests.crash.scenarios.scenario import Scenario
from tests.support import database_check

PARENT: Final = SessionID("ses_parent")
PROMPT: Final = MessageID("msg_root")
MODEL: Final = ModelRef(id="one", provider_id="crash")
RESULT: Final = "a very deep hole"
WAIT_SECONDS: Final = 20
LOOK_SECONDS: Final = 0.02
CALL: Final = {"description": "Dig", "prompt": "dig", "subagent_type": "general"}


async def model(request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
    """The parent calls a subagent first; every other request gets one text."""
    said = ScriptedModel()
    if texts_of(request) != ["root"]:
        said.turn(text(RESULT if texts_of(request)[0] == "dig" else "ok"))
    elif any(
        message.role in {"assistant", "tool"}
        for segment in request.segments
        for message in segment.messages
    ):
        said.turn(text("ok"))
    else:
        said.turn(tool_call("task", CALL))
    async for batch in said(request):
        yield batch


def main() -> int:
    each = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    return scenario.sweep(Scenario(_prepare, _work, _continue_and_check, model=model), each=each)


async def _prepare(runtime: Runtime, _: Path) -> None:
    await runtime.sessions.create(id=PARENT, model=MODEL)


async def _work(runtime: Runtime, _: Path) -> None:
    await runtime.sessions.prompt(PARENT, PromptInput(text="root"), id=PROMPT)
    await runtime.sessions.wait(PARENT)


async def _continue_and_check(runtime: Runtime, site: Path) -> None:
    # Whether it was admitted or not: the same prompt again is the same admission.
    await runtime.sessions.prompt(PARENT, PromptInput(text="root"), id=PROMPT)
    async with asyncio.timeout(WAIT_SECONDS):
        while not _rests(runtime, site):
            await runtime.clock.sleep(LOOK_SECONDS)
    rows = database_check.dump(site / "perdure.db")
    children = await runtime.children.list_children(PARENT)
    called = [row for row in rows["event"] if "tool.called" in str(row)]
    told = sum(RESULT in str(row) for row in rows["session_message"] if PARENT in row)
    assert len(children) <= len(called) <= 1, f"{len(children)} children of {len(called)} calls"
    assert told == len(children), f"a result was told {told} times"
    assert all("delivered" in row for row in rows["child_task"]), rows["child_task"]
    await database_check.check(site / "perdure.db")


def _rests(runtime: Runtime, site: Path) -> bool:
    """Whether nothing runs, and nothing is left that would."""
    rows = database_check.dump(site / "perdure.db")
    waits = rows["session_attempt"] or rows["session_notice"] or rows["session_wake"]
    open_tasks = [row for row in rows["child_task"] if "delivered" not in row]
    answered = any("assistant" in row for row in rows["session_message"] if PARENT in row)
    return answered and not (waits or open_tasks or runtime.sessions.active())


if __name__ == "__main__":
    sys.exit(main())
