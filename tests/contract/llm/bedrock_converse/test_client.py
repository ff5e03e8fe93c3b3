"""A Bedrock call over real sockets: what is sent and signed, and what comes of each answer."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from perdure.host.http import HttptoolsTransport
from perdure.llm import aws_signature, client
from perdure.llm.aws_keys import AwsKeys
from perdure.llm.aws_signature import Scope
from perdure.llm.error import LLMError
from perdure.llm.event import Finish, LLMEvent, ProviderError, TextDelta
from perdure.llm.message import LLMMessage, TextPart, runs_of
from perdure.llm.model_call import ModelCall
from perdure.llm.protocols.bedrock_converse import BEDROCK_CONVERSE
from perdure.llm.request import LLMRequest
from perdure.llm.route import Credential, Route
from perdure.llm.transport import HttpRequest
from perdure.llm.wire_protocol import ModelFacts
from perdure.schema import codec
from perdure.schema.model import ModelRef
from perdure.testing import ManualClock
from tests.contract.host.loopback import Loopback, Received, response, serving
from tests.contract.llm.bedrock_converse.recordings import (
    EVERYTHING,
    begin,
    exception,
    piece,
    step_all,
    text,
)

KEYS = AwsKeys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "session-canary-77")
SECRET = "canary-5f2e9c"
HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/vnd.amazon.eventstream\r\n"
    b"connection: close\r\n\r\n"
)
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
async def calling(*raw: bytes, signed: bool = True) -> AsyncGenerator[tuple[ModelCall, Loopback]]:
    """A call to a server that gives one answer for each request."""
    left, clock, transport = list(raw), ImpatientClock(), HttptoolsTransport()

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0))
        writer.close()

    async with asyncio.timeout(30), serving(answer) as server:
        route = Route(
            protocol=BEDROCK_CONVERSE,
            base_url=server.url,
            model=ModelFacts(name="anthropic.claude-opus-4-8-v1:0"),
            credential=None if signed else Credential(SECRET),
        )
        if signed:
            sign = aws_signature.bedrock_signer(KEYS, "eu-west-1", clock.now_millis)
            route = replace(route, sign=sign)
        try:
            yield client.model_call(route, transport, clock), server
        finally:
            await transport.aclose()


async def collect(call: ModelCall) -> list[LLMEvent]:
    return [event async for batch in call(REQUEST) for event in batch]


async def test_an_answer_streams_and_the_request_is_signed_as_it_is_sent() -> None:
    async with calling(HEAD + b"".join(EVERYTHING)) as (call, server):
        assert await collect(call) == step_all(EVERYTHING)
    (seen,) = server.requests
    assert seen.target == "/model/anthropic.claude-opus-4-8-v1%3A0/converse-stream"
    assert seen.headers["accept"] == "application/vnd.amazon.eventstream"
    # What arrived is signed again, by who holds the same keys.
    arrived = HttpRequest(
        url=f"http://{seen.headers['host']}{seen.target}",
        headers={"content-type": seen.headers["content-type"]},
        body=(seen.body,),
    )
    again = aws_signature.signed(
        arrived, KEYS, Scope("eu-west-1", "bedrock"), ImpatientClock().now_millis()
    )
    assert seen.headers["x-amz-date"] == again.headers["x-amz-date"]
    assert seen.headers["authorization"] == again.headers["authorization"]
    assert seen.headers["x-amz-security-token"] == KEYS.session_token


async def test_a_bearer_token_is_sent_as_it_is() -> None:
    async with calling(HEAD + b"".join(EVERYTHING), signed=False) as (call, server):
        assert isinstance((await collect(call))[-1], Finish)
    (seen,) = server.requests
    assert seen.headers["authorization"] == f"Bearer {SECRET}"
    assert "x-amz-date" not in seen.headers


async def test_a_throttled_request_may_be_made_again() -> None:
    busy = response(codec.encode({"message": "Too many tokens"}), status="429 X", headers="")
    async with calling(busy) as (call, _):
        with pytest.raises(LLMError) as failed:
            await collect(call)
    assert failed.value.reason == "rate-limit"


async def test_an_exception_inside_the_stream_is_told_without_secrets() -> None:
    frames = [begin(), piece(0, text="half"), exception("throttlingException", f"no {SECRET}")]
    async with calling(HEAD + b"".join(frames), signed=False) as (call, _):
        events = await collect(call)
    assert TextDelta("text-0", "half") in events
    assert events[-1] == ProviderError(
        message="throttlingException: no [redacted]", reason="rate-limit"
    )


async def test_a_refusal_that_quotes_the_signed_request_gives_no_token_away() -> None:
    said = f"The canonical string was x-amz-security-token:{KEYS.session_token} and AKIDEXAMPLE"
    raw = response(codec.encode({"message": said}), status="403 X", headers="")
    async with calling(raw) as (call, _):
        with pytest.raises(LLMError) as failed:
            await collect(call)
    assert failed.value.reason == "authentication"
    assert KEYS.session_token not in failed.value.message


@pytest.mark.parametrize(
    ("status", "message", "reason"),
    [
        (400, "Input is too long for requested model.", "overflow"),
        (400, "The provided model identifier is invalid.", "invalid-request"),
        (403, "The security token included in the request is expired", "authentication"),
        (404, "Could not resolve the model.", "invalid-request"),
    ],
)
async def test_refusals_have_one_vocabulary(status: int, message: str, reason: str) -> None:
    raw = response(codec.encode({"message": message}), status=f"{status} X", headers="")
    async with calling(raw) as (call, _):
        with pytest.raises(LLMError) as failed:
            await collect(call)
    assert failed.value.reason == reason


async def test_a_damaged_frame_ends_the_answer_and_is_named() -> None:
    damaged = bytearray(b"".join([begin(), *text(0, "whole", "broken")]))
    damaged[-200] ^= 1
    async with calling(HEAD + bytes(damaged)) as (call, _):
        with pytest.raises(LLMError, match="checksum") as failed:
            await collect(call)
    assert failed.value.reason == "invalid-provider-output"


async def test_a_connection_that_breaks_off_is_an_incomplete_answer() -> None:
    whole = HEAD + b"".join(EVERYTHING)
    async with calling(whole[: len(whole) // 2]) as (call, _):
        with pytest.raises(LLMError, match="before it was complete"):
            await collect(call)
