"""A Session for programs without an event loop."""

from collections.abc import Generator, Sequence
from typing import Generic, TypeVar, overload

from perdure.client.blocking import Blocking
from perdure.client.conversation.requests import Elsewhere, PermissionHandler, QuestionHandler
from perdure.client.conversation.result import Result
from perdure.client.conversation.session import Session
from perdure.client.typed_events import LiveEvent
from perdure.schema.session.message import SessionMessage
from perdure.schema.session.prompt import FileInput

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class BlockingAnswer(Result[T_co], Generic[T_co], kw_only=True):
    session: "BlockingSession"
    """The Session that gave the answer; `answer.session.ask(...)` asks it again."""


class BlockingSession:
    """A Session whose calls block. Handlers are called in the thread of the caller."""

    def __init__(self, session: Session, blocking: Blocking) -> None:
        self.id = session.id
        self._session = session
        self._blocking = blocking

    @overload
    def ask(
        self,
        text: str,
        *,
        files: Sequence[FileInput | str] = (),
        on_permission: PermissionHandler | Elsewhere | None = None,
        on_question: QuestionHandler | Elsewhere | None = None,
    ) -> BlockingAnswer[None]: ...
    @overload
    def ask(
        self,
        text: str,
        *,
        output: type[T],
        files: Sequence[FileInput | str] = (),
        on_permission: PermissionHandler | Elsewhere | None = None,
        on_question: QuestionHandler | Elsewhere | None = None,
    ) -> BlockingAnswer[T]: ...
    def ask(
        self,
        text: str,
        *,
        output: type[T] | None = None,
        files: Sequence[FileInput | str] = (),
        on_permission: PermissionHandler | Elsewhere | None = None,
        on_question: QuestionHandler | Elsewhere | None = None,
    ) -> BlockingAnswer[T] | BlockingAnswer[None]:
        """As Session.ask."""
        if output is None:
            plain = self._blocking.run(
                self._session.ask(
                    text, files=files, on_permission=on_permission, on_question=on_question
                )
            )
            return BlockingAnswer(session=self, messages=plain.messages, output=None)
        answer = self._blocking.run(
            self._session.ask(
                text,
                output=output,
                files=files,
                on_permission=on_permission,
                on_question=on_question,
            )
        )
        return BlockingAnswer(session=self, messages=answer.messages, output=answer.output)

    def stream(
        self,
        text: str | None = None,
        *,
        files: Sequence[FileInput | str] = (),
        on_permission: PermissionHandler | Elsewhere | None = None,
        on_question: QuestionHandler | Elsewhere | None = None,
    ) -> Generator[LiveEvent]:
        """As Session.stream. The host stands still between two steps of the generator."""
        events = self._session.stream(
            text, files=files, on_permission=on_permission, on_question=on_question
        )
        return self._blocking.iterate(events)

    def interrupt(self) -> None:
        """End what runs; what was said and done so far stays."""
        self._blocking.run(self._session.interrupt())

    def messages(self) -> tuple[SessionMessage, ...]:
        """The whole history, in order."""
        return self._blocking.run(self._session.messages())
