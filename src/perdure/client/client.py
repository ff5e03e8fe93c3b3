"""Client: every operation of the contract, with decoded values.

Answers are records and are checked against the contract; ids have types of their own; a declared
failure is raised as its class. Constructing a client touches no network; closing it, or leaving its
scope, closes its connections.
"""

import base64
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Final, Self, TypeVar, overload

from perdure.client.conversation.requests import (
    Elsewhere,
    Handlers,
    PermissionHandler,
    QuestionHandler,
)
from perdure.client.conversation.session import Answer, Session
from perdure.client.generated.typed_groups import TypedGroups
from perdure.client.reconnect import Reconnected, resume
from perdure.client.typed_events import DurableEvent
from perdure.client.typed_wire import TypedWire
from perdure.client.wire import AnyTransport, CallOptions, Wire
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationRef
from perdure.schema.models.model import ModelRef
from perdure.schema.session.prompt import FileInput

T = TypeVar("T")

_USERNAME: Final = "opencode"


class Client(TypedGroups):
    """A client of one server. `async with` it, or call `aclose`."""

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        transport: AnyTransport | None = None,
        handlers: Handlers | None = None,
    ) -> None:
        """`handlers` answer the requests of Sessions that this client waits for."""
        self._wire = Wire(base_url, headers=headers, transport=transport)
        self._handlers = handlers or Handlers()
        super().__init__(TypedWire(self._wire))

    async def session(
        self,
        id: SessionID | None = None,
        *,
        model: ModelRef | str | None = None,
        agent: str | None = None,
        location: LocationRef | None = None,
    ) -> Session:
        """A Session to ask: a new one, or the one with this id. A new id makes a new Session."""
        info = await self.sessions.create(id=id, model=model, agent=agent, location=location)
        return Session(self, info.id, self._handlers)

    @overload
    async def ask(
        self,
        text: str,
        *,
        model: ModelRef | str | None = None,
        agent: str | None = None,
        files: Sequence[FileInput | str] = (),
    ) -> Answer[None]: ...
    @overload
    async def ask(
        self,
        text: str,
        *,
        output: type[T],
        model: ModelRef | str | None = None,
        agent: str | None = None,
        files: Sequence[FileInput | str] = (),
    ) -> Answer[T]: ...
    async def ask(
        self,
        text: str,
        *,
        output: type[T] | None = None,
        model: ModelRef | str | None = None,
        agent: str | None = None,
        files: Sequence[FileInput | str] = (),
    ) -> Answer[T] | Answer[None]:
        """The answer of a new Session; `answer.session.ask(...)` goes on with it.

        `output` is a type for the result, see Session.ask. Raises AnswerError if the work failed.
        """
        session = await self.session(model=model, agent=agent)
        if output is None:
            return await session.ask(text, files=files)
        return await session.ask(text, output=output, files=files)

    async def aclose(self) -> None:
        await self._wire.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()


def connect(
    url: str,
    *,
    password: str | None = None,
    username: str = _USERNAME,
    headers: Mapping[str, str] | None = None,
    transport: AnyTransport | None = None,
    on_permission: PermissionHandler | Elsewhere | None = None,
    on_question: QuestionHandler | Elsewhere | None = None,
) -> Client:
    """A client of the server at `url`, such as "http://127.0.0.1:4096".

    ```python
    async with perdure.connect("http://127.0.0.1:4096") as client:
        print(await client.ask("list the files here", model="demo/demo"))
    ```

    `password` is the one that `perdure serve` asks for. `headers` go with every request, over the
    `transport`: an `httpx2.AsyncBaseTransport`, or a `client.transport.Transport`. `on_permission`
    and `on_question` answer for `ask` and `stream`; without them a permission is refused.
    """
    return Client(
        url,
        headers=authorized(headers, username=username, password=password),
        transport=transport,
        handlers=Handlers(permission=on_permission, question=on_question),
    )


def authorized(
    headers: Mapping[str, str] | None, *, username: str, password: str | None
) -> Mapping[str, str]:
    """`headers` with the credentials that the server asks for, if there is a password."""
    given = dict(headers or {})
    if password is not None:
        credentials = base64.b64encode(f"{username}:{password}".encode()).decode()
        given["authorization"] = f"Basic {credentials}"
    return given


def resume_events(
    client: Client,
    session_id: SessionID,
    *,
    after: int | None = None,
    reconnected: Callable[[Reconnected], None] | None = None,
    options: CallOptions | None = None,
) -> AsyncGenerator[DurableEvent]:
    """Durable events of a Session after a sequence number, and then new ones, without an end.

    A lost connection is opened again after the last event; then `reconnected` is called.
    """
    given = options or CallOptions()

    def opens(after: int | None, opened: Callable[[], None]) -> AsyncGenerator[DurableEvent]:
        options = CallOptions(headers=given.headers, opened=opened, replayed=given.replayed)
        return client.sessions.events(session_id, after=after, options=options)

    return resume(opens, lambda event: event.durable.seq, after=after, notify=reconnected)
