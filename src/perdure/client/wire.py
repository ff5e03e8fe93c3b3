"""One call over HTTP: spelled, sent, read, and every failure told as one of two kinds.

Nothing is retried and nothing reconnects. What the operations are called and take stands in the
generated groups; here a path, a query and a body are enough.

Invariant: no exception of the HTTP library leaves this module.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypedDict, Unpack
from urllib.parse import quote, urlsplit

import httpx2
import msgspec

from perdure.client.answers import (
    EVENT_STREAM,
    JSON,
    decoded_object,
    failure,
    frames,
    json_bytes,
    require_type,
    transport_errors,
    unexpected,
)
from perdure.client.pages import History, data_of, history_of, items_of, page_of
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue, Payload
from perdure.schema.page import Page
from perdure.schema.value import Confidential

_CONNECT_SECONDS_MAX: Final = 10
_ANSWER_SECONDS_MAX: Final = 60
_SILENCE_SECONDS_MAX: Final = 60
"""The server sends something every fifteen seconds; four times that is a dead connection."""
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})

Query = Mapping[str, str | int | None]


class CallOptions(Confidential, kw_only=True):
    """How one call is made, apart from what it asks."""

    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    opened: Callable[[], None] | None = None
    """Called when a stream is answered, before its first event."""


class Call(TypedDict, total=False):
    """What a call carries besides its method and its path."""

    query: Query
    body: JsonObject | Payload
    patient: bool
    """The answer may take for ever."""
    options: CallOptions | None


def segment(value: str) -> str:
    """`value` as one segment of a path, whatever it holds."""
    # A bare dot would be folded away as a path, and the call go somewhere else.
    return quote(value, safe="").replace(".", "%2E")


def is_loopback(url: str) -> bool:
    return (urlsplit(url).hostname or "") in _LOOPBACK


def either(whole: JsonValue, make: Callable[..., JsonValue], **part: str | None) -> JsonValue:
    """`whole`, or what `make` builds of its one usual part."""
    ((name, value),) = part.items()
    if (whole is None) == (value is None):
        raise TypeError(f"give either `{name}`, or the whole that it is a part of")
    return make(**part) if whole is None else whole


class Wire:
    """Sends calls to one server. Building it touches no network."""

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._http = httpx2.AsyncClient(
            headers={"accept": f"{JSON}, {EVENT_STREAM}", **(headers or {})},
            transport=transport,
            timeout=_timeout(_ANSWER_SECONDS_MAX),
            # A proxy has no business between two processes of one machine.
            trust_env=not is_loopback(base_url),
        )

    async def bare(self, method: str, path: str, **call: Unpack[Call]) -> JsonValue:
        return decoded_object(await self.json(method, path, **call))

    async def data(self, method: str, path: str, **call: Unpack[Call]) -> JsonValue:
        return data_of(await self.bare(method, path, **call))

    async def items(self, method: str, path: str, **call: Unpack[Call]) -> tuple[JsonValue, ...]:
        return items_of(await self.bare(method, path, **call))

    async def page(self, method: str, path: str, **call: Unpack[Call]) -> Page[JsonValue]:
        return page_of(await self.bare(method, path, **call))

    async def history(self, method: str, path: str, **call: Unpack[Call]) -> History[JsonValue]:
        return history_of(await self.bare(method, path, **call))

    async def done(self, method: str, path: str, **call: Unpack[Call]) -> None:
        """A call that is answered with nothing."""
        response = await self._answer(method, path, call)
        if response.status_code != 204:
            raise unexpected(response)

    async def content(self, path: str, **call: Unpack[Call]) -> bytes:
        """An answer that is no JSON, byte by byte."""
        return (await self._answer("GET", path, call)).content

    async def json(self, method: str, path: str, **call: Unpack[Call]) -> bytes:
        """An answer that is JSON, not decoded yet."""
        return json_bytes(await self._answer(method, path, call))

    async def stream(self, path: str, **call: Unpack[Call]) -> AsyncGenerator[JsonValue]:
        """Events as they come. The request is made by the first step and closed with the last."""
        async for data in self.frames(path, **call):
            yield decoded_object(data)

    async def frames(self, path: str, **call: Unpack[Call]) -> AsyncGenerator[bytes]:
        """The data of each event, not decoded yet."""
        request = self._request("GET", path, call, seconds=_SILENCE_SECONDS_MAX)
        options = call.get("options")
        async with self._sent(request) as response:
            if response.status_code != 200:
                raise await failure(response)
            require_type(response, EVENT_STREAM)
            if options is not None and options.opened is not None:
                options.opened()
            async for frame in frames(response):
                yield frame.data

    def socket_url(self, path: str, *, query: Query) -> str:
        """Where a WebSocket is opened. The HTTP library has none: bring your own."""
        request = self._request("GET", path, Call(query=query), seconds=None)
        scheme = "wss" if request.url.scheme == "https" else "ws"
        return str(request.url.copy_with(scheme=scheme))

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _answer(self, method: str, path: str, call: Call) -> httpx2.Response:
        seconds = None if call.get("patient") else _ANSWER_SECONDS_MAX
        async with self._sent(self._request(method, path, call, seconds=seconds)) as response:
            if not response.is_success:
                raise await failure(response)
            with transport_errors():
                await response.aread()
            return response

    def _request(
        self, method: str, path: str, call: Call, *, seconds: float | None
    ) -> httpx2.Request:
        options = call.get("options")
        headers = dict(options.headers) if options else {}
        body = call.get("body")
        if body is not None:
            headers["content-type"] = JSON
        asked = {
            name: str(value) for name, value in call.get("query", {}).items() if value is not None
        }
        with transport_errors():
            return self._http.build_request(
                method,
                self._base_url + path,
                params=asked or None,
                content=None if body is None else codec.encode(_present(body)),
                headers=headers,
                timeout=_timeout(seconds),
            )

    @asynccontextmanager
    async def _sent(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Response]:
        with transport_errors():
            response = await self._http.send(request, stream=True)
        try:
            yield response
        finally:
            await response.aclose()


def _present(body: JsonObject | Payload) -> JsonObject | Payload:
    """The fields that were given. A payload leaves out the others by itself."""
    if isinstance(body, Payload):
        return body
    return {name: value for name, value in body.items() if value is not None}


def _timeout(answer_seconds: float | None) -> httpx2.Timeout:
    return httpx2.Timeout(
        connect=_CONNECT_SECONDS_MAX,
        read=answer_seconds,
        write=_ANSWER_SECONDS_MAX,
        pool=_CONNECT_SECONDS_MAX,
    )
