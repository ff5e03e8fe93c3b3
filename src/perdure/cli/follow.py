"""One prompt, followed from its admission to the end of the work it started.

Follows the live stream, which carries fragments, permission requests, questions and durable facts
in one order. How either is answered is the caller's concern. Nothing is printed here but through
the Output.

Invariant: following ends. The Session goes idle or fails, or the stream is lost.
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
"""Settles the permission request or the question that this event announces."""


class Followed(Value, kw_only=True):
    client: WireClient
    session_id: str
    output: Output
    answer_permission: Answer
    answer_question: Answer


async def follow(followed: Followed, text: str) -> int:
    """Prompt the Session and show what happens; the status to exit with."""
    client, session_id = followed.client, followed.session_id
    async with aclosing(client.events.subscribe()) as events:
        # The greeting says that the subscription is there: nothing of this prompt is missed.
        await anext(events, None)
        receipt = await client.sessions.prompt(session_id, text=text)
        progress = _Progress(followed, receipt["id"])
        async for event in events:
            shown = cast("JsonObject", event)
            if _session_of(shown) == session_id and await progress.take(shown):
                followed.output.finish()
                return FAILED_STATUS if progress.failed else 0
    followed.output.finish()
    raise Problem(f"the stream ended before the work did; see it with: perdure export {session_id}")


class _Progress:
    """How far the prompt has come."""

    def __init__(self, followed: Followed, prompt_id: str) -> None:
        self._followed = followed
        self._prompt_id = prompt_id
        self._promoted = False
        self.failed = False

    async def take(self, event: JsonObject) -> bool:
        """Note one event of the Session; whether it was the last."""
        data = cast("JsonObject", event["data"])
        self._followed.output.show(event)
        match event["type"]:
            case "session.next.prompted":
                self._promoted = self._promoted or data["messageID"] == self._prompt_id
            case "session.next.step.failed":
                self.failed = True
            case "permission.v2.asked":
                self._followed.output.finish()
                await self._followed.answer_permission(event, self._followed.client)
            case "question.v2.asked":
                self._followed.output.finish()
                await self._followed.answer_question(event, self._followed.client)
            case "session.status":
                return await self._ended(data["status"])
            case _:
                pass
        return False

    async def _ended(self, status: JsonObject) -> bool:
        if status["type"] == "running":
            return False
        if status["type"] == "failed":
            reason = terminal.one_line(status.get("message", "no reason was given"))
            raise Problem(f"the Session failed: {reason}")
        # An idle status from before our prompt's turn is that of earlier work.
        if not self._promoted and not await self._is_in_history():
            raise Problem(
                "the prompt is admitted, but it does not run here: it was interrupted, or another"
                " process has this Session and will run it"
            )
        return self._promoted

    async def _is_in_history(self) -> bool:
        sessions = self._followed.client.sessions
        await sessions.wait(self._followed.session_id)
        try:
            await sessions.message(self._followed.session_id, self._prompt_id)
        except DeclaredError as error:
            if error.tag == "MessageNotFoundError":
                return False
            raise
        return True


def _session_of(event: JsonObject) -> str | None:
    data = event.get("data")
    return cast("JsonObject", data).get("sessionID") if isinstance(data, dict) else None
