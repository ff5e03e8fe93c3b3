"""Dispatch: decode the request, call the handler, encode its result.

The order of the checks is part of the contract: the shape of the Session id, that the Session
exists, path parameters, query, body, Location. The guard in `app` has run before.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from perdure.ports.offload import offload
from perdure.protocol import ag_ui, problems, query, unknown_fields
from perdure.protocol.endpoint import Endpoint, OtherBody
from perdure.schema import codec, ids, json_values
from perdure.schema.codec import Payload
from perdure.schema.errors import InvalidRequestError, UnsupportedMediaTypeError
from perdure.schema.files.fs import FileContent
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationRef
from perdure.schema.value import Value
from perdure.server import location_context, response, streams, terminal_socket
from perdure.server.binding import Binding, Decoded
from perdure.server.call import Call
from perdure.server.request import Request
from perdure.server.response import Reply, Response
from perdure.server.results import (
    DurableStream,
    EncodedHistory,
    EncodedPage,
    LiveStream,
    NoContent,
    TerminalConnection,
)
from perdure.server.settings import ServerSettings
from perdure.server.streams import StreamSettings

if TYPE_CHECKING:
    from perdure.runtime.app.runtime import Runtime

PayloadT = TypeVar("PayloadT", bound=Payload)

_SHOWN_CHARS_MAX: Final = 200
_OPEN: Final = frozenset({"v1", ag_ui.GROUP})
"""Groups whose bodies may have fields that are not known here."""


class AppContext(Value):
    """What all requests of one app share."""

    runtime: "Runtime"
    settings: ServerSettings
    closing: asyncio.Event
    """Set once, when the server begins to shut down."""


async def dispatch(
    bound: Binding, request: Request, params: Mapping[str, str], context: AppContext
) -> Reply:
    """The answer of the handler. Raises the DomainErrors that the Endpoint declares."""
    endpoint, runtime, settings = bound.endpoint, context.runtime, context.settings
    found = None
    if endpoint.scope == "session":
        found = await _find_session(params["sessionID"], runtime)
    if endpoint.params is not None:
        _check_params(endpoint.params, params)
    asked = None if endpoint.query is None else query.decode(endpoint.query, request.fields)
    body = None if endpoint.body is None else await _read_body(endpoint, request, settings)
    location = None
    if endpoint.success.kind == "location_data":
        found = location_context.resolve(request, default_directory=settings.default_directory)
        location = await runtime.locations.info(found)
    call: Call[Decoded, Decoded] = Call(
        runtime=runtime,
        settings=settings,
        request=request,
        params=params,
        query=asked,
        body=body,
        found=found,
    )
    result = await bound.handler(call)
    if location is not None:
        return response.located(location, result)
    return _encode(endpoint, result, context)


def _encode(endpoint: Endpoint, result: object, context: AppContext) -> Reply:
    """The answer that carries `result`, whose type `binding` has checked."""
    settings = StreamSettings(context.settings.heartbeat_seconds, context.closing)
    match result:
        case None:
            return response.NO_CONTENT
        case NoContent(headers=headers):
            return Response(204, b"", headers)
        case EncodedPage(items=items, previous=previous, next=following):
            return response.page(items, previous=previous, next=following)
        case EncodedHistory(items=items, has_more=has_more):
            return response.history(items, has_more=has_more)
        case FileContent():
            return response.content(result)
        case DurableStream(frames=frames):
            return streams.durable(frames, settings)
        case LiveStream(subscribe=subscribe, framing=framing):
            return streams.live(subscribe, context.runtime.ids, settings, framing)
        case TerminalConnection(attach=attach):
            return terminal_socket.connect(attach, settings)
        case _ if endpoint.success.kind == "data":
            return response.data(result)
        case _:
            return response.bare(result)


async def _find_session(text: str, runtime: "Runtime") -> LocationRef:
    """Where the Session works; raises SessionNotFoundError when it does not exist."""
    if not ids.well_formed("ses", text):
        raise InvalidRequestError("Invalid session ID", field="sessionID")
    return await runtime.sessions.require_location(SessionID(text))


def _check_params(kind: type[Payload], params: Mapping[str, str]) -> None:
    try:
        codec.convert(kind, params)
    except msgspec.ValidationError as error:
        message = problems.explain(kind, dict(params)) or str(error)
        raise InvalidRequestError(message, kind="Params") from error


async def _read_body(endpoint: Endpoint, request: Request, settings: ServerSettings) -> Payload:
    assert endpoint.body is not None
    data = await request.body(bytes_max=settings.body_bytes_max)
    _check_media_type(request, empty=not data)
    if await offload(len(data), lambda: json_values.is_too_many(data)):
        raise InvalidRequestError(
            f"The body has more than {json_values.JSON_VALUES_MAX} JSON values", kind="Payload"
        )
    if data:
        return _decode_strictly(endpoint, data)
    if endpoint.body_optional:
        return decode_body(endpoint.body, b"{}")
    raise InvalidRequestError("Expected object, got undefined", kind="Payload")


def _check_media_type(request: Request, *, empty: bool) -> None:
    """Accept only what is declared as JSON: a web page may send any other type without asking."""
    sent = request.header(b"content-type")
    if sent is None and empty:
        return
    if (sent or "").partition(";")[0].strip().lower() != "application/json":
        shown = "none" if sent is None else sent[:_SHOWN_CHARS_MAX]
        raise UnsupportedMediaTypeError(f"Unsupported content-type: {shown}")
    encoding = request.header(b"content-encoding")
    if encoding is not None and encoding.strip().lower() != "identity":
        raise UnsupportedMediaTypeError("Unsupported content-encoding")


def _decode_strictly(endpoint: Endpoint, data: bytes) -> Payload:
    """The body of the endpoint, or its other form; V2 refuses fields that it does not have."""
    assert endpoint.body is not None
    kind: type = endpoint.body
    try:
        body = decode_body(endpoint.body, data)
    except InvalidRequestError:
        other = _decode_other(endpoint.other_body, data)
        if other is None:
            raise
        kind, body = type(other), other.to_body()
    if endpoint.group not in _OPEN and (
        unknown := unknown_fields.describe(kind, _decode_untyped(data))
    ):
        raise InvalidRequestError(unknown, kind="Payload")
    return body


def _decode_other(kind: type[OtherBody] | None, data: bytes) -> OtherBody | None:
    if kind is None:
        return None
    try:
        codec.require_shallow(data)
        return codec.decode(kind, data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def decode_body(kind: type[PayloadT], data: bytes) -> PayloadT:
    """The typed body, or an InvalidRequestError that names every fault."""
    try:
        codec.require_shallow(data)
        return codec.decode(kind, data)
    except msgspec.ValidationError as error:
        message = problems.explain(kind, _decode_untyped(data)) or str(error)
        raise InvalidRequestError(message, kind="Payload") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(error) from error


def _decode_untyped(data: bytes) -> object:
    try:
        return codec.decode_any(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(error) from error


def _malformed(error: Exception) -> InvalidRequestError:
    return InvalidRequestError(f"Malformed JSON: {str(error)[:_SHOWN_CHARS_MAX]}", kind="Payload")
