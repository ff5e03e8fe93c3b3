"""A Gemini call over real sockets: what is sent, and what comes of each answer."""

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
from perdure.llm.protocols.gemini import GEMINI
from perdure.llm.request import LLMRequest
from perdure.llm.route import Credential, Route
from perdure.llm.wire_protocol import ModelFacts
from perdure.schema.model import ModelRef
from perdure.testing import ManualClock
from tests.contract.host.loopback import Loopback, Received, response, serving
from tests.contract.llm.gemini.recordings import (
    EVERYTHING,
    answered,
    body_of,
    chunk,
    error,
    said,
)

SECRET = "canary-5f2e9c"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
REQUEST = LLMRequest(
    model=ModelRef(id="m", provider_id="p"),
    system=("s",),
    runs=runs_of((LLMMessage("user", (TextPart("hi"),)),)),
)


@asynccontextmanager
async def calling(raw: bytes) -> AsyncGenerator[tuple[ModelCall, Loopback]]:
    """A call to a server that gives this answer."""

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        writer.close()

    transport = HttptoolsTransport()
    async with asyncio.timeout(30), serving(answer) as server:
        route = Route(
            protocol=GEMINI,
            base_url=f"{server.url}/v1beta",
            model=ModelFacts(name="gemini-3-pro"),
            credential=Credential(SECRET, "x-goog-api-key"),
        )
        try:
            yield client.model_call(route, transport, ManualClock()), server
        finally:
            await transport.aclose()


async def collect(call: ModelCall) -> list[LLMEvent]:
    return [event async for batch in call(REQUEST) for event in batch]


async def test_an_answer_streams_and_the_request_carries_what_it_must() -> None:
    async with calling(HEAD + body_of(EVERYTHING)) as (call, server):
        assert await collect(call) == answered(EVERYTHING)
    (seen,) = server.requests
    assert seen.target == "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"
    assert seen.headers["x-goog-api-key"] == SECRET
    assert "authorization" not in seen.headers


async def test_an_error_inside_the_stream_is_told_without_secrets() -> None:
    frames = [chunk(said("half")), error(503, "UNAVAILABLE", f"bad key {SECRET}")]
    async with calling(HEAD + body_of(frames)) as (call, _):
        events = await collect(call)
    assert TextDelta("text-0", "half") in events
    assert events[-1] == ProviderError(
        message="503 UNAVAILABLE: bad key [redacted]", reason="overload"
    )


@pytest.mark.parametrize(
    ("code", "status", "message", "reason"),
    [
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (9) exceeds the maximum number of tokens allowed (8).",
            "overflow",
        ),
        (400, "INVALID_ARGUMENT", "Invalid value at 'contents'", "invalid-request"),
        (403, "PERMISSION_DENIED", "Method doesn't allow this caller.", "authentication"),
        (404, "NOT_FOUND", "models/x is not found", "invalid-request"),
        (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", "quota-exceeded"),
    ],
)
async def test_refusals_have_one_vocabulary(
    code: int, status: str, message: str, reason: str
) -> None:
    raw = response(error(code, status, message), status=f"{code} X", headers="")
    async with calling(raw) as (call, _):
        with pytest.raises(LLMError) as failed:
            await collect(call)
    assert failed.value.reason == reason


async def test_a_connection_that_breaks_off_is_an_incomplete_answer() -> None:
    whole = HEAD + body_of(EVERYTHING)
    async with calling(whole[: len(whole) // 2]) as (call, _):
        with pytest.raises(LLMError, match="before it was complete"):
            await collect(call)
