"""One call: spelled, sent, read, and every failure told as one of two kinds.

Nothing is retried and nothing reconnects. What the operations are called and take stands in the
generated groups; here a path, a query and a body are enough. How it travels is up to the transport.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, Final, TypedDict, Union, Unpack
from urllib.parse import quote, urlencode

import msgspec

from perdure.client.pages import History, data_of, history_of, items_of, page_of
from perdure.client.responses import (
    EVENT_STREAM,
    JSON,
    Answer,
    decoded_object,
    failure,
    frames,
    json_bytes,
    require_type,
    unexpected,
    whole,
)
from perdure.client.transport import Request, Transport
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue, Payload
from perdure.schema.page import Page
from perdure.schema.value import Confidential

if TYPE_CHECKING:
    import httpx2

_ANSWER_SECONDS_MAX: Final = 60
_SILENCE_SECONDS_MAX: Final = 60
"""The server sends something every fifteen seconds; four times that is a dead connection."""

Query = Mapping[str, str | int | None]
AnyTransport = Union["httpx2.AsyncBaseTransport", Transport]
"""How requests reach the server: a transport of the HTTP library, or one that replaces it."""


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
        transport: AnyTransport | None = None,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._headers = {"accept": f"{JSON}, {EVENT_STREAM}", **_lowered(headers or {})}
        if isinstance(transport, Transport):
            self._transport: Transport = transport
        else:
            # Only a client that connects loads the HTTP library; an embedded host does not.
            from perdure.client.http_transport import HttpTransport

            self._transport = HttpTransport(self._base_url, transport)

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
        answer = await self._answer(method, path, call)
        if answer.status != 204:
            raise unexpected(answer.status)

    async def content(self, path: str, **call: Unpack[Call]) -> bytes:
        """An answer that is no JSON, byte by byte."""
        return (await self._answer("GET", path, call)).body

    async def json(self, method: str, path: str, **call: Unpack[Call]) -> bytes:
        """An answer that is JSON, not decoded yet."""
        return json_bytes(await self._answer(method, path, call))

    async def stream(self, path: str, **call: Unpack[Call]) -> AsyncGenerator[JsonValue]:
        """Events as they come. The request is made by the first step and closed with the last."""
        async for data in self.frames(path, **call):
            yield decoded_object(data)

    async def frames(self, path: str, **call: Unpack[Call]) -> AsyncGenerator[bytes]:
        """The data of each event, not decoded yet."""
        outgoing = self._outgoing("GET", path, call, seconds_max=_SILENCE_SECONDS_MAX)
        options = call.get("options")
        incoming = await self._transport.send(outgoing)
        try:
            if incoming.status != 200:
                raise failure(await whole(incoming))
            require_type(incoming, EVENT_STREAM)
            if options is not None and options.opened is not None:
                options.opened()
            async for frame in frames(incoming):
                yield frame.data
        finally:
            await incoming.aclose()

    def socket_url(self, path: str, *, query: Query) -> str:
        """Where a WebSocket is opened. Carriers have none: bring your own."""
        scheme, _, rest = self._base_url.partition("://")
        return f"{scheme.lower().replace('http', 'ws')}://{rest}{_target(path, query)}"

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def _answer(self, method: str, path: str, call: Call) -> Answer:
        seconds = None if call.get("patient") else _ANSWER_SECONDS_MAX
        outgoing = self._outgoing(method, path, call, seconds_max=seconds)
        incoming = await self._transport.send(outgoing)
        try:
            answer = await whole(incoming)
        finally:
            await incoming.aclose()
        if not 200 <= answer.status < 300:
            raise failure(answer)
        return answer

    def _outgoing(
        self, method: str, path: str, call: Call, *, seconds_max: float | None
    ) -> Request:
        options, body = call.get("options"), call.get("body")
        headers = self._headers if options is None else self._headers | _lowered(options.headers)
        if body is not None:
            headers = headers | {"content-type": JSON}
        return Request(
            method=method,
            target=_target(path, call.get("query", {})),
            headers=headers,
            body=None if body is None else codec.encode(_present(body)),
            silence_seconds_max=seconds_max,
        )


def _target(path: str, query: Query) -> str:
    asked = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(asked)}" if asked else path


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _present(body: JsonObject | Payload) -> JsonObject | Payload:
    """The fields that were given. A payload leaves out the others by itself."""
    if isinstance(body, Payload):
        return body
    return {name: value for name, value in body.items() if value is not None}
