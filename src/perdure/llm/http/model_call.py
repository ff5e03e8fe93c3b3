"""A model call over HTTP: encode, post, read frames, step the wire protocol.

Each chunk of the body gives one batch of events. Failures become LLMError, bounded and free of the
route's secrets. Retries are core.session.retry; recording is core.session.turn_recorder.

Invariant: one call is one request.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing, suppress
from typing import Final, Protocol, TypeVar

from msgspec.structs import replace

from perdure.llm.encoding import shared, wire_protocol
from perdure.llm.encoding.wire_protocol import ModelFacts, WireProtocol
from perdure.llm.error import LLMError
from perdure.llm.event import Finish, LLMEvent, ProviderError
from perdure.llm.http import call_limits, error_body, errors, reset_time
from perdure.llm.http.call_limits import AnswerUse, CallLimits
from perdure.llm.model_call import ModelCall
from perdure.llm.request import LLMRequest
from perdure.llm.route import Route, ToolCallMode
from perdure.llm.tool_fallback import text_parser
from perdure.llm.tool_fallback.json_schema import with_json_schema
from perdure.llm.tool_fallback.text_calls import Read, with_text_calls
from perdure.net import sse
from perdure.net.transport import (
    HttpRequest,
    HttpResponse,
    HttpTransport,
    TransportError,
    UnreadableAnswerError,
)
from perdure.schema.codec import JsonObject

T = TypeVar("T")

PROTOCOL_OWNED: Final = frozenset(
    {
        "contents",
        "frequency_penalty",
        "generationConfig",
        "inferenceConfig",
        "input",
        "instructions",
        "max_completion_tokens",
        "max_output_tokens",
        "max_tokens",
        "messages",
        "model",
        "presence_penalty",
        "response_format",
        "seed",
        "stop",
        "stop_sequences",
        "stream",
        "system",
        "systemInstruction",
        "temperature",
        "thinking",
        "toolChoice",
        "toolConfig",
        "tool_choice",
        "tools",
        "topK",
        "topP",
        "top_k",
        "top_p",
    }
)
"""Body keys that only a wire protocol may write."""

_REQUIRED: Final = frozenset({"contents", "input", "messages", "model", "stream"})
"""Body keys without which there is no request."""

_PIECE_BYTES: Final = 64 * 1024

_ENDS: Final = frozenset({Finish, ProviderError})
_READERS: Final[Mapping[ToolCallMode, Read]] = {
    "printed": text_parser.parse_calls,
    "constrained": text_parser.parse_answer,
}


class CallClock(Protocol):
    """The clock that a call needs."""

    def now_millis(self) -> int: ...


DEFAULT_LIMITS: Final = CallLimits()


def model_call(
    route: Route,
    transport: HttpTransport,
    clock: CallClock,
    *,
    limits: CallLimits = DEFAULT_LIMITS,
) -> ModelCall:
    """A ModelCall that sends requests to `route` through `transport`."""
    if route.tool_calls == "constrained":
        route = replace(route, protocol=with_json_schema(route.protocol))
    call = _HttpModelCall(route, transport, clock, limits=limits)
    return (
        call if route.tool_calls == "native" else with_text_calls(call, _READERS[route.tool_calls])
    )


class _HttpModelCall:
    def __init__(
        self,
        route: Route,
        transport: HttpTransport,
        clock: CallClock,
        *,
        limits: CallLimits,
    ) -> None:
        self._route = route
        self._protocol = _with_overlay(route.protocol, route.body, route.removed)
        self._transport = transport
        self._clock = clock
        self._limits = limits
        self._secrets = _secrets_of(route)

    async def __call__(self, request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        http_request = self._http_request(request)
        began = asyncio.get_running_loop().time()
        async with AsyncExitStack() as stack:
            response, first = await self._answer(stack, http_request)
            if not _is_stream(response):
                yield self._recovered(response, first)
                return
            async with aclosing(self._events(response.chunks, first, began)) as batches:
                async for batch in batches:
                    yield batch

    def _http_request(self, request: LLMRequest) -> HttpRequest:
        route = self._route
        asked = replace(
            request,
            generation=request.generation.merge_over(route.generation),
            options=_deeply_merged(dict(route.options), dict(request.options)),
        )
        unsigned = HttpRequest(
            url=route.base_url.rstrip("/") + self._protocol.path(route.model.name),
            headers=self._headers(request),
            body=wire_protocol.encode(self._protocol, asked, route.model),
            connect_seconds_max=self._limits.connect_seconds_max,
        )
        return unsigned if route.sign is None else route.sign(unsigned)

    def _headers(self, request: LLMRequest) -> Mapping[str, str]:
        given = {**self._protocol.headers, **self._route.headers, **request.headers}
        headers = {name.lower(): value for name, value in given.items()}
        if self._route.credential is not None:
            name, value = self._route.credential.header()
            headers[name] = value
        headers["content-type"] = "application/json"
        headers["accept"] = self._protocol.accept
        return headers

    async def _answer(
        self, stack: AsyncExitStack, request: HttpRequest
    ) -> tuple[HttpResponse, bytes]:
        """The response with the first chunk of its stream, or with the body of a refusal."""
        async with AsyncExitStack() as attempt:
            try:
                response, first = await _within(
                    *self._limits.first_wait, self._begun(attempt, request)
                )
                if _is_stream(response):
                    if not first:
                        raise LLMError("transport", "The provider answered with an empty stream")
                    await stack.enter_async_context(attempt.pop_all())
                    return response, first
                return response, await self._refusal_body(response.chunks)
            except TransportError as error:
                raise self._transport_failure(error) from error

    def _recovered(self, response: HttpResponse, body: bytes) -> tuple[LLMEvent, ...]:
        """The answer that a refusal stands for. Raises LLMError if it is only a refusal."""
        events = self._protocol.recover(body) if self._protocol.recover else ()
        if not events:
            raise self._refusal(response, body)
        return events

    async def _events(
        self, chunks: AsyncIterator[bytes], first: bytes, began: float
    ) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        reader = self._protocol.frames(self._limits.frame_bytes_max)
        state = self._protocol.start()
        used = AnswerUse(self._limits, began)
        body = _Body(chunks, first)
        while piece := await self._next(body, used):
            used.count(len(piece))
            batch, error = self._step_all(state, reader.feed(piece))
            if batch:
                yield batch
                if type(batch[-1]) in _ENDS:
                    return
                # After the yield: the time that the reader of these events takes is not idle.
                used.hear(batch)
            if error is not None:
                raise error
        batch, error = self._step_all(state, reader.rest())
        if batch:
            yield batch
        if error is not None:
            raise error
        if not (batch and type(batch[-1]) in _ENDS):
            yield self._cleaned(self._protocol.finish(state))

    def _step_all(
        self, state: wire_protocol.State, frames: Iterable[bytes]
    ) -> tuple[tuple[LLMEvent, ...], LLMError | None]:
        """The events of these frames, and the error that ends the stream, if any."""
        events: list[LLMEvent] = []
        error: LLMError | None = None
        step = self._protocol.step
        try:
            for frame in frames:
                stepped = step(state, frame)
                if not stepped:
                    continue
                events += stepped
                if type(stepped[-1]) in _ENDS:
                    break
        except sse.FrameTooLargeError as too_large:
            error = LLMError("invalid-provider-output", str(too_large))
        except LLMError as refused:
            message = errors.clean_message(refused.message, self._secrets)
            wait = reset_time.find_wait_in_text(message, now_millis=self._clock.now_millis())
            error = LLMError(refused.reason, message, retry_after_ms=wait)
        return self._cleaned(tuple(events)), error

    def _cleaned(self, events: tuple[LLMEvent, ...]) -> tuple[LLMEvent, ...]:
        if events and isinstance(events[-1], ProviderError):
            message = errors.clean_message(events[-1].message, self._secrets)
            wait = reset_time.find_wait_in_text(message, now_millis=self._clock.now_millis())
            return (*events[:-1], replace(events[-1], message=message, retry_after_ms=wait))
        return events

    async def _begun(
        self, stack: AsyncExitStack, request: HttpRequest
    ) -> tuple[HttpResponse, bytes]:
        """The response, and the first chunk of its body if that is a stream."""
        response = await stack.enter_async_context(self._transport.open(request))
        return response, await anext(response.chunks, b"") if _is_stream(response) else b""

    async def _next(self, body: "_Body", used: AnswerUse) -> bytes:
        """The next piece of the body; empty at the end."""
        if body.has_piece:
            return await body.next()
        try:
            async with asyncio.timeout_at(used.deadline):
                return await body.next()
        except TimeoutError as error:
            raise used.overdue() from error
        except TransportError as error:
            raise self._transport_failure(error) from error

    async def _refusal_body(self, chunks: AsyncIterator[bytes]) -> bytes:
        body = bytearray()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.refusal_seconds_max):
                async for chunk in chunks:
                    body += chunk
                    if len(body) >= error_body.BODY_BYTES_MAX:
                        break
        return bytes(body[: error_body.BODY_BYTES_MAX])

    def _refusal(self, response: HttpResponse, body: bytes) -> LLMError:
        if 200 <= response.status < 300:
            detail = error_body.detail_of_body(body)
            text = errors.clean_message(detail.text, self._secrets)
            # Some servers report a failure with the status of success.
            reason = detail.reason() if error_body.is_error_body(body) else "unknown"
            return LLMError(
                "invalid-provider-output" if reason == "unknown" else reason,
                f"The provider did not answer with an event stream: {text}",
                status=response.status,
            )
        return errors.from_response(
            status=response.status,
            headers=response.headers,
            body=body,
            secrets=self._secrets,
            now_millis=self._clock.now_millis(),
        )

    def _transport_failure(self, error: TransportError) -> LLMError:
        reason = errors.clean_message(str(error), self._secrets)
        if isinstance(error, UnreadableAnswerError):
            message = f"The provider's answer cannot be read: {reason}"
            return LLMError("invalid-provider-output", message)
        return LLMError("transport", f"The connection to the provider failed: {reason}")


class _Body:
    """The body of an answer in pieces that are quick to step through."""

    def __init__(self, chunks: AsyncIterator[bytes], first: bytes) -> None:
        self._chunks = chunks
        self._chunk = first
        self._at = 0

    @property
    def has_piece(self) -> bool:
        """Whether the next piece has arrived."""
        return self._at < len(self._chunk)

    async def next(self) -> bytes:
        """The next piece; empty at the end. Other tasks run between those of a large chunk."""
        if not self.has_piece:
            self._chunk, self._at = await anext(self._chunks, b""), 0
        elif self._at:
            await asyncio.sleep(0)
        begin, self._at = self._at, self._at + _PIECE_BYTES
        return self._chunk[begin : self._at]


async def _within(seconds: float, limit: str, answer: Awaitable[T]) -> T:
    if not seconds:
        return await answer
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError as error:
        raise call_limits.silence(seconds, limit) from error


def _with_overlay(
    protocol: WireProtocol, overlay: JsonObject, removed: frozenset[str]
) -> WireProtocol:
    """The protocol with compatibility fields merged over its body, and some removed from it."""
    if not overlay and not removed:
        return protocol
    owned = sorted((PROTOCOL_OWNED & overlay.keys()) | (_REQUIRED & removed))

    def head(request: LLMRequest, facts: ModelFacts) -> JsonObject:
        if owned:
            names = ", ".join(owned)
            raise LLMError("invalid-request", f"The request body may not set {names}")
        body = _deeply_merged(protocol.head(request, facts), overlay)
        return {name: value for name, value in body.items() if _plain(name) not in unwanted}

    unwanted = frozenset(map(_plain, removed))
    return replace(protocol, head=head)


def _plain(name: str) -> str:
    """A field's name, however its words are divided."""
    return name.replace("_", "").lower()


def _deeply_merged(base: JsonObject, overlay: JsonObject) -> JsonObject:
    merged = dict(base)
    for name, value in overlay.items():
        below = merged.get(name)
        if shared.is_object(below) and shared.is_object(value):
            merged[name] = _deeply_merged(below, value)
        else:
            merged[name] = value
    return merged


def _secrets_of(route: Route) -> tuple[str, ...]:
    named = (value for name, value in route.headers.items() if errors.may_carry_secret(name))
    return (*named, route.credential.value) if route.credential is not None else tuple(named)


def _is_stream(response: HttpResponse) -> bool:
    # Some servers send streams with another type, but never with these two.
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return 200 <= response.status < 300 and kind not in ("application/json", "text/html")
