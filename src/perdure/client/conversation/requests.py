"""Answers the permission requests and questions of a Session while a program waits for it.

The program's handlers decide. Without a handler a permission is refused, and the model is told so
and goes on: a program without a person in front of it must not wait for ever.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Final, Literal, get_args

from perdure.client.errors import ClientError
from perdure.client.generated.typed_groups import TypedGroups
from perdure.client.reconnect import may_recover
from perdure.schema.approval.permission import PermissionRequest, Reply
from perdure.schema.approval.question import Answers, QuestionRequest
from perdure.schema.errors import (
    PermissionConflictError,
    PermissionNotFoundError,
    QuestionNotFoundError,
)
from perdure.schema.ids import SessionID
from perdure.schema.value import Value

_LOOK_SECONDS: Final = 1.0
"""Another process may run the Session: its requests are stored, and not told to this server."""
_REPLIES: Final = frozenset(get_args(Reply))
_UNASKED: Final = "This program cannot be asked for permission. Do without it, or end here."
_UNANSWERED: Final = "This program cannot be asked. Decide by yourself."


class Refusal(Value):
    """A "no" that tells the model why; the model goes on. A plain `reject` ends the run."""

    reason: str


PermissionHandler = Callable[[PermissionRequest], Reply | Refusal | Awaitable[Reply | Refusal]]
QuestionHandler = Callable[[QuestionRequest], Answers | Awaitable[Answers | None] | None]
Elsewhere = Literal["elsewhere"]


class Handlers(Value, kw_only=True):
    """The functions of the program that answer requests of the runtime.

    `elsewhere`: another client of the server answers, and this program waits for it.
    """

    permission: PermissionHandler | Elsewhere | None = None
    question: QuestionHandler | Elsewhere | None = None

    def over(self, others: "Handlers") -> "Handlers":
        """These, and where they are not given the `others`."""
        return Handlers(
            permission=self.permission or others.permission,
            question=self.question or others.question,
        )


class RequestAnswers:
    """Answers the requests of one Session and its subagents until it is cancelled."""

    def __init__(self, client: TypedGroups, session_id: SessionID, handlers: Handlers) -> None:
        self._client = client
        self._session_id = session_id
        self._handlers = handlers
        self._seen: set[str] = set()
        self._news = asyncio.Event()

    def look(self) -> None:
        """There may be a new request."""
        self._news.set()

    async def listen(self) -> None:
        """Look whenever the server tells of a request."""
        while True:
            with suppress(ClientError):
                async with aclosing(self._client.events.subscribe()) as events:
                    async for event in events:
                        if isinstance(event.data, PermissionRequest | QuestionRequest):
                            self.look()
            await asyncio.sleep(_LOOK_SECONDS)

    async def answer(self) -> None:
        """Answer each request once, several at a time. Raises what a handler raises."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._news.clear()
                await self._begin(group)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_SECONDS):
                        await self._news.wait()

    async def _begin(self, group: asyncio.TaskGroup) -> None:
        sessions = self._client.sessions
        try:
            if self._handlers.permission != "elsewhere":
                for asked in await sessions.permissions.list(self._session_id):
                    if self._is_new(asked.id):
                        group.create_task(self._answer_permission(asked))
            if self._handlers.question != "elsewhere":
                for question in await sessions.questions.list(self._session_id):
                    if self._is_new(question.id):
                        group.create_task(self._answer_question(question))
        except ClientError as error:
            # The server may be starting again; its requests are still there then.
            if not may_recover(error):
                raise

    def _is_new(self, request_id: str) -> bool:
        is_new = request_id not in self._seen
        self._seen.add(request_id)
        return is_new

    async def _answer_permission(self, asked: PermissionRequest) -> None:
        handler = self._handlers.permission
        if handler is None or handler == "elsewhere":
            await self._reply(asked, Refusal(_UNASKED))
            return
        try:
            given = handler(asked)
            answer = await given if isinstance(given, Awaitable) else given
        except BaseException:
            # The run must not wait for an answer that never comes.
            await self._reply(asked, "reject")
            raise
        if not isinstance(answer, Refusal) and all(answer != it for it in _REPLIES):
            await self._reply(asked, "reject")
            raise TypeError(
                f"on_permission returned {answer!r}; it returns 'once', 'always', 'reject' or"
                " perdure.Refusal(reason)"
            )
        await self._reply(asked, answer)

    async def _reply(self, asked: PermissionRequest, answer: Reply | Refusal) -> None:
        message = answer.reason if isinstance(answer, Refusal) else None
        reply: Reply = "reject" if isinstance(answer, Refusal) else answer
        # Another client may have been quicker.
        with suppress(PermissionNotFoundError, PermissionConflictError):
            await self._client.sessions.permissions.reply(
                asked.session_id, asked.id, reply, message=message
            )

    async def _answer_question(self, asked: QuestionRequest) -> None:
        handler, questions = self._handlers.question, self._client.sessions.questions
        answers: Answers | None
        if handler is None or handler == "elsewhere":
            answers = tuple(
                (_UNANSWERED,) if question.takes_own_words else () for question in asked.questions
            )
        else:
            try:
                given = handler(asked)
                answers = await given if isinstance(given, Awaitable) else given
            except BaseException:
                await self._reject(asked)
                raise
        if answers is None:
            await self._reject(asked)
            return
        with suppress(QuestionNotFoundError):
            await questions.reply(asked.session_id, asked.id, answers)

    async def _reject(self, asked: QuestionRequest) -> None:
        with suppress(QuestionNotFoundError):
            await self._client.sessions.questions.reject(asked.session_id, asked.id)
