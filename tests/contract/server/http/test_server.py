"""The transport over real sockets, with clients that are slow, rude, cut off or in a hurry."""

import asyncio
import socket

import pytest
from msgspec.structs import replace

from perdure.schema import codec
from perdure.server.http.asgi import HttpRequest, Receive, Scope, Send
from perdure.server.http.message import http_date
from perdure.server.settings import HttpLimits
from tests.contract.server.served_runtime import QUICK
from tests.support.raw_http import connected, listening

GET = b"GET /%s HTTP/1.1\r\nhost: localhost\r\n\r\n"


async def received(receive: Receive) -> HttpRequest:
    message = await receive()
    assert message["type"] == "http.request"
    return message


async def read_all(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await received(receive)
        body += message["body"]
        if not message["more_body"]:
            return body


async def reply(send: Send, body: bytes, *, status: int = 200) -> None:
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": body})


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    await reply(send, scope["raw_path"] + b"|" + await read_all(receive))


async def path_only(scope: Scope, receive: Receive, send: Send) -> None:
    del receive
    await reply(send, scope["raw_path"])


async def test_a_connection_serves_one_request_after_another() -> None:
    async with listening(echo) as (_, port), connected(port) as client:
        for name in (b"a", b"b", b"c"):
            await client.say(GET % name)
            answer = await client.answer()
            assert (answer.status, answer.body) == (200, b"/" + name + b"|")
            assert answer.headers["date"].endswith(" GMT")
            assert "connection" not in answer.headers


async def test_pipelined_requests_are_answered_in_order_though_the_first_is_slowest() -> None:
    gate = asyncio.Event()
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["path"])
        if scope["path"] == "/0":
            await gate.wait()
        await reply(send, scope["raw_path"])

    async with listening(app) as (_, port), connected(port) as client:
        await client.say(b"".join(GET % str(number).encode() for number in range(50)))
        gate.set()
        bodies = [(await client.answer()).body for _ in range(50)]
    assert bodies == [f"/{number}".encode() for number in range(50)]
    assert seen == [f"/{number}" for number in range(50)]


async def test_a_body_in_chunks_arrives_whole_and_its_trailers_are_no_headers() -> None:
    heard: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_all(receive)
        heard.append(scope)
        await reply(send, body)

    async with listening(app) as (_, port), connected(port) as client:
        await client.say(
            b"POST /x HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
            b"3\r\nabc\r\n2\r\nde\r\n0\r\nauthorization: Basic eHg=\r\n\r\n"
        )
        assert (await client.answer()).body == b"abcde"
    assert b"authorization" not in dict(heard[0]["headers"])


async def test_a_client_that_asks_first_is_told_to_go_on() -> None:
    async with listening(echo) as (_, port), connected(port) as client:
        await client.say(
            b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n"
        )
        assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.say(b"ok")
        assert (await client.answer()).body == b"/|ok"


async def test_a_head_request_is_answered_without_a_body() -> None:
    async with listening(path_only) as (_, port), connected(port) as client:
        await client.say(b"HEAD /abc HTTP/1.1\r\nhost: x\r\n\r\n" + GET % b"next")
        first = await client.answer(head=True)
        assert (first.status, first.headers["content-length"]) == (200, "4")
        assert (await client.answer()).body == b"/next"


async def test_an_old_client_gets_a_stream_that_ends_with_the_connection() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for part in (b"one", b"two"):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async with listening(app) as (_, port), connected(port) as client:
        await client.say(b"GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n")
        answer = await client.head()
        assert "transfer-encoding" not in answer.headers
        assert await client.rest() == b"onetwo"


async def test_a_proxy_may_spell_out_the_whole_address() -> None:
    async with listening(path_only) as (_, port), connected(port) as client:
        await client.say(b"GET http://localhost/a/b?c=d HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert (await client.answer()).body == b"/a/b"


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"HELLO\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        b"GET / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n",
        b"GET / HTTP/1.1\r\nx: a\x00b\r\n\r\n",
    ],
)
async def test_garbage_gets_a_400_in_json_and_the_connection_closes(garbage: bytes) -> None:
    async with listening(echo) as (_, port), connected(port) as client:
        await client.say(garbage)
        answer = await client.answer()
        assert answer.status == 400
        assert answer.json()["_tag"] == "InvalidRequestError"
        assert answer.headers["connection"] == "close"
        assert await client.rest() == b""


async def test_garbage_after_a_request_does_not_rob_it_of_its_answer() -> None:
    gate = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await gate.wait()
        await reply(send, scope["raw_path"])

    async with listening(app) as (_, port), connected(port) as client:
        await client.say(GET % b"good" + GET % b"also" + b"\x00\x01garbage\r\n\r\n")
        gate.set()
        assert (await client.answer()).body == b"/good"
        assert (await client.answer()).body == b"/also"
        assert (await client.answer()).status == 400
        assert await client.rest() == b""


async def test_a_huge_head_is_refused_in_one_piece_and_in_drops() -> None:
    limits = replace(QUICK, head_bytes_max=4_096, read_seconds_max=30)
    async with listening(echo, limits) as (_, port):
        async with connected(port) as client:
            await client.say(b"GET / HTTP/1.1\r\nx: " + b"a" * 5_000 + b"\r\n\r\n")
            answer = await client.answer()
            assert (answer.status, answer.json()["_tag"]) == (431, "RequestHeadTooLargeError")
        async with connected(port) as client:
            await client.say(b"GET / HTTP/1.1\r\nx: ")
            for _ in range(40):
                client.writer.write(b"a" * 256)
                await asyncio.sleep(0)
            assert (await client.answer()).status == 431


async def test_a_client_that_drips_its_head_is_let_go() -> None:
    async with listening(echo, QUICK) as (_, port), connected(port) as client:
        await client.say(b"GET / HTTP/1.1\r\nho")
        answer = await client.answer()
        assert (answer.status, answer.json()["_tag"]) == (408, "RequestTimeoutError")
        assert await client.rest() == b""


async def test_a_client_that_never_finishes_its_body_is_let_go_and_the_handler_with_it() -> None:
    cancelled = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await read_all(receive)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with listening(app, QUICK) as (_, port), connected(port) as client:
        await client.say(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nabc")
        assert (await client.answer()).status == 408
        await cancelled.wait()


async def test_a_client_that_says_nothing_is_let_go() -> None:
    limits = replace(QUICK, keep_alive_seconds_max=0.1)
    async with listening(echo, limits) as (_, port):
        async with connected(port) as client:
            assert await client.rest() == b""
        async with connected(port) as client:
            await client.say(GET % b"a")
            await client.answer()
            assert await client.rest() == b""


async def test_a_handler_may_take_longer_than_a_client_may() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(QUICK.read_seconds_max * 3)
        await reply(send, b"late")

    async with listening(app, QUICK) as (_, port), connected(port) as client:
        await client.say(GET % b"")
        assert (await client.answer()).body == b"late"


async def test_a_client_that_goes_away_cancels_its_request() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            assert (await receive())["type"] == "http.disconnect"
            raise

    async with asyncio.timeout(5), listening(app, QUICK) as (_, port):
        async with connected(port) as client:
            await client.say(GET % b"")
            await started.wait()
        await cancelled.wait()


async def test_a_client_that_has_said_everything_still_gets_its_answer() -> None:
    async with listening(echo) as (_, port), connected(port) as client:
        await client.say(GET % b"a" + GET % b"b")
        client.writer.write_eof()
        assert (await client.answer()).body == b"/a|"
        assert (await client.answer()).body == b"/b|"
        assert await client.rest() == b""


async def test_a_stream_ends_when_its_reader_half_closes() -> None:
    cancelled = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with listening(app) as (_, port), connected(port) as client:
        await client.say(GET % b"")
        await client.head()
        assert await client.chunk() == b"first"
        client.writer.write_eof()
        await cancelled.wait()


async def test_an_unread_body_is_not_kept_in_memory() -> None:
    """The client can push no more than the window and the kernel hold."""
    taken = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await taken.wait()
        size = 0
        while (message := await received(receive))["more_body"]:
            size += len(message["body"])
        await reply(send, str(size + len(message["body"])).encode())

    total = 64 * 1024 * 1024
    async with listening(app) as (_, port), connected(port) as client:
        client.writer.transport.set_write_buffer_limits(0)
        head = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % total
        client.writer.write(head)
        async with asyncio.TaskGroup() as group:
            push = group.create_task(client.say(b"x" * total))
            done, _ = await asyncio.wait((push,), timeout=0.3)
            assert not done, "the server took a body that no handler read"
            taken.set()
        assert (await client.answer()).body == str(total).encode()


async def test_an_answer_before_the_body_is_read_arrives_though_the_client_keeps_sending() -> None:
    async with listening(path_only, QUICK) as (_, port), connected(port) as client:
        await client.say(b"POST /no HTTP/1.1\r\nhost: x\r\ncontent-length: 100000000\r\n\r\n")
        client.writer.write(b"x" * 1_000_000)
        answer = await client.answer()
        assert (answer.body, answer.headers["connection"]) == (b"/no", "close")


async def test_a_reader_that_takes_nothing_slows_the_writer_and_is_then_dropped() -> None:
    written = 0
    ended = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal written
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            while True:
                await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
                written += 65536
        finally:
            ended.set()

    limits = replace(QUICK, stall_seconds_max=0.3)
    async with asyncio.timeout(5), listening(app, limits) as (_, port):
        with socket.create_connection(("127.0.0.1", port)) as deaf:
            deaf.sendall(GET % b"")
            await ended.wait()
    assert written < 64 * 1024 * 1024


async def test_a_head_and_its_body_leave_in_one_write_and_so_does_every_chunk() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"abc", "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async with listening(app) as (_, port), connected(port) as client:
        await client.say(GET % b"")
        raw = await client.reader.readuntil(b"0\r\n\r\n")
        assert raw.split(b"\r\n\r\n", 1)[1] == b"3\r\nabc\r\n0\r\n\r\n"


async def test_stopping_finishes_answers_under_way_and_accepts_no_more() -> None:
    gate, started = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        started.set()
        await gate.wait()
        await reply(send, b"done")

    async with (
        listening(app, replace(QUICK, shutdown_seconds_max=5)) as (server, port),
        connected(port) as client,
        connected(port) as idle,
    ):
        await client.say(GET % b"")
        await started.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(server.stop())
            assert await idle.rest() == b""
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", port)
            gate.set()
            answer = await client.answer()
        assert (answer.body, answer.headers["connection"]) == (b"done", "close")


async def test_stopping_does_not_wait_for_ever() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with listening(app, QUICK) as (server, port), connected(port) as client:
        await client.say(GET % b"")
        await started.wait()
        await server.stop()
        assert cancelled.is_set()


async def test_a_broken_application_does_not_leave_a_half_answer_that_looks_whole() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})

    async with listening(app) as (_, port), connected(port) as client:
        await client.say(GET % b"")
        await client.head()
        assert await client.chunk() == b"half"
        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
            await client.chunk()


async def test_a_hundred_clients_at_once_each_get_their_own_answer() -> None:
    async def one(port: int, number: int) -> bytes:
        async with connected(port) as client:
            body = codec.encode({"number": number})
            await client.say(
                b"POST /%d HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (number, len(body))
            )
            await client.say(body)
            return (await client.answer()).body

    async with listening(echo, HttpLimits()) as (_, port):
        bodies = await asyncio.gather(*(one(port, number) for number in range(100)))
    assert bodies == [f'/{number}|{{"number":{number}}}'.encode() for number in range(100)]


def test_dates_are_written_in_english_whatever_the_locale() -> None:
    assert http_date(784_111_777_000) == b"Sun, 06 Nov 1994 08:49:37 GMT"
