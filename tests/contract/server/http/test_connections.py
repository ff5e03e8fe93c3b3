"""More connections and more unread bytes than a server may have, over real sockets."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import pytest
from msgspec.structs import replace

from perdure.core import limits
from perdure.server.http.asgi import Receive, Scope, Send
from perdure.server.settings import HttpLimits
from tests.support.raw_http import RawClient, connected, listening

GET: Final = b"GET /%s HTTP/1.1\r\nhost: localhost\r\n\r\n"
POST: Final = b"POST /%s HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
PATIENT: Final = HttpLimits(linger_seconds_max=0.2, shutdown_seconds_max=0.5)
BIG: Final = b"x" * 1_000_000


class App:
    """Answers with a status that the path names; `/wait` waits, and `/big` is a megabyte."""

    def __init__(self) -> None:
        self.served = 0
        self.gate = asyncio.Event()
        self.waiting = asyncio.Semaphore(0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (message := await receive())["type"] == "http.request" and message["more_body"]:
            pass
        self.served += 1
        name = scope["path"].removeprefix("/")
        if name == "wait":
            self.waiting.release()
            await self.gate.wait()
        status = int(name) if name.isdigit() else 200
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": BIG if name == "big" else b"ok"})


async def ask(client: RawClient, name: bytes = b"a") -> int:
    await client.say(GET % name)
    return (await client.answer()).status


@asynccontextmanager
async def clients(port: int, count: int) -> AsyncGenerator[list[RawClient]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(connected(port)) for _ in range(count)]


async def closed(client: RawClient) -> bytes:
    """What comes until the server closes."""
    try:
        return await client.rest()
    except ConnectionResetError:
        return b""


async def test_at_the_limit_the_connection_that_was_idle_for_longest_gives_way() -> None:
    bounds = replace(PATIENT, connections_max=2)
    async with listening(App(), bounds) as (_, port), clients(port, 2) as (first, second):
        assert [await ask(first), await ask(second), await ask(first)] == [200, 200, 200]
        async with connected(port) as third:
            assert await ask(third) == 200
            assert await closed(second) == b""
            assert await ask(first) == 200


async def test_a_connection_without_a_good_request_gives_way_before_one_that_had_one() -> None:
    bounds = replace(PATIENT, connections_max=4)
    async with listening(App(), bounds) as (_, port), clients(port, 4) as everyone:
        known, refused, silent, slow = everyone
        assert await ask(known) == 200
        assert await ask(refused, b"401") == 401
        await slow.say(b"GET / HTTP/1.1\r\nho")
        for _ in range(3):
            async with connected(port) as another:
                assert await ask(another) == 200
                assert await ask(another, b"404") == 404
                # It stays open, so that the next one needs room again.
                everyone.append(another)
                assert await ask(known) == 200
        del silent, refused


async def test_while_all_are_busy_a_new_one_is_told_when_to_come_back() -> None:
    app, bounds = App(), replace(PATIENT, connections_max=3)
    async with listening(app, bounds) as (_, port), clients(port, 3) as busy:
        for client in busy:
            await client.say(GET % b"wait")
            await app.waiting.acquire()
        async with clients(port, 50) as refused:
            for client in refused[-limits.CONNECTIONS_LEAVING_MAX :]:
                answer = await client.answer()
                assert (answer.status, answer.json()["_tag"]) == (503, "ServiceUnavailableError")
                assert answer.headers["retry-after"] == "1"
                assert answer.headers["connection"] == "close"
                assert await closed(client) == b""
        app.gate.set()
        assert [(await client.answer()).status for client in busy] == [200] * 3
        async with connected(port) as client:
            assert await ask(client) == 200


async def test_refused_connections_never_hold_more_than_a_few_descriptors() -> None:
    app, bounds = App(), replace(PATIENT, connections_max=1, linger_seconds_max=30)
    async with listening(app, bounds) as (_, port), connected(port) as busy:
        await busy.say(GET % b"wait")
        await app.waiting.acquire()
        async with clients(port, 60) as refused:
            gone = refused[: -limits.CONNECTIONS_LEAVING_MAX]
            await asyncio.gather(*(closed(client) for client in gone))
        app.gate.set()
        assert (await busy.answer()).status == 200


SHORT: Final = HttpLimits(
    first_request_seconds_max=0.2, linger_seconds_max=0.1, shutdown_seconds_max=0.5
)
UNKNOWN: Final = {
    "says nothing": [],
    "sends blank lines": [b"\r\n" * 10],
    "does not end its head": [b"GET / HTTP/1.1\r\nhost: localhost\r\n"],
    "is refused": [GET % b"401"],
    "asks as a browser would": [b"OPTIONS / HTTP/1.1\r\nhost: localhost\r\n\r\n"],
}


@pytest.mark.parametrize("habit", UNKNOWN)
async def test_a_client_without_credentials_has_little_time(habit: str) -> None:
    async with listening(App(), SHORT) as (_, port), connected(port) as client:
        for data in UNKNOWN[habit]:
            await client.say(data)
        async with asyncio.timeout(5):
            await closed(client)


async def test_each_byte_of_a_slow_head_does_not_buy_more_time() -> None:
    async with listening(App(), SHORT) as (_, port), connected(port) as client:
        await client.say(b"GET / HTTP/1.1\r\nx: ")
        rest = asyncio.create_task(closed(client))
        drops = 0
        while not rest.done():
            client.writer.write(b"a")
            drops += 1
            await asyncio.wait([rest], timeout=0.02)
        assert b" 408 " in await rest
        assert drops < 100


async def test_a_client_with_credentials_may_be_idle_for_longer() -> None:
    async with listening(App(), SHORT) as (_, port), connected(port) as client:
        assert await ask(client) == 200
        assert not (await asyncio.wait([asyncio.create_task(closed(client))], timeout=0.6))[0]


async def test_the_answer_to_a_pipelined_request_is_not_made_before_the_last_is_read() -> None:
    app = App()
    async with listening(app, PATIENT) as (_, port):
        with deaf_client(port) as deaf:
            await push(deaf, [GET % b"big"] * 40)
            served = app.served
            assert served < 10
        async with connected(port) as client:
            assert await ask(client) == 200


async def test_pipelined_requests_go_on_when_the_client_reads_again() -> None:
    app = App()
    async with listening(app, PATIENT) as (_, port), connected(port) as client:
        await client.say(GET % b"big" * 30 + b"\x00garbage")
        assert [len((await client.answer()).body) for _ in range(30)] == [len(BIG)] * 30
        assert (await client.answer()).status == 400
        assert await closed(client) == b""


FLOODS: Final = {
    "a trailer that does not end": (POST % b"a" + b"2\r\nab\r\n0\r\nx: ", b"a" * 60_000),
    "many trailers": (POST % b"a" + b"2\r\nab\r\n0\r\n", b"x: y\r\n" * 10_000),
    "a chunk extension that does not end": (POST % b"a" + b"2;", b"a" * 60_000),
    "a name of a header that does not end": (b"GET / HTTP/1.1\r\n", b"a" * 60_000),
    "many headers": (b"GET / HTTP/1.1\r\n", b"a: \r\n" * 2_000),
    "a path that does not end": (b"GET /", b"a" * 60_000),
}


@pytest.mark.parametrize("flood", FLOODS)
async def test_a_head_or_a_frame_without_end_is_refused(flood: str) -> None:
    opening, piece = FLOODS[flood]
    async with listening(App(), PATIENT) as (_, port), connected(port) as client:
        await client.say(opening)
        for _ in range(8):
            client.writer.write(piece)
        answer = await client.answer()
        assert (answer.status, answer.json()["_tag"]) == (431, "RequestHeadTooLargeError")


async def test_a_request_behind_a_head_that_is_too_large_is_not_answered() -> None:
    app = App()
    async with listening(app, PATIENT) as (_, port), connected(port) as client:
        await client.say(
            b"GET / HTTP/1.1\r\nx: " + b"a" * 70_000 + b"\r\n\r\n" + GET % b"behind" * 2
        )
        assert (await client.answer()).status == 431
        assert await closed(client) == b""
    assert app.served == 0


def deaf_client(port: int) -> socket.socket:
    """A client that never reads, with as small a buffer as the system allows."""
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    deaf.connect(("127.0.0.1", port))
    deaf.setblocking(False)
    return deaf


async def push(deaf: socket.socket, requests: Sequence[bytes]) -> None:
    """Send as much as the server takes, until it takes nothing more for a while."""
    loop = asyncio.get_running_loop()
    for request in requests:
        try:
            async with asyncio.timeout(0.2):
                await loop.sock_sendall(deaf, request)
        except TimeoutError:
            return
