"""Sends a prompt, or resumes a Session, and follows the live stream until the work has ended.

The live stream carries text fragments, permission requests, questions and durable events in one
order, of one process. If another process runs the prompt, its work is shown from the log once it
has ended. The caller decides how permission requests and questions are answered. All printing goes
through the given Output.

Invariant: following ends when the Session is idle in every process and its log is shown, when it
fails, or when the stream is lost. The exit status comes from the log.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, cast

from perdure.cli import terminal
from perdure.cli.problem import Problem
from perdure.cli.runs.output import HeldOutput, Output
from perdure.cli.runs.progress import Outcome, RunProgress
from perdure.cli.runs.request_queue import Answer, RequestQueue
from perdure.client import WireClient
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

if TYPE_CHECKING:
    from perdure.client.generated import types

_STATUS_SECONDS: Final = 1.0


class FollowTarget(Value, kw_only=True):
    """The Session to follow, where its events are printed, and how its requests are answered."""

    client: WireClient
    session_id: str
    output: Output
    answer_permission: Answer
    answer_question: Answer
    continues: bool = False
    """Whether the Session existed before, so that requests may be waiting in it."""


async def follow(target: FollowTarget, prompt: "types.PromptInput | None") -> Outcome:
    """Prompt the Session, show its events until it is idle, and return how it ended.

    Without a prompt: go on with the work that a process left when it was killed.
    """
    client, session_id = target.client, target.session_id
    output = HeldOutput(target.output)
    requests = RequestQueue(
        client,
        output,
        session_id=session_id,
        answers={
            "permission.v2.asked": target.answer_permission,
            "question.v2.asked": target.answer_question,
        },
    )
    async with aclosing(client.events.subscribe()) as events:
        # The first event confirms the subscription, so no event of this prompt is missed.
        await anext(events, None)
        progress = RunProgress(client, session_id, output)
        if prompt is None:
            await progress.resume()
        else:
            progress.expect(await client.sessions.prompt(session_id, prompt=prompt))
        if target.continues:
            await requests.load_pending()
        views = (
            asyncio.create_task(_follow_live(progress, requests, events, session_id)),
            asyncio.create_task(progress.watch_other_process()),
            asyncio.create_task(requests.run()),
            *([asyncio.create_task(_show_status(output))] if terminal.can_show_status() else []),
        )
        try:
            ended, _ = await asyncio.wait(views, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for view in views:
                view.cancel()
            await asyncio.gather(*views, return_exceptions=True)
            terminal.clear_status()
            output.finish()
    for view in ended:
        # Raises what ended it.
        view.result()
    return await progress.settle()


async def _follow_live(
    progress: RunProgress,
    requests: RequestQueue,
    events: AsyncGenerator[object],
    session_id: str,
) -> None:
    async for event in events:
        received = cast("JsonObject", event)
        if _session_id(received) is None:
            continue
        await requests.note(received)
        if _session_id(received) == session_id and progress.handle(received):
            return
    raise Problem(
        f"the event stream of {session_id} was lost before the work ended;"
        f" `perdure export {session_id}` prints what is stored"
    )


async def _show_status(output: Output) -> None:
    """Show a sign of life while nothing is printed: what the work waits for, and for how long."""
    seconds, shown = 0, ""
    while True:
        await asyncio.sleep(_STATUS_SECONDS)
        status = output.status
        if status is None:
            continue
        seconds = seconds + 1 if status == shown else 1
        shown = status
        terminal.show_status(f"{status} ({seconds} s)")


def _session_id(event: JsonObject) -> str | None:
    data = event.get("data")
    return cast("JsonObject", data).get("sessionID") if isinstance(data, dict) else None
