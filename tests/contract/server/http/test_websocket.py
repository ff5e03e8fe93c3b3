"""The WebSocket of our own server: the upgrade, the frames, and every way to be rude."""

import asyncio
import base64
import hashlib

import pytest

from perdure.core import limits
from perdure.schema.files.pty import PtyStart
from perdure.schema.location import LocationRef
from perdure.server.settings import HttpLimits
from tests.contract.server.served_runtime import Backend
from tests.support.raw_http import call, listening
from tests.support.websocket import (
    BINARY,
    CLOSE,
    PING,
    PONG,
    TEXT,
    RefusedUpgradeError,
    connected,
    masked,
)

FRIEND = "https://friend.example"
BASIC = {"authorization": "Basic " + base64.b64encode(b"opencode:secret").decode()}


READY = "ready"


@pytest.fixture
async def pty(backend: Backend) -> str:
    """The path of a terminal that repeats what is typed, byte by byte."""
    start = PtyStart(
        command="/bin/sh",
        args=("-c", f"stty raw -echo; printf {READY}; exec cat"),
        cwd=backend.here,
        title="echo",
        env=(),
    )
    here, terminals = LocationRef(backend.here), backend.runtime.terminals
    made = await terminals.create(here, start)
    attach = await terminals.reader(here, made.id, 0)
    with attach() as reader:
        printed = reader.kept()
        while READY not in printed:
            printed += await reader.next() or ""
    return f"/api/pty/{made.id}"


@pytest.fixture
def path(pty: str) -> str:
    """Where to connect; what was printed before is not sent."""
    return f"{pty}/connect?cursor=-1"


async def test_what_is_typed_comes_back_after_the_cursor(port: int, path: str) -> None:
    async with connected(port, path) as socket:
        assert await socket.frame() == (BINARY, b'\0{"cursor":%d}' % len(READY))
        await socket.say("h\u00e9llo")
        assert await socket.until("llo") == "h\u00e9llo"


async def test_the_key_is_answered_as_the_protocol_says(port: int, path: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    key = "dGhlIHNhbXBsZSBub25jZQ=="
    head = (
        f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: keep-alive, Upgrade\r\n"
        f"upgrade: WebSocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: {key}\r\n\r\n"
    )
    writer.write(head.encode())
    async with asyncio.timeout(5):
        answer = await reader.readuntil(b"\r\n\r\n")
    writer.transport.abort()
    guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(f"{key}{guid}".encode()).digest())
    assert answer.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
    assert b"sec-websocket-accept: " + accept in answer


async def test_what_was_sent_with_the_request_is_not_lost(port: int, path: str) -> None:
    async with connected(port, path, early=masked(TEXT, b"early")) as socket:
        assert await socket.until("early") == "early"


async def test_fragments_pings_and_binary_text_are_understood(port: int, path: str) -> None:
    async with connected(port, path) as socket:
        await socket.cursor()
        await socket.raw(
            masked(TEXT, b"a", final=False)
            + masked(PING, b"there?")
            + masked(0, b"b")
            + masked(BINARY, b"\xff not text")
            + masked(BINARY, b"c")
            + masked(PONG, b"")
        )
        typed, ponged = "", False
        while not (ponged and len(typed) >= 3):
            kind, data = await socket.frame()
            ponged = ponged or (kind, data) == (PONG, b"there?")
            typed += data.decode() if kind == TEXT else ""
        assert typed == "abc"


async def test_a_close_is_answered_and_ends_the_connection(port: int, path: str) -> None:
    async with connected(port, path) as socket:
        await socket.cursor()
        await socket.raw(masked(CLOSE, b"\x03\xe8bye"))
        assert await socket.closed() == (1000, "")
        assert await socket.end() == b""


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x81\x01a", 1002),
        (b"\xff" * 40, 1002),
        (masked(TEXT, b"\xff"), 1007),
        (masked(CLOSE, b"\x03"), 1002),
        (masked(BINARY, b"x" * (limits.SOCKET_MESSAGE_BYTES_MAX + 1)), 1009),
    ],
)
async def test_a_rude_client_is_told_why_and_disconnected(
    port: int, path: str, data: bytes, code: int
) -> None:
    async with connected(port, path) as socket:
        await socket.cursor()
        await socket.raw(data)
        assert (await socket.closed())[0] == code
        assert await socket.end() == b""


async def test_a_client_that_does_not_answer_a_close_is_let_go(backend: Backend, path: str) -> None:
    app = backend.app()
    async with listening(app) as (_, port), connected(port, path) as socket:
        await socket.cursor()
        app.begin_shutdown()
        assert await socket.closed() == (1001, "server is shutting down")
        assert await socket.end() == b""


async def test_an_idle_connection_is_pinged(backend: Backend, path: str) -> None:
    given = backend.settings(heartbeat_seconds=0.05)
    async with backend.port(given) as port, connected(port, path) as socket:
        await socket.cursor()
        assert await socket.frame() == (PING, b"")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Basic bm9wZTpub3Bl"}, 401),
        (BASIC | {"origin": "https://evil.example"}, 403),
        (BASIC | {"origin": "null"}, 403),
        (BASIC | {"host": "evil.example"}, 403),
        (BASIC | {"sec-websocket-version": "8"}, 400),
        (BASIC | {"sec-websocket-key": "short"}, 400),
        (BASIC | {"sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==!"}, 400),
        (BASIC, 101),
        (BASIC | {"origin": "http://localhost"}, 101),
        (BASIC | {"origin": FRIEND}, 101),
    ],
)
async def test_an_upgrade_is_checked_before_it_happens(
    backend: Backend, path: str, headers: dict[str, str], status: int
) -> None:
    given = backend.settings(password="secret", origins=frozenset({FRIEND}))
    async with backend.port(given) as port:
        assert await upgrade_status(port, path, headers) == status


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("?ticket={good}", 101),
        ("?ticket=bad", 403),
        ("?ticket=", 403),
        ("?ticket={good}&ticket={good}", 400),
        ("?ticket={good}&cursor=-2", 400),
        ("?ticket={good}&cursor=x", 400),
        ("?auth_token=" + BASIC["authorization"].removeprefix("Basic "), 101),
        ("?auth_token=bm9wZTpub3Bl", 401),
    ],
)
async def test_a_ticket_takes_the_place_of_the_credential(
    backend: Backend, pty: str, query: str, status: int
) -> None:
    async with backend.port(backend.settings(password="secret")) as port:
        issued = (await call(port, "POST", f"{pty}/connect-token", headers=BASIC)).json()["data"]
        asked = query.replace("{good}", issued["ticket"])
        assert await upgrade_status(port, f"{pty}/connect{asked}", {}) == status
        # A ticket is for one terminal and for no other path.
        other = (await call(port, "POST", f"{pty}/connect-token", headers=BASIC)).json()["data"]
        assert (await call(port, "GET", f"/api/pty?ticket={other['ticket']}")).status == 401


@pytest.mark.parametrize(
    ("path", "status"),
    [("/api/pty/pty_none/connect", 404), ("/api/pty/zz/connect", 400), ("/api/pty", 400)],
)
async def test_what_is_not_there_is_refused_before_the_upgrade(
    port: int, path: str, status: int
) -> None:
    assert await upgrade_status(port, path, {}) == status


async def test_without_an_upgrade_there_is_nothing_to_connect_to(port: int, pty: str) -> None:
    answer = await call(port, "GET", f"{pty}/connect")
    assert (answer.status, answer.json()["_tag"]) == (400, "InvalidRequestError")
    assert (await call(port, "GET", f"{pty}/connect?ticket=bad")).status == 403


async def test_a_ticket_for_another_site_needs_the_header(
    port: int, backend: Backend, pty: str
) -> None:
    path = f"{pty}/connect-token"
    assert (await call(port, "POST", path)).status == 200
    own = {"origin": "http://localhost"}
    assert (await call(port, "POST", path, headers=own)).status == 200
    async with backend.port(backend.settings(origins=frozenset({FRIEND}))) as open_port:
        theirs = {"origin": FRIEND}
        assert (await call(open_port, "POST", path, headers=theirs)).status == 403
        shown = theirs | {"x-opencode-ticket": "1"}
        answer = (await call(open_port, "POST", path, headers=shown)).json()["data"]
        assert answer == {"ticket": answer["ticket"], "expires_in": 60}


async def test_a_flood_of_small_messages_is_held_back_and_none_is_lost(
    backend: Backend, path: str
) -> None:
    window = HttpLimits(body_window_bytes=1_024)
    async with backend.port(limits=window) as port, connected(port, path) as socket:
        await socket.raw(b"".join(masked(TEXT, b"%d," % number) for number in range(5_000)))
        text = await socket.until(",4999,")
    assert text == "".join(f"{number}," for number in range(5_000))


async def upgrade_status(port: int, path: str, headers: dict[str, str]) -> int:
    """The status of the answer; what is no upgrade must be one of our failures."""
    try:
        async with connected(port, path, headers):
            return 101
    except RefusedUpgradeError as error:
        return error.status if b'"_tag"' in error.body else 0


async def test_pings_of_a_client_that_does_not_read_are_answered_once(port: int, path: str) -> None:
    """The kernel takes some of the pongs; what it does not take is one, however many are owed."""
    async with connected(port, path) as socket:
        await socket.cursor()
        socket.transport.pause_reading()
        pings = 200_000
        await socket.raw(masked(PING, b"x" * 125) * pings + masked(PING, b"last!"))
        socket.transport.resume_reading()
        pongs = 0
        async with asyncio.timeout(20):
            while (frame := await socket.frame()) != (PONG, b"last!"):
                assert frame[0] == PONG
                pongs += 1
        assert pongs < pings
        await socket.say("still here")
        assert await socket.until("still here") == "still here"
