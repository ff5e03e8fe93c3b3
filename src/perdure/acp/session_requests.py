"""What waits for the user in one Session and below it: asked at the editor, answered once.

Another client may answer first, and another process may have asked. So the server's list decides
what is open; the editor's dialog is taken back when its request is no longer there.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from perdure.acp.dialect import Dialect
from perdure.acp.show import asking
from perdure.acp.show.asking import Choice
from perdure.acp.show.tool_calls import call_id
from perdure.acp.wire.rpc import Connection, RemoteError
from perdure.client.client import Client
from perdure.client.errors import ClientError
from perdure.core.limits import ACP_QUESTION_ROUNDS_MAX
from perdure.schema.approval.permission import PermissionRequest
from perdure.schema.approval.question import Answers, Question, QuestionRequest
from perdure.schema.errors import (
    DeclaredError,
    PermissionConflictError,
    PermissionNotFoundError,
    QuestionNotFoundError,
)
from perdure.schema.ids import SessionID

logger = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 1.0
"""While the Session works: another process may run it, whose requests are not told here."""
_PERMISSION: Final = "session/request_permission"
_ELICITATION: Final = "elicitation/create"
_GONE: Final = (PermissionNotFoundError, PermissionConflictError, QuestionNotFoundError)


class SessionRequests:
    def __init__(
        self,
        client: Client,
        connection: Connection,
        dialect: Dialect,
        session_id: SessionID,
        *,
        has_forms: bool,
        waits: Callable[[bool], Awaitable[None]],
    ) -> None:
        """`waits` is told when the Session begins and ceases to wait for its user."""
        self._client = client
        self._connection = connection
        self._dialect = dialect
        self._session_id = session_id
        self._has_forms = has_forms
        self._waits = waits
        self._asked: dict[str, asyncio.Task[None]] = {}
        self._news = asyncio.Event()
        self._works = asyncio.Event()
        self.directory = ""

    def look(self, *, works: bool) -> None:
        """There may be a new request, or one less. While it `works`, look again and again."""
        if works:
            self._works.set()
        else:
            self._works.clear()
        self._news.set()

    async def run(self) -> None:
        """Ask the editor until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._news.clear()
                await self._compare(group)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_SECONDS if self._works.is_set() else None):
                        await self._news.wait()

    async def _compare(self, group: asyncio.TaskGroup) -> None:
        sessions = self._client.sessions
        try:
            permissions = await sessions.permissions.list(self._session_id)
            questions = await sessions.questions.list(self._session_id)
        except (ClientError, DeclaredError) as error:
            # The server is away, or the Session is gone: what is open stays or ends with it.
            logger.debug("The requests of %s cannot be listed: %s", self._session_id, error)
            return
        found = {each.id: each for each in (*permissions, *questions)}
        for request_id, task in list(self._asked.items()):
            if request_id not in found:
                task.cancel()
                del self._asked[request_id]
        had_any = bool(self._asked)
        for request_id, request in found.items():
            if request_id not in self._asked:
                self._asked[request_id] = group.create_task(self._ask(request))
        if had_any != bool(self._asked) or (found and not had_any):
            await self._waits(bool(self._asked))

    async def _ask(self, request: PermissionRequest | QuestionRequest) -> None:
        try:
            if isinstance(request, PermissionRequest):
                await self._ask_permission(request)
            else:
                await self._ask_question(request)
        except _GONE:
            # Another client was quicker, or the run was interrupted.
            return
        except (ClientError, DeclaredError) as error:
            logger.warning("An answer of the editor could not be given: %s", error)
        except RemoteError as error:
            logger.warning("The editor cannot show a request, which is refused: %s", error)
            with suppress(ClientError, DeclaredError):
                await self._refuse(request)

    async def _ask_permission(self, request: PermissionRequest) -> None:
        asked = asking.show_permission(request, self.directory)
        result = await self._connection.request(
            _PERMISSION, self._dialect.permission(self._session_id, asked)
        )
        answer = asking.read_permission(result)
        await self._client.sessions.permissions.reply(
            request.session_id,
            request.id,
            answer.reply,
            message=answer.message,
            scope=answer.scope,
        )

    async def _ask_question(self, request: QuestionRequest) -> None:
        answers = await (self._ask_form(request) if self._has_forms else self._ask_each(request))
        questions = self._client.sessions.questions
        if answers is None:
            await questions.reject(request.session_id, request.id)
        else:
            await questions.reply(request.session_id, request.id, answers)

    async def _ask_form(self, request: QuestionRequest) -> Answers | None:
        params = {
            "mode": "form",
            "sessionId": self._session_id,
            "message": "\n".join(question.question for question in request.questions),
            "requestedSchema": asking.make_form(request),
        }
        if request.tool:
            params["toolCallId"] = call_id(request.tool.message_id, request.tool.call_id)
        return asking.read_form(request, await self._connection.request(_ELICITATION, params))

    async def _ask_each(self, request: QuestionRequest) -> Answers | None:
        answers: list[tuple[str, ...]] = []
        for question in request.questions:
            chosen = await self._choose(request, question)
            if chosen is None:
                return None
            answers.append(chosen)
        return tuple(answers)

    async def _choose(self, request: QuestionRequest, question: Question) -> tuple[str, ...] | None:
        """The answers to one question, one choice at a time; None if it is declined."""
        chosen: list[str] = []
        asker = (
            call_id(request.tool.message_id, request.tool.call_id) if request.tool else request.id
        )
        for _ in range(ACP_QUESTION_ROUNDS_MAX):
            call, options = asking.choose_one(question, asker, chosen)
            asked = asking.Asked(call=call, description=question.question, options=tuple(options))
            result = await self._connection.request(
                _PERMISSION, self._dialect.permission(self._session_id, asked)
            )
            answer = asking.read_choice(question, result)
            if answer is Choice.DECLINED:
                return None
            if isinstance(answer, str):
                chosen.append(answer)
            if answer is Choice.DONE or not question.takes_many:
                break
            if len(chosen) == len(question.options):
                break
        return tuple(chosen)

    async def _refuse(self, request: PermissionRequest | QuestionRequest) -> None:
        sessions = self._client.sessions
        with suppress(*_GONE):
            if isinstance(request, PermissionRequest):
                await sessions.permissions.reply(request.session_id, request.id, "reject")
            else:
                await sessions.questions.reject(request.session_id, request.id)
