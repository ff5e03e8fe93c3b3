"""A Bedrock call over real sockets: what is signed, and what comes of a damaged frame."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from perdure.llm.aws import signature
from perdure.llm.aws.signature import AwsKeys, Scope
from perdure.llm.error import LLMError
from perdure.llm.event import Finish
from perdure.llm.model_call import ModelCall
from perdure.llm.protocols.bedrock.request import BEDROCK_CONVERSE
from perdure.llm.route import Route
from perdure.net.transport import HttpRequest
from perdure.schema import codec
from perdure.testing import ManualClock
from tests.contract.host.loopback import Loopback, response
from tests.contract.llm.calling import answering, calling, calling_over, collect, streamed
from tests.contract.llm.protocols.bedrock.recordings import EVERYTHING, begin, step_all, text
from tests.contract.llm.protocols.bedrock.wire import WIRE
from tests.contract.llm.wire import SECRET

KEYS: Final = AwsKeys(
    "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "session-canary-77"
)
WHOLE: Final = streamed(WIRE, b"".join(EVERYTHING))


def now_millis() -> int:
    return ManualClock().now_millis()


@asynccontextmanager
async def calling_signed(answer: bytes) -> AsyncGenerator[tuple[ModelCall, Loopback]]:
    sign = signature.bedrock_signer(KEYS, "eu-west-1", now_millis)

    def route(url: str) -> Route:
        return Route(protocol=BEDROCK_CONVERSE, base_url=url, model=WIRE.facts, sign=sign)

    async with calling(route, answering(answer)) as opened:
        yield opened


async def test_an_answer_streams_and_the_request_is_signed_as_it_is_sent() -> None:
    async with calling_signed(WHOLE) as (call, server):
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
    again = signature.sign_request(arrived, KEYS, Scope("eu-west-1", "bedrock"), now_millis())
    assert seen.headers["x-amz-date"] == again.headers["x-amz-date"]
    assert seen.headers["authorization"] == again.headers["authorization"]
    assert seen.headers["x-amz-security-token"] == KEYS.session_token


async def test_a_bearer_token_is_sent_as_it_is() -> None:
    async with calling_over(WIRE, WHOLE) as (call, server):
        assert isinstance((await collect(call))[-1], Finish)
    (seen,) = server.requests
    assert seen.headers["authorization"] == f"Bearer {SECRET}"
    assert "x-amz-date" not in seen.headers


async def test_a_refusal_that_quotes_the_signed_request_gives_no_token_away() -> None:
    said = f"The canonical string was x-amz-security-token:{KEYS.session_token} and AKIDEXAMPLE"
    refused = response(codec.encode({"message": said}), status="403 X")
    async with calling_signed(refused) as (call, _):
        with pytest.raises(LLMError) as failed:
            await collect(call)
    assert failed.value.reason == "authentication"
    assert KEYS.session_token not in failed.value.message


async def test_a_damaged_frame_ends_the_answer_and_is_named() -> None:
    damaged = bytearray(b"".join([begin(), *text(0, "whole", "broken")]))
    damaged[-200] ^= 1
    async with calling_over(WIRE, streamed(WIRE, bytes(damaged))) as (call, _):
        with pytest.raises(LLMError, match="checksum") as failed:
            await collect(call)
    assert failed.value.reason == "invalid-provider-output"
