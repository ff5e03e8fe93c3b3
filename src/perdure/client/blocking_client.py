"""The client for programs without an event loop.

Streams are generators: the first step opens the request, and leaving the generator closes it.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar, overload

from perdure.client.blocking import Blocking
from perdure.client.client import Client, connect
from perdure.client.conversation.blocking_session import BlockingAnswer, BlockingSession
from perdure.client.conversation.requests import Elsewhere, PermissionHandler, QuestionHandler
from perdure.client.generated.blocking_groups import BlockingGroups
from perdure.client.wire import AnyTransport
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationRef
from perdure.schema.models.model import ModelRef
from perdure.schema.session.prompt import FileInput

T = TypeVar("T")


class BlockingClient(BlockingGroups):
    """A Client whose calls block until their answers are there. For one thread."""

    def __init__(self, client: Client, blocking: Blocking) -> None:
        super().__init__(client, blocking)
        self._client = client
        self._blocking = blocking

    def session(
        self,
        id: SessionID | None = None,
        *,
        model: ModelRef | str | None = None,
        agent: str | None = None,
        location: LocationRef | None = None,
    ) -> BlockingSession:
        """A Session to ask: a new one, or the one with this id. A new id makes a new Session."""
        opened = self._client.session(id, model=model, agent=agent, location=location)
        return BlockingSession(self._blocking.run(opened), self._blocking)

    @overload
    def ask(
        self,
        text: str,
        *,
        model: ModelRef | str | None = None,
        agent: str | None = None,
        files: Sequence[FileInput | str] = (),
    ) -> BlockingAnswer[None]: ...
    @overload
    def ask(
        self,
        text: str,
        *,
        output: type[T],
        model: ModelRef | str | None = None,
        agent: str | None = None,
        files: Sequence[FileInput | str] = (),
    ) -> BlockingAnswer[T]: ...
    def ask(
        self,
        text: str,
        *,
        output: type[T] | None = None,
        model: ModelRef | str | None = None,
        agent: str | None = None,
        files: Sequence[FileInput | str] = (),
    ) -> BlockingAnswer[T] | BlockingAnswer[None]:
        """The answer of a new Session. Raises AnswerError if the work failed."""
        session = self.session(model=model, agent=agent)
        if output is None:
            return session.ask(text, files=files)
        return session.ask(text, output=output, files=files)


@contextmanager
def connect_blocking(
    url: str,
    *,
    password: str | None = None,
    username: str = "opencode",
    headers: Mapping[str, str] | None = None,
    transport: AnyTransport | None = None,
    on_permission: PermissionHandler | Elsewhere | None = None,
    on_question: QuestionHandler | Elsewhere | None = None,
) -> Generator[BlockingClient]:
    """As `perdure.connect`, for a program without an event loop.

    ```python
    with perdure.connect_blocking("http://127.0.0.1:4096") as client:
        print(client.ask("list the files here", model="demo/demo"))
    ```
    """
    with Blocking() as blocking:
        client = connect(
            url,
            password=password,
            username=username,
            headers=headers,
            transport=transport,
            on_permission=on_permission,
            on_question=on_question,
        )
        yield BlockingClient(blocking.enter(client), blocking)
