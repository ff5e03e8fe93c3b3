"""How far the work of a followed prompt has come, and how it ended.

A request that is sent again later is not the end: the status is then `retry`, and the Session
runs on. Each durable event is shown once; what the stream left out is read from the log.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final, cast

from perdure.cli import terminal
from perdure.cli.problem import FAILED_STATUS, INTERRUPTED_STATUS, Problem
from perdure.cli.runs.output import Output
from perdure.client import DeclaredError, WireClient
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

if TYPE_CHECKING:
    from perdure.client.generated import types

TURN_INTERRUPTED: Final = "Provider turn interrupted"
"""The failure of an interrupted step. Repeated here, because `--attach` loads no runtime."""
_LOOK_SECONDS: Final = 0.1
_LOOKS_MAX: Final = 50
_STILL_RUNNING: Final = frozenset({"busy", "retry"})
_UNFINISHED: Final = frozenset({None, "tool-calls"})
_INCOMPLETE: Final = {
    "length": "the answer is incomplete: the model reached its limit of output tokens",
    "content-filter": "the answer is incomplete: the provider's content filter ended it",
}


_SPEAKS: Final = ("session.next.text.", "session.next.tool.")
_EMPTY: Final = "the model ended its turn without an answer"


class Outcome(Value):
    """How a run ended: the exit status, and why it is not 0."""

    status: int
    reason: str | None = None


class RunProgress:
    """Tracks whether the prompt was promoted and how its last step ended."""

    def __init__(self, client: WireClient, session_id: str, output: Output) -> None:
        self._client = client
        self._session_id = session_id
        self._output = output
        self._prompt_id: str | None = None
        """The followed prompt; None if the work of an earlier process goes on."""
        self._seen = -1
        """The sequence of the last durable event that was shown."""
        self._promoted = False
        self._idle_here = asyncio.Event()
        """Set when the Session was idle here before the prompt was promoted."""
        self._failure: str | None = None
        """Why the last step failed."""
        self._refusal: str | None = None
        """What was refused in the last step, which stops the run unless a reason was given."""
        self._has_answer = False
        """Whether something was said or done since the prompt."""
        self._finish: str | None = None
        """The finish reason of the last step; None while it runs."""

    def expect(self, receipt: "types.AdmittedPrompt") -> None:
        """Follow this prompt."""
        self._prompt_id, self._seen = receipt["id"], receipt["admittedSeq"] - 1

    async def resume(self) -> None:
        """Follow the work that an earlier process left. Raises Problem if there is none."""
        sessions, session_id = self._client.sessions, self._session_id
        waiting = await sessions.inbox.list(session_id)
        async for event in self._read_log():
            self._note(event)
            self._output.remember(event)
        if not waiting and (self._failure is not None or self._finish not in _UNFINISHED):
            raise Problem(f"{session_id} has nothing to go on with; give it a prompt")
        self._promoted = True
        await sessions.resume(session_id)

    async def settle(self) -> Outcome:
        """Wait until the Session is idle, show the rest of its log, and return how it ended."""
        sessions, session_id = self._client.sessions, self._session_id
        looks = 0
        while True:
            # Also runs what a process left that has ended meanwhile.
            await sessions.wait(session_id)
            await self._show_log()
            if self._failure is not None or self._finish not in _UNFINISHED:
                break
            if self._refusal is not None:
                return Outcome(FAILED_STATUS, self._refusal)
            if looks == _LOOKS_MAX:
                raise Problem(
                    f"the prompt in {session_id} has no answer: its run was interrupted or waits;"
                    f" `perdure recover {session_id}` shows what it waits for"
                )
            looks += 1
            await asyncio.sleep(_LOOK_SECONDS)
        self._output.finish()
        if self._failure is not None:
            interrupted = self._failure == TURN_INTERRUPTED
            status = INTERRUPTED_STATUS if interrupted else FAILED_STATUS
            return Outcome(status, f"failed: {terminal.one_line(self._failure)}")
        cut = _INCOMPLETE.get(str(self._finish)) or (None if self._has_answer else _EMPTY)
        return Outcome(0) if cut is None else Outcome(FAILED_STATUS, cut)

    def handle(self, event: JsonObject) -> bool:
        """Show and handle one event of the Session; return whether it ended the work."""
        if not self._note(event):
            return False
        self._output.show(event)
        self._note_refusal(event)
        return event["type"] == "session.status" and self._is_ended(event["data"]["status"])

    def _note_refusal(self, event: JsonObject) -> None:
        match event["type"]:
            case "permission.v2.replied" if event["data"]["reply"] == "reject":
                self._refusal = "stopped: the permission was refused"
            case "question.v2.rejected":
                self._refusal = "stopped: the question was declined"
            case _:
                pass

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
                    self._has_answer = False
            case "session.next.step.started":
                self._failure, self._finish, self._refusal = None, None, None
            case "session.next.step.ended":
                self._finish = data["finish"]
            case str(kind) if kind.startswith(_SPEAKS):
                self._has_answer = True
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
        sessions, session_id = self._client.sessions, self._session_id
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
            raise Problem(f"{self._session_id} failed: {reason}")
        if not self._promoted:
            # The end of earlier work, or another process has the Session.
            self._idle_here.set()
        return self._promoted

    async def _show_log(self) -> None:
        """Show what is stored and was not in the stream, such as the work of another process."""
        async for event in self._read_log():
            if self._note(event):
                self._output.show(event)

    async def _read_log(self) -> AsyncIterator[JsonObject]:
        """The events after those that were seen."""
        after, has_more = self._seen, True
        while has_more:
            page = await self._client.sessions.history(
                self._session_id, after=after if after >= 0 else None
            )
            for event in page.items:
                yield cast("JsonObject", event)
                after = event["durable"]["seq"]
            has_more = page.has_more

    async def _is_in_history(self) -> bool:
        if self._prompt_id is None:
            return True
        sessions = self._client.sessions
        try:
            await sessions.message(self._session_id, self._prompt_id)
        except DeclaredError as error:
            if error.tag == "MessageNotFoundError":
                return False
            raise
        return True
