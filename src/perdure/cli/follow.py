"""Sends one prompt and follows the live stream until the work that it started has ended.

The live stream carries text fragments, permission requests, questions and durable events in one
order. The caller decides how permission requests and questions are answered. All printing goes
through the given Output.

Invariant: following ends when the Session becomes idle, fails, or the stream is lost.
"""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import cast

from perdure.cli import terminal
from perdure.cli.output import Output
from perdure.cli.problem import FAILED_STATUS, Problem
from perdure.client import DeclaredError, WireClient
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

Answer = Callable[[JsonObject, WireClient], Awaitable[None]]
"""Answers the permission request or the question that the event announces."""


class FollowTarget(Value, kw_only=True):
    """The Session to follow, where its events are printed, and how its requests are answered."""

    client: WireClient
    session_id: str
    output: Output
    answer_permission: Answer
    answer_question: Answer


async def follow(target: FollowTarget, text: str) -> int:
    """Prompt the Session, show its events until it is idle, and return the exit status."""
    client, session_id = target.client, target.session_id
    async with aclosing(client.events.subscribe()) as events:
        # The first event confirms the subscription, so no event of this prompt is missed.
        await anext(events, None)
        receipt = await client.sessions.prompt(session_id, text=text)
        progress = _Progress(target, receipt["id"])
        async for event in events:
            received = cast("JsonObject", event)
            if _session_id(received) == session_id and await progress.handle(received):
                target.output.finish()
                return FAILED_STATUS if progress.failed else 0
    target.output.finish()
    raise Problem(
        f"the event stream of {session_id} was lost before the work ended;"
        f" `perdure export {session_id}` prints what is stored"
    )


class _Progress:
    """Tracks whether the prompt was promoted and whether a step failed."""

    def __init__(self, target: FollowTarget, prompt_id: str) -> None:
        self._target = target
        self._prompt_id = prompt_id
        self._promoted = False
        self.failed = False

    async def handle(self, event: JsonObject) -> bool:
        """Show and handle one event of the Session; return whether it ended the work."""
        data = cast("JsonObject", event["data"])
        self._target.output.show(event)
        match event["type"]:
            case "session.next.prompted":
                self._promoted = self._promoted or data["messageID"] == self._prompt_id
            case "session.next.step.failed":
                self.failed = True
            case "permission.v2.asked":
                self._target.output.finish()
                await self._target.answer_permission(event, self._target.client)
            case "question.v2.asked":
                self._target.output.finish()
                await self._target.answer_question(event, self._target.client)
            case "session.status":
                return await self._is_ended(data["status"])
            case _:
                pass
        return False

    async def _is_ended(self, status: JsonObject) -> bool:
        if status["type"] == "running":
            return False
        if status["type"] == "failed":
            reason = terminal.one_line(status.get("message", "no reason was given"))
            raise Problem(f"{self._target.session_id} failed: {reason}")
        # An idle status that arrives before our prompt is promoted belongs to earlier work.
        if not self._promoted and not await self._is_in_history():
            raise Problem(
                f"the prompt is stored in {self._target.session_id} but does not run in this"
                " process: it was interrupted, or another process owns the Session and will run"
                f" it; `perdure export {self._target.session_id}` shows its state"
            )
        return self._promoted

    async def _is_in_history(self) -> bool:
        sessions = self._target.client.sessions
        await sessions.wait(self._target.session_id)
        try:
            await sessions.message(self._target.session_id, self._prompt_id)
        except DeclaredError as error:
            if error.tag == "MessageNotFoundError":
                return False
            raise
        return True


def _session_id(event: JsonObject) -> str | None:
    data = event.get("data")
    return cast("JsonObject", data).get("sessionID") if isinstance(data, dict) else None
