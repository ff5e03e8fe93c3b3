"""Sends one call and reads its answer; every failure is a WireError or a ClientError.

Nothing is retried and nothing reconnects. The generated groups name the operations and their
parameters; a call here is a path, a query and a body. The transport carries it.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, Final, TypedDict, Union, Unpack, overload
from urllib.parse import quote, urlencode

import msgspec

from perdure.client.errors import ClientError
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
from perdure.schema.models.model import ModelRef
from perdure.schema.page import Page
from perdure.schema.value import Confidential

if TYPE_CHECKING:
    import httpx2

    from perdure.schema.live_event import SessionReplayed

_ANSWER_SECONDS_MAX: Final = 60
_SILENCE_SECONDS_MAX: Final = 60
"""The server sends something every fifteen seconds; four times that is a dead connection."""

_REPLAYED: Final = b"session.replayed"
"""The name of the event that ends the replay of a durable stream."""

Query = Mapping[str, str | int | None]
AnyTransport = Union["httpx2.AsyncBaseTransport", Transport]
"""How requests reach the server: a transport of the HTTP library, or one that replaces it."""


class CallOptions(Confidential, kw_only=True):
    """How one call is made, apart from what it asks."""

    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    opened: Callable[[], None] | None = None
    """Called when a stream is answered, before its first event."""
    replayed: "Callable[[SessionReplayed], None] | None" = None
    """Called when a durable stream has told all that was stored; what follows is new."""


class Call(TypedDict, total=False):
    """What a call carries besides its method and its path."""

    query: Query
    body: JsonObject | Payload
    patient: bool
    """Whether the answer may take for ever."""
    options: CallOptions | None


def segment(value: str) -> str:
    """`value` quoted as one segment of a path."""
    # HTTP libraries drop the segments `.` and `..`, so that the call would reach another path.
    return quote(value, safe="").replace(".", "%2E")


def either(whole: JsonValue, make: Callable[..., JsonValue], **part: str | None) -> JsonValue:
    """`whole` if it is given, else `make` called with its one usual part."""
    ((name, value),) = part.items()
    if (whole is None) == (value is None):
        raise TypeError(f"give exactly one of `{name}` and the value that `{name}` is a part of")
    return make(**part) if whole is None else whole


@overload
def as_model(model: ModelRef | str) -> ModelRef: ...
@overload
def as_model(model: ModelRef | str | None) -> ModelRef | None: ...
def as_model(model: ModelRef | str | None) -> ModelRef | None:
    """A model that a caller may have given by its name; raises ValueError for a bad name."""
    return ModelRef.parse(model) if isinstance(model, str) else model


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
        """A call whose answer has no body."""
        answer = await self._answer(method, path, call)
        if answer.status != 204:
            raise unexpected(answer.status)

    async def content(self, path: str, **call: Unpack[Call]) -> bytes:
        """The bytes of an answer that is not JSON."""
        return (await self._answer("GET", path, call)).body

    async def json(self, method: str, path: str, **call: Unpack[Call]) -> bytes:
        """The bytes of a JSON answer, not decoded yet."""
        return json_bytes(await self._answer(method, path, call))

    async def stream(self, path: str, **call: Unpack[Call]) -> AsyncGenerator[JsonValue]:
        """Events as they come. The request is made by the first step and closed with the last."""
        async for data in self.frames(path, **call):
            yield decoded_object(data)

    async def frames(self, path: str, **call: Unpack[Call]) -> AsyncGenerator[bytes]:
        """The data of each event, not decoded yet."""
        options = call.get("options")
        if options is not None and options.replayed is not None:
            call["query"] = {**call.get("query", {}), "replayed": "true"}
        outgoing = self._outgoing("GET", path, call, seconds_max=_SILENCE_SECONDS_MAX)
        incoming = await self._transport.send(outgoing)
        try:
            if incoming.status != 200:
                raise failure(await whole(incoming))
            require_type(incoming, EVENT_STREAM)
            if options is not None and options.opened is not None:
                options.opened()
            async for frame in frames(incoming):
                if frame.event != _REPLAYED:
                    yield frame.data
                elif options is not None and options.replayed is not None:
                    options.replayed(_replayed(frame.data))
        finally:
            await incoming.aclose()

    def socket_url(self, path: str, *, query: Query) -> str:
        """The address of a WebSocket. Transports open none: use a WebSocket library."""
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


def _replayed(data: bytes) -> "SessionReplayed":
    # Few callers ask for it, and the events are many modules.
    from perdure.schema.live_event import SessionReplayed

    try:
        return codec.convert(SessionReplayed, decoded_object(data)["data"])
    except (KeyError, msgspec.ValidationError) as error:
        raise ClientError("malformed-response", f"The answer does not fit: {error}") from error


def _target(path: str, query: Query) -> str:
    asked = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(asked)}" if asked else path


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _present(body: JsonObject | Payload) -> JsonObject | Payload:
    """The fields that were given; a payload omits the others when it is encoded."""
    if isinstance(body, Payload):
        return body
    return {name: value for name, value in body.items() if value is not None}
