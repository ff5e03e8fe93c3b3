"""The open calls of one MCP server: their time limits, their progress, and questions to a person.

A server of the older era asks a question without saying for which call. It is taken to belong to
the only Session that has a call open; with calls of several Sessions it is declined, because the
person of one would answer for another.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from msgspec.structs import replace

from perdure.core import limits
from perdure.core.mcp import elicitation, result
from perdure.core.mcp.elicitation import Elicitation, UnfitAnswerError
from perdure.ports import QuestionAsk, QuestionBlockedError, Questioner, QuestionRejectedError
from perdure.ports.mcp import McpProgress
from perdure.schema.approval.question import QuestionSource
from perdure.schema.codec import JsonObject
from perdure.tools.api.tool import ToolCallContext


class OpenCall:
    """A call that waits for its answer. Progress and questions extend its time."""

    def __init__(self, context: ToolCallContext) -> None:
        self.context = context
        self._limit: asyncio.Timeout | None = None
        self._seconds = 0.0
        self._latest = 0.0
        self._paused = 0

    def hold(self, limit: asyncio.Timeout, seconds: float) -> None:
        """Extend this limit by so many seconds with each report of progress."""
        self._limit, self._seconds = limit, seconds
        self._latest = _now() + limits.MCP_CALL_SECONDS_MAX

    def end(self) -> None:
        """The limit is no longer in force: a late report must not touch it."""
        self._limit = None

    def report(self, progress: McpProgress) -> None:
        self._extend()
        self.context.progress(_progress_text(progress))

    @contextmanager
    def waiting_for_a_person(self) -> Generator[None]:
        """A person's time does not count."""
        self._paused += 1
        self._reschedule(None)
        try:
            yield
        finally:
            self._paused -= 1
            self._latest = _now() + limits.MCP_CALL_SECONDS_MAX
            self._extend()

    def _extend(self) -> None:
        if not self._paused:
            self._reschedule(min(_now() + self._seconds, self._latest))

    def _reschedule(self, when: float | None) -> None:
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(when)


class OpenCalls:
    def __init__(self, server: str, questions: Questioner) -> None:
        self._server = server
        self._questions = questions
        self._open: list[OpenCall] = []

    @contextmanager
    def begin(self, context: ToolCallContext) -> Generator[OpenCall]:
        call = OpenCall(context)
        self._open.append(call)
        try:
            yield call
        finally:
            call.end()
            self._open.remove(call)

    async def elicit(self, params: JsonObject) -> JsonObject:
        """Ask the person of the call that is open. Never fails: a server must get an answer."""
        asked = elicitation.read_elicitation(params, server=self._server)
        sessions = {call.context.session_id for call in self._open}
        if asked is None or len(sessions) != 1:
            return elicitation.DECLINED
        call = self._open[-1]
        with call.waiting_for_a_person():
            try:
                return await self._ask(asked, call.context)
            except QuestionRejectedError:
                return elicitation.DECLINED
            except QuestionBlockedError:
                return elicitation.CANCELLED

    async def _ask(self, asked: Elicitation, context: ToolCallContext) -> JsonObject:
        questions = asked.questions
        for _ in range(limits.MCP_FORM_TRIES_MAX):
            answers = await self._questions.ask(
                QuestionAsk(
                    session_id=context.session_id,
                    questions=questions,
                    tool=QuestionSource(
                        message_id=context.assistant_message_id, call_id=context.call_id
                    ),
                )
            )
            try:
                return elicitation.answer(asked, answers)
            except UnfitAnswerError as unfit:
                first, *others = asked.questions
                again = replace(first, question=f"{unfit}\n{first.question}")
                questions = (again, *others)
        return elicitation.DECLINED


def _progress_text(progress: McpProgress) -> str:
    total = "" if progress.total is None else f"/{progress.total:g}"
    counted = f"{progress.progress:g}{total}"
    message = result.bounded_error(progress.message)
    return f"{message} ({counted})" if message else counted


def _now() -> float:
    return asyncio.get_running_loop().time()
