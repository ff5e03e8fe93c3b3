"""A model call over real sockets: answers, refusals, silence and early closing."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from perdure.llm.encoding.wire_protocol import ModelFacts
from perdure.llm.error import LLMError
from perdure.llm.event import LLMEvent, ProviderError, TextDelta, ToolCall
from perdure.llm.http import model_call
from perdure.llm.http.model_call import CallLimits
from perdure.llm.model_call import ModelCall
from perdure.llm.protocols.openai_chat.request import OPENAI_CHAT
from perdure.llm.request import GenerationControls, LLMRequest
from perdure.llm.route import Credential, Route
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.host.loopback import Answer, Loopback, Received, replying, response
from tests.contract.llm.calling import REQUEST, answering, calling, collect, streamed
from tests.contract.llm.protocols.openai_chat.recordings import EVERYTHING, body_of, chunk, step_all
from tests.contract.llm.protocols.openai_chat.wire import WIRE
from tests.contract.llm.wire import SECRET
from tests.requirements import requirement

STREAM_HEAD = streamed(WIRE, b"")
GOOD = STREAM_HEAD + body_of(EVERYTHING)


@asynccontextmanager
async def chatting(
    answer: Answer,
    *,
    body: JsonObject | None = None,
    limits: CallLimits = model_call.DEFAULT_LIMITS,
) -> AsyncGenerator[tuple[ModelCall, Loopback]]:
    def route(url: str) -> Route:
        return Route(
            protocol=OPENAI_CHAT,
            base_url=f"{url}/v1/",
            model=ModelFacts(name="wire-model"),
            credential=Credential(SECRET),
            headers={"X-Route": "r"},
            body=body or {},
            generation=GenerationControls(temperature=0.5, max_tokens=7),
        )

    async with calling(route, answer, limits=limits) as opened:
        yield opened


async def collect_until_failure(call: ModelCall) -> tuple[list[LLMEvent], LLMError | None]:
    events: list[LLMEvent] = []
    try:
        async for batch in call(REQUEST):
            events += batch
    except LLMError as error:
        return events, error
    return events, None


def closing(*pieces: bytes) -> Answer:
    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
        writer.close()

    return answer


def refusal(status: int, body: JsonObject | None = None, headers: str = "") -> bytes:
    return response(codec.encode(body or {}), status=f"{status} X", headers=headers)


async def test_an_answer_streams_and_the_request_carries_what_it_must() -> None:
    async with chatting(closing(GOOD)) as (call, server):
        assert await collect(call) == step_all(EVERYTHING)
    (seen,) = server.requests
    assert seen.target == "/v1/chat/completions"
    assert seen.headers["authorization"] == f"Bearer {SECRET}"
    assert seen.headers["content-type"] == "application/json"
    assert (seen.headers["x-session-id"], seen.headers["x-route"]) == ("ses_1", "r")
    body = codec.decode_any(seen.body)
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("wire-model", 0.5, 7)


async def test_what_a_request_asks_for_wins_over_the_route() -> None:
    asked = LLMRequest(
        model=REQUEST.model, system=(), segments=(), generation=GenerationControls(temperature=0.0)
    )
    async with chatting(closing(GOOD)) as (call, server):
        await collect(call, asked)
    body = codec.decode_any(server.requests[0].body)
    assert (body["temperature"], body["max_tokens"]) == (0.0, 7)


async def test_a_batch_is_what_arrived_together() -> None:
    pieces = [chunk({"content": "a"}), chunk({"content": "b"})]
    seen = asyncio.Event()

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD + body_of(pieces))
        await seen.wait()
        writer.write(body_of([chunk({}, "stop"), b"[DONE]"]))
        writer.close()

    async with chatting(answer) as (call, _):
        batches: list[int] = []
        async for batch in call(REQUEST):
            batches.append(len(batch))
            seen.set()
    assert batches == [3, 2]


async def test_compatibility_fields_are_laid_over_the_body() -> None:
    async with chatting(closing(GOOD), body={"num_ctx": 8192, "extra": {"a": 1}}) as (call, server):
        await collect(call)
    body = codec.decode_any(server.requests[0].body)
    assert (body["num_ctx"], body["extra"]) == (8192, {"a": 1})


@pytest.mark.parametrize("owned", ["model", "messages", "tools", "stream", "temperature"])
async def test_compatibility_fields_never_touch_what_the_protocol_owns(owned: str) -> None:
    async with chatting(closing(GOOD), body={owned: "x"}) as (call, server):
        with pytest.raises(LLMError, match=owned) as failed:
            await collect(call)
    assert failed.value.reason == "invalid-request"
    assert server.requests == []


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
async def test_a_call_is_one_request_however_it_fails(status: int) -> None:
    limited = refusal(status, headers="retry-after: 3\r\n")
    async with chatting(answering(limited, GOOD)) as (call, server):
        with pytest.raises(LLMError, match=f"HTTP {status}") as failed:
            await collect(call)
    assert failed.value.retryable
    assert failed.value.retry_after_ms == 3_000
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
async def test_a_refusal_that_cannot_change_is_not_repeated(status: int) -> None:
    async with chatting(answering(refusal(status))) as (call, server):
        with pytest.raises(LLMError):
            await collect(call)
    assert len(server.requests) == 1


@pytest.mark.parametrize("nothing", [STREAM_HEAD, b""], ids=["no body", "no head"])
async def test_an_answer_that_never_began_may_be_asked_for_again(nothing: bytes) -> None:
    async with chatting(answering(nothing, GOOD)) as (call, _):
        with pytest.raises(LLMError) as failed:
            await collect(call)
    assert failed.value.reason == "transport"


async def test_nothing_is_repeated_once_the_answer_has_begun() -> None:
    begun = STREAM_HEAD + body_of([chunk({"content": "half"})])
    async with chatting(answering(begun, GOOD)) as (call, server):
        with pytest.raises(LLMError, match="ended before it was complete") as failed:
            await collect(call)
    assert failed.value.reason == "transport"
    assert len(server.requests) == 1


async def test_a_connection_reset_in_the_middle_is_a_transport_failure() -> None:
    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n")
        writer.write(body_of([chunk({"content": "half"})]))
        writer.close()

    async with chatting(answer) as (call, _):
        got, error = await collect_until_failure(call)
    assert error is not None
    assert error.reason == "transport"
    assert TextDelta("text-0", "half") in got


async def test_a_stream_cut_over_the_wire_never_gives_half_a_call() -> None:
    body = body_of(EVERYTHING)
    whole = [event for event in step_all(EVERYTHING) if isinstance(event, ToolCall)]
    cut = 0

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD + body[:cut])
        writer.close()

    async with chatting(answer) as (call, _):
        for offset in range(0, len(body), 17):
            cut = offset
            got, error = await collect_until_failure(call)
            assert error is None or error.reason == "transport"
            assert [event for event in got if isinstance(event, ToolCall)] in ([], whole)


@pytest.mark.parametrize("kind", ["application/json", "text/html; charset=utf-8"])
async def test_success_that_is_not_a_stream_is_the_providers_fault(kind: str) -> None:
    page = response(b'{"error":{"message":"use POST"}}', headers=f"content-type: {kind}\r\n")
    async with chatting(answering(page)) as (call, server):
        with pytest.raises(LLMError, match="use POST") as failed:
            await collect(call)
    assert failed.value.reason == "invalid-provider-output"
    assert len(server.requests) == 1


async def test_an_endless_frame_is_refused() -> None:
    endless = STREAM_HEAD + b"data: " + b"x" * 5000
    async with chatting(answering(endless), limits=CallLimits(frame_bytes_max=1000)) as (call, _):
        with pytest.raises(LLMError, match="larger than") as failed:
            await collect(call)
    assert failed.value.reason == "invalid-provider-output"


@requirement("S190")
async def test_a_silent_provider_is_waited_for_unless_a_limit_is_set() -> None:
    assert model_call.DEFAULT_LIMITS.idle_seconds_max == 0
    assert model_call.DEFAULT_LIMITS.first_byte_seconds_max == 0

    async def silent(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD + body_of([chunk({"content": "a"})]))

    limits = CallLimits(idle_seconds_max=0.05, first_byte_seconds_max=30)
    async with chatting(silent, limits=limits) as (call, _):
        with pytest.raises(LLMError, match=r"silent for 0\.05 s, the limit `idle`") as failed:
            await collect(call)
    assert failed.value.reason == "timeout"


@pytest.mark.parametrize("said", [b"", STREAM_HEAD], ids=["nothing", "only a head"])
async def test_a_provider_that_takes_the_request_and_says_nothing_is_left_too(said: bytes) -> None:
    limits = CallLimits(idle_seconds_max=30, first_byte_seconds_max=0.05)
    async with chatting(replying(said), limits=limits) as (call, _):
        with pytest.raises(LLMError, match="the limit `first_byte`") as failed:
            await collect(call)
    assert not failed.value.retryable


async def test_a_refusal_whose_body_never_ends_is_still_a_refusal() -> None:
    stuck = b'HTTP/1.1 400 Bad\r\ncontent-length: 900\r\n\r\n{"error":"half'
    async with chatting(replying(stuck), limits=CallLimits(refusal_seconds_max=0.05)) as (call, _):
        with pytest.raises(LLMError, match="HTTP 400") as failed:
            await collect(call)
    assert failed.value.reason == "invalid-request"


async def test_what_came_before_a_broken_chunk_is_not_lost() -> None:
    broken = STREAM_HEAD + body_of([chunk({"content": "kept"}), b"{broken"])
    async with chatting(answering(broken)) as (call, _):
        got, error = await collect_until_failure(call)
    assert TextDelta("text-0", "kept") in got
    assert error is not None
    assert error.reason == "invalid-provider-output"


async def test_an_interrupted_call_abandons_its_request() -> None:
    begun = asyncio.Event()

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD)
        while not writer.is_closing():
            writer.write(body_of([chunk({"content": "a"})]))
            await writer.drain()
            await asyncio.sleep(0)
            begun.set()

    async with chatting(answer) as (call, server):
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(collect(call))
            await begun.wait()
            reading.cancel()
        await server.closed.wait()


async def test_turns_share_one_connection() -> None:
    body = body_of(EVERYTHING)
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    piece = head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    async with chatting(replying(piece)) as (call, server):
        for _ in range(3):
            await collect(call)
    assert (server.connections, len(server.requests)) == (1, 3)


async def test_no_secret_comes_back_in_an_error() -> None:
    told: JsonObject = {"error": {"message": f"key {SECRET} is wrong, sk-abcdef123456 too"}}
    stream = STREAM_HEAD + body_of([codec.encode(told)])
    async with chatting(answering(refusal(401, told), stream)) as (call, _):
        with pytest.raises(LLMError) as failed:
            await collect(call)
        (error,) = await collect(call)
    assert isinstance(error, ProviderError)
    for message in (failed.value.message, error.message):
        assert SECRET not in message
        assert "sk-abc" not in message
        assert "is wrong" in message
