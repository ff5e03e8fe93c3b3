"""An Endpoint and its handler, joined: decode the request, call, put the result in its envelope.

The order of checks is part of the contract: the Session id's shape, that the Session exists, path
parameters, query, body. (Who is calling was asked before, in `app`.) This is the one place of the
server where any exception is caught: it is logged under a reference, and the client gets that.
"""

import logging
import os
from collections.abc import Awaitable, Mapping
from typing import Final, Literal, Protocol, TypeVar, cast

import msgspec

from perdure.protocol import problems, query
from perdure.protocol.endpoint import Endpoint
from perdure.schema import codec, ids
from perdure.schema.codec import JsonValue, Payload
from perdure.schema.errors import (
    DomainError,
    InvalidRequestError,
    SessionNotFoundError,
    UnknownError,
    UnsupportedMediaTypeError,
)
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationInfo
from perdure.schema.page import Page
from perdure.schema.value import Value
from perdure.server import response, streams, terminal_socket
from perdure.server.call import Call, Handler
from perdure.server.request import Request
from perdure.server.response import Reply
from perdure.server.services import Services
from perdure.server.settings import ServerSettings
from perdure.server.streams import Closing

PayloadT = TypeVar("PayloadT", bound=Payload)

logger: Final = logging.getLogger(__name__)
_SHOWN_CHARS_MAX: Final = 200


class Binding(Value, kw_only=True):
    endpoint: Endpoint
    handler: Handler


class AppContext(Protocol):
    """What every call is made in."""

    @property
    def services(self) -> Services: ...
    @property
    def settings(self) -> ServerSettings: ...
    @property
    def closing(self) -> Closing: ...


async def contained(reply: Awaitable[Reply]) -> Reply:
    """`reply`, or the failure that took its place."""
    try:
        return await reply
    except DomainError as error:
        return response.failure(error)
    except Exception:
        ref = f"err_{os.urandom(4).hex()}"
        logger.exception("request failed (%s)", ref)
        return response.failure(UnknownError(ref))


async def answer(
    binding: Binding, request: Request, params: Mapping[str, str], around: AppContext
) -> Reply:
    endpoint = binding.endpoint
    if endpoint.scope == "session":
        await _check_session(params["sessionID"], around.services)
    if endpoint.params is not None:
        _check_params(endpoint.params, params)
    asked = None if endpoint.query is None else query.decode(endpoint.query, request.fields)
    body = None if endpoint.body is None else await _body(endpoint, request, around.settings)
    call: Call[JsonValue, JsonValue] = Call(
        services=around.services,
        settings=around.settings,
        request=request,
        params=params,
        query=asked,
        body=body,
    )
    location = None
    if endpoint.success.kind == "location_data":
        location = await around.services.locations.info(call.location())
    return _reply(endpoint, await binding.handler(call), location, around)


def _reply(
    endpoint: Endpoint, result: JsonValue, location: LocationInfo | None, around: AppContext
) -> Reply:
    match endpoint.success.kind:
        case "data":
            return response.data(result)
        case "bare":
            return response.bare(result)
        case "page":
            return response.page(cast("Page[bytes]", result))
        case "history":
            items, has_more = result
            return response.history(items, has_more=has_more)
        case "durable_stream" | "live_stream" | "websocket" as kind:
            return _opened(kind, result, around)
        case "location_data":
            return response.located(location, result)
        case "content":
            return response.content(result)
        case "no_content":
            return response.NO_CONTENT


def _opened(
    kind: Literal["durable_stream", "live_stream", "websocket"],
    result: JsonValue,
    around: AppContext,
) -> Reply:
    """What goes on for longer than an answer does."""
    pace = streams.StreamSettings(around.settings.heartbeat_seconds, around.closing)
    match kind:
        case "durable_stream":
            return streams.durable(result, pace)
        case "live_stream":
            return streams.live(result, around.services.ids, pace)
        case "websocket":
            return terminal_socket.connected(result, pace)


async def _check_session(text: str, services: Services) -> None:
    if not ids.well_formed("ses", text):
        raise InvalidRequestError("Invalid session ID", field="sessionID")
    if not await services.sessions.exists(SessionID(text)):
        raise SessionNotFoundError(SessionID(text))


def _check_params(kind: type[Payload], params: Mapping[str, str]) -> None:
    try:
        codec.convert(kind, params)
    except msgspec.ValidationError as error:
        message = problems.explain(kind, dict(params)) or str(error)
        raise InvalidRequestError(message, kind="Params") from error


async def _body(endpoint: Endpoint, request: Request, settings: ServerSettings) -> Payload:
    assert endpoint.body is not None
    data = await request.body(bytes_max=settings.body_bytes_max)
    _check_media_type(request, empty=not data)
    if data:
        return decode_body(endpoint.body, data)
    if endpoint.body_optional:
        return decode_body(endpoint.body, b"{}")
    raise InvalidRequestError("Expected object, got undefined", kind="Payload")


def _check_media_type(request: Request, *, empty: bool) -> None:
    """Only JSON, and said so: a page can send any other type without asking us first."""
    sent = request.header(b"content-type")
    if sent is None and empty:
        return
    if (sent or "").partition(";")[0].strip().lower() != "application/json":
        shown = "none" if sent is None else sent[:_SHOWN_CHARS_MAX]
        raise UnsupportedMediaTypeError(f"Unsupported content-type: {shown}")
    encoding = request.header(b"content-encoding")
    if encoding is not None and encoding.strip().lower() != "identity":
        raise UnsupportedMediaTypeError("Unsupported content-encoding")


def decode_body(kind: type[PayloadT], data: bytes) -> PayloadT:
    """The typed body, or an InvalidRequestError that names every fault."""
    try:
        return codec.decode(kind, data)
    except msgspec.ValidationError as error:
        message = problems.explain(kind, _loose(data)) or str(error)
        raise InvalidRequestError(message, kind="Payload") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(error) from error


def _loose(data: bytes) -> JsonValue:
    try:
        return codec.decode_any(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(error) from error


def _malformed(error: Exception) -> InvalidRequestError:
    return InvalidRequestError(f"Malformed JSON: {str(error)[:_SHOWN_CHARS_MAX]}", kind="Payload")
