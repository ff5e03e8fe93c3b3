"""The faulty provider itself: valid when asked to be, broken exactly where it is told to be."""

import asyncio
import gzip
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest

from perdure import testing
from perdure.schema import codec
from perdure.testing import provider_answer
from perdure.testing.faulty_provider import FaultyProvider
from perdure.testing.provider_answer import Close, ProviderAnswer, Reset, Stall, chat_stream

BODY = chat_stream({"content": "Grüße"}, {"content": " 🌍"}, usage={"prompt_tokens": 3})
WHOLE = ProviderAnswer(body=BODY)
ASKED = codec.encode({"model": "m", "messages": []})
REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\nX-Key: a\r\n\r\n%b" % (
    len(ASKED),
    ASKED,
)


@pytest.fixture
async def provider() -> AsyncIterator[FaultyProvider]:
    async with asyncio.timeout(10), FaultyProvider() as provider:
        yield provider


@asynccontextmanager
async def connected(
    provider: FaultyProvider,
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    port = int(provider.url.removesuffix("/v1").rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def answer_to(provider: FaultyProvider, answer: ProviderAnswer) -> bytes:
    """Every byte that comes until the provider closes the connection."""
    provider.then(answer)
    async with connected(provider) as (reader, writer):
        writer.write(REQUEST)
        return await reader.read()


async def test_requests_are_remembered_and_the_connection_carries_the_next(
    provider: FaultyProvider,
) -> None:
    provider.then(WHOLE, ProviderAnswer(body=BODY, ending=Close(at=20)))
    async with connected(provider) as (reader, writer):
        writer.write(REQUEST)
        assert await reader.readexactly(len(WHOLE.response())) == WHOLE.response()
        writer.write(REQUEST)
        assert await reader.read() == WHOLE.response()[:20]
    asked = await provider.until_asked(2)
    assert (asked.path, asked.headers["x-key"]) == ("/v1/chat/completions", "a")
    assert asked.body == {"model": "m", "messages": []}


async def test_a_close_comes_after_exactly_so_many_bytes(provider: FaultyProvider) -> None:
    response = WHOLE.response()
    for at in (0, 1, len(WHOLE.head()), len(response) // 2, len(response) - 1):
        cut = ProviderAnswer(body=BODY, ending=Close(at=at))
        assert await answer_to(provider, cut) == response[:at]


async def test_a_reset_is_a_reset(provider: FaultyProvider) -> None:
    with pytest.raises(ConnectionResetError):
        await answer_to(provider, ProviderAnswer(body=BODY, ending=Reset(at=0)))


async def test_a_stall_lasts_until_the_other_side_leaves(provider: FaultyProvider) -> None:
    provider.then(ProviderAnswer(body=BODY, ending=Stall(at=50)))
    async with connected(provider) as (reader, writer):
        writer.write(REQUEST)
        assert await reader.readexactly(50) == WHOLE.response()[:50]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await reader.read(1)


async def test_a_body_without_a_length_ends_with_its_connection(provider: FaultyProvider) -> None:
    open_ended = ProviderAnswer(body=BODY, framing="until-close", pieces=(100, 101, 300))
    assert await answer_to(provider, open_ended) == open_ended.head() + BODY


async def test_leaving_ends_those_who_still_wait() -> None:
    async with asyncio.timeout(10):
        async with FaultyProvider() as provider:
            provider.then(ProviderAnswer(body=BODY, ending=Stall(at=0)))
            async with connected(provider) as (_, writer):
                writer.write(REQUEST)
                await provider.until_asked(1)
        async with FaultyProvider():
            pass


def test_chunks_hold_the_frames_and_their_end() -> None:
    sent = WHOLE.response().removeprefix(WHOLE.head())
    assert sent.endswith(b"0\r\n\r\n")
    assert sent.count(b"data: ") == BODY.count(b"data: ")
    assert (
        provider_answer.refusal(429, headers={"retry-after": "7"})
        .response()
        .endswith(b"retry-after: 7\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n")
    )


def test_damage_is_done_where_it_is_asked_for() -> None:
    assert provider_answer.without_done(BODY) + b"data: [DONE]\n\n" == BODY
    assert b"\n" not in provider_answer.with_line_ends(BODY, b"\r")
    assert provider_answer.with_garbage(BODY, 5, b"!") == BODY[:5] + b"!" + BODY[5:]
    first = BODY[: BODY.index(b"\n\n") + 2]
    assert provider_answer.with_repeated_frame(BODY, 3) == first + BODY
    assert provider_answer.with_repeated_frame(BODY, len(BODY)) == BODY
    whole = provider_answer.compressed(BODY)
    assert gzip.decompress(whole.body) == BODY
    assert provider_answer.compressed(BODY, keep=9).body == whole.body[:9]


def test_the_public_names_are_there_and_sorted() -> None:
    assert list(testing.__all__) == sorted(testing.__all__)
    assert all(hasattr(testing, name) for name in testing.__all__)
