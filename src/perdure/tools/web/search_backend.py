"""Web search services behind one protocol. Two are built in, described as data.

Both speak JSON-RPC over HTTP and answer with JSON or with an event stream.
location.tools.web_access chooses one.

Invariant: a key is sent only to its own service, in a header, and appears nowhere else, even if
the service echoes it.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Literal, Protocol

import msgspec

from perdure.core import limits
from perdure.net import sse
from perdure.net.transport import HttpRequest, HttpResponse, HttpTransport, TransportError
from perdure.schema import codec
from perdure.schema.codec import JsonObject, Record
from perdure.schema.ids import SessionID
from perdure.schema.value import Confidential, Value

LiveCrawl = Literal["fallback", "preferred"]
SearchType = Literal["auto", "fast", "deep"]


class SearchQuery(Value, kw_only=True):
    text: str
    session_id: SessionID
    results: int
    live_crawl: LiveCrawl
    type: SearchType
    context_chars_max: int | None


class SearchError(Exception):
    """The search failed; the message is shown to the model."""


class SearchBackend(Protocol):
    @property
    def name(self) -> str: ...

    async def search(self, query: SearchQuery) -> str:
        """The results as text; empty when there are none. Raises SearchError."""
        ...


ChooseBackend = Callable[[SessionID], SearchBackend | None]
"""Chooses the service for a Session; None when there is none."""


class SearchService(Value, kw_only=True):
    """A service that accepts `tools/call`: its URL, key and arguments."""

    name: str
    url: str
    tool: str
    key_variable: str
    """The environment variable that holds the user's key."""
    key_header: str
    key_prefix: str = ""
    arguments: Callable[[SearchQuery], JsonObject]


class JsonRpcSearch(Confidential, kw_only=True):
    """The SearchBackend of one service. Without a key the service decides what it returns."""

    service: SearchService
    transport: HttpTransport
    key: str = ""

    @property
    def name(self) -> str:
        return self.service.name

    async def search(self, query: SearchQuery) -> str:
        try:
            async with (
                asyncio.timeout(limits.WEB_SEARCH_SECONDS_MAX),
                self.transport.open(self._request(query)) as answer,
            ):
                text = _result(await _answer(answer))
        except TimeoutError as error:
            seconds = limits.WEB_SEARCH_SECONDS_MAX
            raise SearchError(f"{self.name} did not answer within {seconds} s") from error
        except (TransportError, SearchError) as error:
            # Not chained: the cause may repeat the key, and a traceback would show it.
            raise SearchError(self._without_key(f"{self.name}: {error}")) from None
        return self._without_key(text)

    def _request(self, query: SearchQuery) -> HttpRequest:
        service = self.service
        call = {"name": service.tool, "arguments": service.arguments(query)}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        }
        if self.key:
            headers[service.key_header] = f"{service.key_prefix}{self.key}"
        return HttpRequest(url=service.url, headers=headers, body=(codec.encode(body),))

    def _without_key(self, text: str) -> str:
        return text.replace(self.key, "(key)") if self.key else text


def _exa_arguments(query: SearchQuery) -> JsonObject:
    arguments: JsonObject = {
        "query": query.text,
        "type": query.type,
        "numResults": query.results,
        "livecrawl": query.live_crawl,
    }
    if query.context_chars_max is not None:
        arguments["contextMaxCharacters"] = query.context_chars_max
    return arguments


def _parallel_arguments(query: SearchQuery) -> JsonObject:
    return {
        "objective": query.text,
        "search_queries": [query.text],
        "session_id": query.session_id,
    }


EXA: Final = SearchService(
    name="exa",
    url="https://mcp.exa.ai/mcp",
    tool="web_search_exa",
    key_variable="EXA_API_KEY",
    key_header="x-api-key",
    arguments=_exa_arguments,
)
PARALLEL: Final = SearchService(
    name="parallel",
    url="https://search.parallel.ai/mcp",
    tool="web_search",
    key_variable="PARALLEL_API_KEY",
    key_header="authorization",
    key_prefix="Bearer ",
    arguments=_parallel_arguments,
)
SERVICES: Final = (EXA, PARALLEL)


class _Part(Record, frozen=True):
    type: str = ""
    text: str = ""


class _Result(Record, frozen=True):
    content: tuple[_Part, ...] = ()
    is_error: bool = False


class _Problem(Record, frozen=True):
    message: str = ""


class _Response(Record, frozen=True):
    """The response to a call. A notification has neither field."""

    result: _Result | None = None
    error: _Problem | None = None


async def _answer(answer: HttpResponse) -> _Response:
    if answer.status != 200:
        raise SearchError(f"the service answered {answer.status}")
    body = bytearray()
    async for piece in answer.chunks:
        body += piece
        if len(body) > limits.WEB_SEARCH_BYTES_MAX:
            raise SearchError(f"the answer is larger than {limits.WEB_SEARCH_BYTES_MAX} bytes")
    streamed = answer.headers.get("content-type", "").startswith("text/event-stream")
    for message in _events(bytes(body)) if streamed else [bytes(body)]:
        response = _decode(message)
        if response.result is not None or response.error is not None:
            return response
    raise SearchError("the answer holds no result")


def _events(body: bytes) -> list[bytes]:
    # The last event counts even without the empty line after it.
    reader = sse.Reader(bytes_max=limits.WEB_SEARCH_BYTES_MAX)
    return [frame.data for frame in reader.feed(body + b"\n\n")]


def _decode(message: bytes) -> _Response:
    try:
        return codec.decode(_Response, message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SearchError("the answer is not what a search gives") from error


def _result(response: _Response) -> str:
    if response.error is not None:
        raise SearchError(response.error.message[:500] or "the search failed")
    assert response.result is not None
    texts = [part.text for part in response.result.content if part.type == "text"]
    text = "\n\n".join(filter(None, texts))
    if response.result.is_error:
        raise SearchError(text[:500] or "the search failed")
    return text
