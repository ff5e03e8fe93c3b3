"""A Session as an object: ask it and get an Answer, or read its events while it works.

Losing the connection loses nothing: the prompt is admitted once and the wait goes on. Cancelling a
call does not end the run; `interrupt` does.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, Generic, TypeVar, overload

from perdure.client.conversation.event_stream import EventStream, patiently
from perdure.client.conversation.output import ATTEMPTS, OutputError, OutputType
from perdure.client.conversation.requests import (
    Elsewhere,
    Handlers,
    PermissionHandler,
    QuestionHandler,
    RequestAnswers,
)
from perdure.client.conversation.result import Result
from perdure.client.conversation.tasks import only_error, running
from perdure.client.generated.typed_groups import TypedGroups
from perdure.client.typed_events import LiveEvent
from perdure.schema.errors import PerdureError
from perdure.schema.ids import MessageID, Seq, SessionID, message_from_external
from perdure.schema.session.message import SessionMessage
from perdure.schema.session.prompt import FileInput, PromptInput

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Answer(Result[T_co], Generic[T_co], kw_only=True):
    session: "Session"
    """The Session that gave the answer; `answer.session.ask(...)` asks it again."""


class AnswerError(PerdureError):
    """The prompt was admitted, and no complete answer came; `answer` has what there is."""

    def __init__(self, message: str, answer: Result[None]) -> None:
        super().__init__(message)
        self.answer = answer


class Session:
    def __init__(self, client: TypedGroups, id: SessionID, handlers: Handlers) -> None:
        self.id: Final = id
        self._client = client
        self._handlers = handlers

    @overload
    async def ask(
        self,
        text: str,
        *,
        files: Sequence[FileInput | str] = (),
        on_permission: PermissionHandler | Elsewhere | None = None,
        on_question: QuestionHandler | Elsewhere | None = None,
    ) -> Answer[None]: ...
    @overload
    async def ask(
        self,
        text: str,
        *,
        output: type[T],
        files: Sequence[FileInput | str] = (),
        on_permission: PermissionHandler | Elsewhere | None = None,
        on_question: QuestionHandler | Elsewhere | None = None,
    ) -> Answer[T]: ...
    async def ask(
        self,
        text: str,
        *,
        output: type[T] | None = None,
        files: Sequence[FileInput | str] = (),
        on_permission: PermissionHandler | Elsewhere | None = None,
        on_question: QuestionHandler | Elsewhere | None = None,
    ) -> Answer[T] | Answer[None]:
        """The answer, once the work that the prompt begins has ended.

        `output` is a type for the result: a pydantic model, a dataclass, a TypedDict or a msgspec
        struct. Raises AnswerError if the work failed, or no value of that type came.
        """
        handlers = Handlers(permission=on_permission, question=on_question)
        async with self._answering(handlers.over(self._handlers)):
            if output is None:
                return await self._complete(await self._prompt(text, files))
            return await self._ask_for(OutputType(output), text, files)

    async def stream(
        self,
        text: str | None = None,
        *,
        files: Sequence[FileInput | str] = (),
        on_permission: PermissionHandler | Elsewhere | None = None,
        on_question: QuestionHandler | Elsewhere | None = None,
    ) -> AsyncGenerator[LiveEvent]:
        """The events of the work that the prompt begins, with fragments of text, until it ends.

        Without a `text`, those of the work in progress. Leaving the stream does not end the work.
        """
        handlers = Handlers(permission=on_permission, question=on_question)
        requests = RequestAnswers(self._client, self.id, handlers.over(self._handlers))
        stream = EventStream(self._client, self.id, requests)
        async with running(stream.read()) as reading:
            await stream.opened.wait()
            if text is None:
                seq = (await self._client.sessions.snapshot(self.id, limit=1)).seq
            else:
                seq = Seq((await self._admit(text, files))[1] - 1)
            async with running(requests.answer()) as answering, running(self._wait()) as waiting:
                stream.end_with(reading, answering, waiting)
                async for event in stream.events(after=seq):
                    yield event

    async def interrupt(self) -> None:
        """End what runs; what was said and done so far stays."""
        await self._client.sessions.interrupt(self.id)

    async def messages(self) -> tuple[SessionMessage, ...]:
        """The whole history, in order."""
        found: list[SessionMessage] = []
        page = await self._client.sessions.messages(self.id, order="asc")
        found += page.items
        while page.next is not None:
            page = await self._client.sessions.messages(self.id, cursor=page.next)
            found += page.items
        return tuple(found)

    # ---- one prompt -----------------------------------------------------------------------------

    @asynccontextmanager
    async def _answering(self, handlers: Handlers) -> AsyncGenerator[None]:
        """Answer the requests of the Session meanwhile. Raises what a handler raises."""
        requests = RequestAnswers(self._client, self.id, handlers)
        body = asyncio.current_task()
        assert body is not None
        failures: list[BaseException] = []

        def ended(task: "asyncio.Task[None]") -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                failures.append(error)
                body.cancel()

        async with running(requests.listen()), running(requests.answer()) as answering:
            answering.add_done_callback(ended)
            try:
                yield
            except asyncio.CancelledError:
                if not failures:
                    raise
                body.uncancel()
                raise only_error(failures[0]) from None

    async def _ask_for(
        self, wanted: OutputType[T], text: str, files: Sequence[FileInput | str]
    ) -> Answer[T]:
        first = await self._prompt(f"{text}\n\n{wanted.instruction}", files)
        answer = await self._complete(first)
        for _ in range(ATTEMPTS - 1):
            try:
                return self._with_output(answer, wanted)
            except OutputError as error:
                await self._prompt(wanted.correction(error), ())
                answer = await self._complete(first)
        try:
            return self._with_output(answer, wanted)
        except OutputError as error:
            message = f"No answer of {ATTEMPTS} fits what was asked for: {error}"
            raise AnswerError(message, answer) from error

    def _with_output(self, answer: Answer[None], wanted: OutputType[T]) -> Answer[T]:
        output = wanted.read(answer.text)
        return Answer(session=self, messages=answer.messages, output=output)

    async def _prompt(self, text: str, files: Sequence[FileInput | str]) -> MessageID:
        message_id, _ = await self._admit(text, files)
        await self._wait()
        return message_id

    async def _admit(self, text: str, files: Sequence[FileInput | str]) -> tuple[MessageID, Seq]:
        named = tuple(FileInput(uri=file) if isinstance(file, str) else file for file in files)
        prompt = PromptInput(text=text, files=named) if named else PromptInput(text=text)
        # With an id of its own, a prompt that is sent again is admitted once.
        message_id = message_from_external(secrets.token_hex(16))
        receipt = await patiently(
            lambda: self._client.sessions.prompt(self.id, prompt=prompt, id=message_id)
        )
        return receipt.id, receipt.admitted_seq

    async def _wait(self) -> None:
        """Wait until the Session is idle, also across a restart of the server."""
        await patiently(lambda: self._client.sessions.wait(self.id))

    async def _complete(self, since: MessageID) -> Answer[None]:
        messages = await self._load_since(since)
        answer = Answer(session=self, messages=messages, output=None)
        if answer.failure is None:
            return answer
        found = await patiently(lambda: self._client.sessions.recovery.get(self.id))
        if not found.waiting:
            raise AnswerError(answer.failure, answer)
        raise AnswerError(
            f"{found.message}. Decide about it with `perdure recover {self.id}`, or send another"
            " prompt.",
            answer,
        )

    async def _load_since(self, since: MessageID) -> tuple[SessionMessage, ...]:
        newest: list[SessionMessage] = []
        page = await patiently(lambda: self._client.sessions.messages(self.id, order="desc"))
        while True:
            for message in page.items:
                newest.append(message)
                if message.id == since:
                    return tuple(reversed(newest))
            if page.next is None:
                # The prompt was never promoted: nothing of this is its answer.
                return ()
            read = partial(self._client.sessions.messages, self.id, cursor=page.next)
            page = await patiently(read)
