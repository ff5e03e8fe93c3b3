"""Sends one prompt and follows the live stream until the work that it started has ended.

The live stream carries text fragments, permission requests, questions and durable events in one
order, of one process. If another process runs the prompt, its work is shown from the log once it
has ended. The caller decides how permission requests and questions are answered. All printing goes
through the given Output.

A request that is sent again later is not the end: the status is then `retry`, and the Session
runs on. Each durable event is shown once; what the stream left out is read from the log.

Invariant: following ends when the Session is idle in every process and its log is shown, when it
fails, or when the stream is lost. The exit status comes from the log.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final, cast

from perdure.cli import terminal
from perdure.cli.output import Output
from perdure.cli.problem import FAILED_STATUS, INTERRUPTED_STATUS, Problem
from perdure.client import DeclaredError, WireClient
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

TURN_INTERRUPTED: Final = "Provider turn interrupted"
"""The failure of an interrupted step. Repeated here, because `--attach` loads no runtime."""
_LOOK_SECONDS: Final = 0.1
_LOOKS_MAX: Final = 50
_STILL_RUNNING: Final = frozenset({"busy", "retry"})
_INCOMPLETE: Final = {
    "length": "the answer is incomplete: the model reached its limit of output tokens",
    "content-filter": "the answer is incomplete: the provider's content filter ended it",
}

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
        progress = _Progress(target, receipt["id"], receipt["admittedSeq"])
        views = (
            asyncio.create_task(_follow_live(progress, events, session_id)),
            asyncio.create_task(progress.watch_other_process()),
        )
        try:
            ended, _ = await asyncio.wait(views, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for view in views:
                view.cancel()
            await asyncio.gather(*views, return_exceptions=True)
            target.output.finish()
    for view in ended:
        # Raises what ended it.
        view.result()
    return await progress.settle()


async def _follow_live(
    progress: "_Progress", events: AsyncGenerator[object], session_id: str
) -> None:
    async for event in events:
        received = cast("JsonObject", event)
        if _session_id(received) == session_id and await progress.handle(received):
            return
    raise Problem(
        f"the event stream of {session_id} was lost before the work ended;"
        f" `perdure export {session_id}` prints what is stored"
    )


class _Progress:
    """Tracks whether the prompt was promoted and how its last step ended."""

    def __init__(self, target: FollowTarget, prompt_id: str, admitted: int) -> None:
        self._target = target
        self._prompt_id = prompt_id
        self._seen = admitted - 1
        """The sequence of the last durable event that was shown."""
        self._promoted = False
        self._idle_here = asyncio.Event()
        """Set when the Session was idle here before the prompt was promoted."""
        self._failure: str | None = None
        """Why the last step failed."""
        self._finish: str | None = None
        """The finish reason of the last step; None while it runs."""

    async def settle(self) -> int:
        """Wait until the Session is idle, show the rest of its log, and return the exit status.

        The last line that is printed says why it is not 0.
        """
        sessions, session_id = self._target.client.sessions, self._target.session_id
        looks = 0
        while True:
            # Also runs what a process left that has ended meanwhile.
            await sessions.wait(session_id)
            await self._show_log()
            if self._failure is not None or self._finish not in {None, "tool-calls"}:
                break
            if looks == _LOOKS_MAX:
                raise Problem(
                    f"the prompt in {session_id} has no answer: its run was interrupted or waits;"
                    f" `perdure recover {session_id}` shows what it waits for"
                )
            looks += 1
            await asyncio.sleep(_LOOK_SECONDS)
        self._target.output.finish()
        if self._failure is None:
            if (cut := _INCOMPLETE.get(str(self._finish))) is None:
                return 0
            terminal.print_note(f"{cut}\n")
            return FAILED_STATUS
        terminal.print_note(f"failed: {terminal.one_line(self._failure)}\n")
        return INTERRUPTED_STATUS if self._failure == TURN_INTERRUPTED else FAILED_STATUS

    async def handle(self, event: JsonObject) -> bool:
        """Show and handle one event of the Session; return whether it ended the work."""
        data = cast("JsonObject", event["data"])
        if not self._note(event):
            return False
        self._target.output.show(event)
        match event["type"]:
            case "permission.v2.asked":
                self._target.output.finish()
                await self._target.answer_permission(event, self._target.client)
            case "question.v2.asked":
                self._target.output.finish()
                await self._target.answer_question(event, self._target.client)
            case "session.status":
                return self._is_ended(data["status"])
            case _:
                pass
        return False

    def _note(self, event: JsonObject) -> bool:
        """Keep what the event says about the end; return whether it is yet to be shown."""
        durable = event.get("durable")
        if durable is None:
            return True
        if durable["seq"] <= self._seen:
            return False
        self._seen = durable["seq"]
        data = cast("JsonObject", event["data"])
        match event["type"]:
            case "session.next.prompted":
                if data["messageID"] == self._prompt_id:
                    # How earlier work ended is not how this prompt ends.
                    self._promoted, self._failure, self._finish = True, None, None
            case "session.next.step.started":
                self._failure, self._finish = None, None
            case "session.next.step.ended":
                self._finish = data["finish"]
            case "session.next.step.failed":
                self._failure = data["error"]["message"]
            case _:
                pass
        return True

    async def watch_other_process(self) -> None:
        """Return when another process has run the prompt, and its work is shown.

        Raises Problem if no process is going to run it.
        """
        await self._idle_here.wait()
        sessions, session_id = self._target.client.sessions, self._target.session_id
        looks = 0
        while looks < _LOOKS_MAX:
            await asyncio.sleep(_LOOK_SECONDS)
            if self._promoted or session_id in await sessions.active():
                looks = 0
            elif await self._is_in_history():
                return
            else:
                # The process that had it may have left, and the next has yet to take it over.
                looks += 1
        raise Problem(
            f"the prompt is stored in {session_id} but no process runs it: it was interrupted;"
            f" `perdure export {session_id}` shows its state"
        )

    def _is_ended(self, status: JsonObject) -> bool:
        if status["type"] in _STILL_RUNNING:
            return False
        if status.get("outcome") == "failed":
            reason = terminal.one_line(status.get("message", "no reason was given"))
            raise Problem(f"{self._target.session_id} failed: {reason}")
        if not self._promoted:
            # The end of earlier work, or another process has the Session.
            self._idle_here.set()
        return self._promoted

    async def _show_log(self) -> None:
        """Show what is stored and was not in the stream, such as the work of another process."""
        has_more = True
        while has_more:
            page = await self._target.client.sessions.history(
                self._target.session_id, after=self._seen
            )
            for event in page.items:
                received = cast("JsonObject", event)
                if self._note(received):
                    self._target.output.show(received)
            has_more = page.has_more

    async def _is_in_history(self) -> bool:
        sessions = self._target.client.sessions
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
