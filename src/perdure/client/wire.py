"""One call over HTTP: spelled, sent, read, and every failure told as one of two kinds.

Nothing is retried and nothing reconnects. What the operations are called and take stands in the
groups; here a path, a query and a body are enough.

Invariant: no exception of the HTTP library leaves this module.
"""

from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Final, cast
from urllib.parse import quote, urlsplit

import httpx2
import msgspec

from perdure.client.errors import ClientError, DeclaredError
from perdure.schema import codec, sse
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Confidential

_CONNECT_SECONDS_MAX: Final = 10
_ANSWER_SECONDS_MAX: Final = 60
_SILENCE_SECONDS_MAX: Final = 60
"""The server sends something every fifteen seconds; four times that is a dead connection."""
_FRAME_BYTES_MAX: Final = 128 * 1024 * 1024
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_JSON: Final = "application/json"
_EVENT_STREAM: Final = "text/event-stream"

Query = Mapping[str, str | int | None]


class CallOptions(Confidential, kw_only=True):
    """How one call is made, apart from what it asks."""

    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])


def segment(value: str) -> str:
    """`value` as one segment of a path, whatever it holds."""
    # A bare dot would be folded away as a path, and the call go somewhere else.
    return quote(value, safe="").replace(".", "%2E")


def is_loopback(url: str) -> bool:
    return (urlsplit(url).hostname or "") in _LOOPBACK


class Wire:
    """Sends calls to one server. Building it touches no network."""

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None,
        transport: httpx2.AsyncBaseTransport | None,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._http = httpx2.AsyncClient(
            headers={"accept": f"{_JSON}, {_EVENT_STREAM}", **(headers or {})},
            transport=transport,
            timeout=_timeout(_ANSWER_SECONDS_MAX),
            # A proxy has no business between two processes of one machine.
            trust_env=not is_loopback(base_url),
        )

    async def get(
        self, path: str, query: Query | None = None, *, options: CallOptions | None = None
    ) -> JsonObject:
        return _json_object(await self._answer("GET", path, query=query, options=options))

    async def post(
        self, path: str, body: JsonObject, *, options: CallOptions | None = None
    ) -> JsonObject:
        return _json_object(await self._answer("POST", path, body=body, options=options))

    async def command(
        self,
        path: str,
        body: JsonObject | None = None,
        *,
        patient: bool = False,
        options: CallOptions | None = None,
    ) -> None:
        """A call that is answered with nothing. `patient`: the answer may take for ever."""
        response = await self._answer("POST", path, body=body, patient=patient, options=options)
        if response.status_code != 204:
            raise _unexpected(response)

    async def delete(self, path: str, *, options: CallOptions | None = None) -> None:
        response = await self._answer("DELETE", path, options=options)
        if response.status_code != 204:
            raise _unexpected(response)

    async def stream(
        self, path: str, query: Query | None = None, *, options: CallOptions | None = None
    ) -> AsyncGenerator[JsonObject]:
        """Events as they come. The request is made by the first step and closed with the last."""
        timeout = _timeout(_SILENCE_SECONDS_MAX)
        request = self._request("GET", path, query=query, timeout=timeout, options=options)
        async with self._sent(request) as response:
            if response.status_code != 200:
                raise await _failure(response)
            _require_type(response, _EVENT_STREAM)
            async for frame in _frames(response):
                yield _event(frame)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _answer(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: JsonObject | None = None,
        patient: bool = False,
        options: CallOptions | None = None,
    ) -> httpx2.Response:
        timeout = _timeout(None if patient else _ANSWER_SECONDS_MAX)
        request = self._request(
            method, path, query=query, body=body, timeout=timeout, options=options
        )
        async with self._sent(request) as response:
            if not response.is_success:
                raise await _failure(response)
            with _transport_errors():
                await response.aread()
            return response

    def _request(
        self,
        method: str,
        path: str,
        *,
        timeout: httpx2.Timeout,
        query: Query | None = None,
        body: JsonObject | None = None,
        options: CallOptions | None = None,
    ) -> httpx2.Request:
        headers = dict(options.headers) if options else {}
        if body is not None:
            headers["content-type"] = _JSON
        asked = {name: str(value) for name, value in (query or {}).items() if value is not None}
        with _transport_errors():
            return self._http.build_request(
                method,
                self._base_url + path,
                params=asked or None,
                content=None if body is None else codec.encode(body),
                headers=headers,
                timeout=timeout,
            )

    @asynccontextmanager
    async def _sent(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Response]:
        with _transport_errors():
            response = await self._http.send(request, stream=True)
        try:
            yield response
        finally:
            await response.aclose()


def present(fields: JsonObject) -> JsonObject:
    """The fields that were given."""
    return {name: value for name, value in fields.items() if value is not None}


def data_of(envelope: JsonObject) -> JsonValue:
    """What `{data}` holds."""
    try:
        return envelope["data"]
    except KeyError as error:
        raise ClientError("malformed-response", "The answer holds no `data`") from error


def items_of(envelope: JsonObject) -> tuple[JsonObject, ...]:
    data = data_of(envelope)
    if not isinstance(data, list):
        raise ClientError("malformed-response", "`data` of the answer is not a list")
    return tuple(cast("list[JsonObject]", data))


def _timeout(answer_seconds: float | None) -> httpx2.Timeout:
    return httpx2.Timeout(
        connect=_CONNECT_SECONDS_MAX,
        read=answer_seconds,
        write=_ANSWER_SECONDS_MAX,
        pool=_CONNECT_SECONDS_MAX,
    )


@contextmanager
def _transport_errors() -> Generator[None]:
    try:
        yield
    except (httpx2.RequestError, httpx2.InvalidURL, httpx2.StreamError) as error:
        message = str(error) or type(error).__name__
        raise ClientError("transport", message) from error


async def _frames(response: httpx2.Response) -> AsyncGenerator[sse.Frame]:
    reader = sse.Reader(bytes_max=_FRAME_BYTES_MAX)
    chunks = response.aiter_bytes()
    while True:
        with _transport_errors():
            chunk = await anext(chunks, None)
        if chunk is None:
            return
        try:
            for frame in reader.feed(chunk):
                yield frame
        except sse.FrameTooLargeError as error:
            raise ClientError("malformed-response", str(error)) from error


def _event(frame: sse.Frame) -> JsonObject:
    return _decoded_object(frame.data, status=200)


async def _failure(response: httpx2.Response) -> DeclaredError | ClientError:
    """What an answer other than success means."""
    with _transport_errors():
        body = await response.aread()
    try:
        value = _decoded_object(body, status=response.status_code)
    except ClientError:
        # A proxy's page, most likely. The status says more than that it is no JSON.
        return _unexpected(response)
    if not isinstance(value.get("_tag"), str):
        return _unexpected(response)
    return DeclaredError(value, status=response.status_code)


def _unexpected(response: httpx2.Response) -> ClientError:
    status = response.status_code
    return ClientError("unexpected-status", f"Unexpected status {status}", status=status)


def _json_object(response: httpx2.Response) -> JsonObject:
    if response.status_code != 200:
        raise _unexpected(response)
    _require_type(response, _JSON)
    return _decoded_object(response.content, status=200)


def _decoded_object(data: bytes, *, status: int) -> JsonObject:
    try:
        value = codec.decode_any(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = "The answer is not the JSON that it claims to be"
        raise ClientError("malformed-response", message, status=status) from error
    if not isinstance(value, dict):
        raise ClientError("malformed-response", "The answer is not an object", status=status)
    return cast("JsonObject", value)


def _require_type(response: httpx2.Response, wanted: str) -> None:
    found = _content_type(response)
    if found != wanted:
        raise ClientError(
            "unsupported-content-type",
            f"Expected {wanted}, got {found or 'no content type'}",
            status=response.status_code,
        )


def _content_type(response: httpx2.Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()
