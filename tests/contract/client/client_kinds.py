"""Three clients and two transports, spoken to in the same words.

A Voice says an operation by its public name and gives back plain JSON, whichever client it has:
with plain values, with decoded ones, or without an event loop. A failure is told by its tag.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Final, Literal, Protocol, TypeVar

from perdure.client import DeclaredError, PerdureClient
from perdure.client.sync import SyncPerdureClient
from perdure.client.transport import Request, Response
from perdure.client.typed import TypedPerdureClient
from perdure.core.models import catalog
from perdure.embedded import open_embedded, open_embedded_wire
from perdure.embedded.asgi_transport import AsgiTransport
from perdure.host import environment
from perdure.llm.model_call import ModelCall
from perdure.runtime.app.runtime import RuntimeSettings, open_runtime
from perdure.schema import codec
from perdure.schema.codec import JsonValue
from perdure.schema.errors import DomainError
from perdure.server import app, services
from perdure.server.serve import serve
from perdure.server.settings import ServerSettings
from tests.contract.client.hosts import project

Values = Literal["plain", "decoded", "sync"]
Way = Literal["network", "memory"]
T = TypeVar("T")

_CURSOR_KEY: Final = b"k" * 32


class FailedCallError(Exception):
    """A declared failure, by its tag."""


class Voice(Protocol):
    async def call(self, name: str, *arguments: JsonValue, **named: JsonValue) -> JsonValue: ...
    def stream(
        self, name: str, *arguments: JsonValue, **named: JsonValue
    ) -> AsyncGenerator[JsonValue]: ...


class AsyncVoice:
    """Over the client with plain values, or the one with decoded values."""

    def __init__(self, client: PerdureClient | TypedPerdureClient) -> None:
        self._client = client

    async def call(self, name: str, *arguments: JsonValue, **named: JsonValue) -> JsonValue:
        try:
            return codec.to_json_value(await method_of(self._client, name)(*arguments, **named))
        except DeclaredError as error:
            raise FailedCallError(error.tag) from error
        except DomainError as error:
            raise FailedCallError(error.tag) from error

    async def stream(
        self, name: str, *arguments: JsonValue, **named: JsonValue
    ) -> AsyncGenerator[JsonValue]:
        opened: AsyncGenerator[JsonValue] = method_of(self._client, name)(*arguments, **named)
        async with aclosing(opened) as events:
            async for event in events:
                yield codec.to_json_value(event)


class SyncVoice:
    """Over the client without an event loop, each call in a thread: it waits, and we must not."""

    def __init__(self, connect: Callable[[], SyncPerdureClient]) -> None:
        self._connect = connect

    async def call(self, name: str, *arguments: JsonValue, **named: JsonValue) -> JsonValue:
        def made() -> JsonValue:
            with self._connect() as client:
                return method_of(client, name)(*arguments, **named)

        try:
            return codec.to_json_value(await asyncio.to_thread(made))
        except DeclaredError as error:
            raise FailedCallError(error.tag) from error

    async def stream(
        self, name: str, *arguments: JsonValue, **named: JsonValue
    ) -> AsyncGenerator[JsonValue]:
        client = await asyncio.to_thread(self._connect)
        events: Generator[JsonValue] = method_of(client, name)(*arguments, **named)
        try:
            while (event := await asyncio.to_thread(next, events, None)) is not None:
                yield codec.to_json_value(event)
        finally:
            await asyncio.to_thread(_closed, events, client)


def _closed(events: Generator[JsonValue], client: SyncPerdureClient) -> None:
    events.close()
    client.close()


class OtherLoopCarrier:
    """Leads requests of another thread's loop to a carrier of ours."""

    def __init__(self, inner: AsgiTransport, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._loop = loop

    async def send(self, outgoing: Request) -> Response:
        return _OtherLoopIncoming(self._there, await self._there(self._inner.send(outgoing)))

    async def aclose(self) -> None:
        """The inner one is not ours to close."""

    async def _there(self, work: Coroutine[None, None, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


class _OtherLoopIncoming:
    def __init__(self, there: Callable[..., JsonValue], answer: Response) -> None:
        self._there = there
        self._answer = answer

    @property
    def status(self) -> int:
        return self._answer.status

    @property
    def content_type(self) -> str:
        return self._answer.content_type

    async def read(self) -> bytes:
        return await self._there(self._answer.read())

    async def chunks(self) -> AsyncGenerator[bytes]:
        chunks = self._answer.chunks()

        async def step() -> bytes | None:
            return await anext(chunks, None)

        while (chunk := await self._there(step())) is not None:
            yield chunk

    async def aclose(self) -> None:
        await self._there(self._answer.aclose())


@asynccontextmanager
async def voice(
    root: Path, way: Way, values: Values, models: Mapping[str, ModelCall]
) -> AsyncGenerator[Voice]:
    """A host of its own with these models, named `provider/model`, and a client of it."""
    async with AsyncExitStack() as stack:
        if way == "network" or values == "sync":
            where, carrier = await stack.enter_async_context(_hosted(root, way, models))
            yield await stack.enter_async_context(_speaking(where, carrier, values))
            return
        directory, data_dir = str(project(root)), str(root / "data")
        opens = open_embedded if values == "decoded" else open_embedded_wire
        embedded = opens(directory, data_dir=data_dir, models=models)
        yield AsyncVoice(await stack.enter_async_context(embedded))


@asynccontextmanager
async def _speaking(
    where: str, carrier: AsgiTransport | None, values: Values
) -> AsyncGenerator[Voice]:
    if values == "sync":
        loop = asyncio.get_running_loop()
        yield SyncVoice(
            lambda: SyncPerdureClient(
                where,
                transport=None if carrier is None else OtherLoopCarrier(carrier, loop),
            )
        )
        return
    kind = PerdureClient if values == "plain" else TypedPerdureClient
    async with kind(where) as client:
        yield AsyncVoice(client)


@asynccontextmanager
async def _hosted(
    root: Path, way: Way, models: Mapping[str, ModelCall]
) -> AsyncGenerator[tuple[str, AsgiTransport | None]]:
    """The address of a runtime, and the carrier that leads there if no socket does."""
    by_provider: dict[str, dict[str, ModelCall]] = {}
    for name, call in models.items():
        provider, _, model = name.partition("/")
        by_provider.setdefault(provider, {})[model] = call
    settings = RuntimeSettings(
        environment=environment.from_process(),
        data_dir=str(root / "data"),
        default_directory=str(project(root)),
        providers=tuple(catalog.host_provider(*one) for one in by_provider.items()),
    )
    server = ServerSettings(default_directory=settings.default_directory, cursor_key=_CURSOR_KEY)
    stop = asyncio.Event()
    async with open_runtime(settings) as runtime, asyncio.TaskGroup() as tasks:
        if way == "memory":
            carrier = AsgiTransport(app.make_app(services.of(runtime), server), tasks)
            yield "http://localhost", carrier
            await carrier.aclose()
            return
        port = asyncio.get_running_loop().create_future()
        tasks.create_task(serve(services.of(runtime), server, ready=port.set_result, stop=stop))
        try:
            yield f"http://127.0.0.1:{await port}", None
        finally:
            stop.set()


def method_of(client: object, name: str) -> JsonValue:
    """What the client has under a dotted name."""
    found: JsonValue = client
    for part in name.split("."):
        found = getattr(found, part)
    return found
