"""An Anthropic Messages call over real sockets: what is sent, and what comes of each answer."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from perdure.host.http import HttptoolsTransport
from perdure.llm import client
from perdure.llm.error import LLMError
from perdure.llm.event import LLMEvent, ProviderError, TextDelta
from perdure.llm.message import LLMMessage, TextPart, runs_of
from perdure.llm.model_call import ModelCall
from perdure.llm.protocols.anthropic_messages import ANTHROPIC_MESSAGES
from perdure.llm.request import LLMRequest
from perdure.llm.route import Credential, Route
from perdure.llm.wire_protocol import ModelFacts
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.model import ModelRef
from perdure.testing import ManualClock
from tests.contract.host.loopback import Answer, Loopback, Received, response, serving
from tests.contract.llm.anthropic_messages.recordings import (
    EVERYTHING,
    begin,
    body_of,
    error,
    step_all,
    text,
)

SECRET = "canary-5f2e9c"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
REQUEST = LLMRequest(
    model=ModelRef(id="m", provider_id="p"),
    system=("s",),
    runs=runs_of((LLMMessage("user", (TextPart("hi"),)),)),
)


class ImpatientClock(ManualClock):
    """Every sleep is over at once."""

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)


@asynccontextmanager
async def calling(*raw: bytes) -> AsyncGenerator[tuple[ModelCall, Loopback]]:
    """A call to a server that gives one answer for each request."""
    transport = HttptoolsTransport()
    async with asyncio.timeout(30), serving(_answers(*raw)) as server:
        route = Route(
            protocol=ANTHROPIC_MESSAGES,
            base_url=f"{server.url}/v1",
            model=ModelFacts(name="wire-model", output_limit=77),
            credential=Credential(SECRET, "x-api-key"),
        )
        try:
            yield client.model_call(route, transport, ImpatientClock()), server
        finally:
            await transport.aclose()


def _answers(*raw: bytes) -> Answer:
    left = list(raw)

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0))
        writer.close()

    return answer


def refused(status: int, type: str, message: str) -> bytes:
    body: JsonObject = {"type": "error", "error": {"type": type, "message": message}}
    return response(codec.encode(body), status=f"{status} X", headers="")


async def collect(call: ModelCall) -> list[LLMEvent]:
    return [event async for batch in call(REQUEST) for event in batch]


async def test_an_answer_streams_and_the_request_carries_what_it_must() -> None:
    async with calling(HEAD + body_of(EVERYTHING)) as (call, server):
        assert await collect(call) == step_all(EVERYTHING)
    (seen,) = server.requests
    assert seen.target == "/v1/messages"
    assert seen.headers["x-api-key"] == SECRET
    assert seen.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in seen.headers
    assert codec.decode_any(seen.body)["max_tokens"] == 77


async def test_an_overloaded_provider_may_be_asked_again() -> None:
    busy = refused(529, "overloaded_error", "Overloaded")
    async with calling(busy) as (call, _):
        with pytest.raises(LLMError) as failed:
            await collect(call)
    assert (failed.value.reason, failed.value.status) == ("overload", 529)


async def test_an_error_inside_the_stream_is_told_without_secrets() -> None:
    frames = [begin(), *text(0, "half"), error("api_error", f"bad key {SECRET}")]
    async with calling(HEAD + body_of(frames)) as (call, _):
        events = await collect(call)
    assert TextDelta("text-0", "half") in events
    assert events[-1] == ProviderError(
        message="api_error: bad key [redacted]", reason="provider-internal"
    )


@pytest.mark.parametrize(
    ("status", "type", "said", "reason"),
    [
        (400, "invalid_request_error", "prompt is too long: 9 > 8", "overflow"),
        (413, "request_too_large", "Request exceeds the maximum size", "overflow"),
        (401, "authentication_error", "invalid x-api-key", "authentication"),
        (400, "invalid_request_error", "Your credit balance is low", "quota-exceeded"),
        (404, "not_found_error", "model: x", "invalid-request"),
    ],
)
async def test_refusals_have_one_vocabulary(status: int, type: str, said: str, reason: str) -> None:
    async with calling(refused(status, type, said)) as (call, _):
        with pytest.raises(LLMError) as failed:
            await collect(call)
    assert failed.value.reason == reason


async def test_a_connection_that_breaks_off_is_an_incomplete_answer() -> None:
    whole = HEAD + body_of(EVERYTHING)
    async with calling(whole[: len(whole) // 2]) as (call, _):
        with pytest.raises(LLMError, match="before it was complete"):
            await collect(call)
