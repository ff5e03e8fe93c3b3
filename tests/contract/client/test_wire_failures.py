"""Servers that answer badly: each failure is one ClientError with a reason, and nothing hangs."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from perdure.client import ClientError, WireClient, WireError
from tests.contract.host.loopback import replying, serving
from tests.requirements import requirement

PATIENCE_SECONDS = 5
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"


@asynccontextmanager
async def answering(answer: bytes) -> AsyncGenerator[WireClient]:
    """A server that says `answer` to everybody and hangs up."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, WireClient(f"http://127.0.0.1:{port}") as client:
        async with asyncio.timeout(PATIENCE_SECONDS):
            yield client


def answer(
    body: bytes, *, status: str = "200 OK", type: bytes | None = b"application/json"
) -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n".encode()
    return head + (b"" if type is None else b"content-type: " + type + b"\r\n") + b"\r\n" + body


@requirement("S118")
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"", "transport"),
        (b"HTTP/1.1 200 OK\r\ncontent-le", "transport"),
        (b"not HTTP at all\r\n\r\n", "transport"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{", "transport"),
        (answer(b"<html>", type=b"text/html"), "unsupported-content-type"),
        (answer(b"{}", type=None), "unsupported-content-type"),
        (answer(b"{"), "malformed-response"),
        (answer(b"[1]"), "malformed-response"),
        (answer(b"{}"), "malformed-response"),
        (answer(b'{"data": "\xff"}'), "malformed-response"),
        (answer(b"[" * 100_000), "malformed-response"),
        (answer(b"Bad gateway", status="502 Bad Gateway", type=b"text/plain"), "unexpected-status"),
        (answer(b'{"error":1}', status="500 Oops"), "unexpected-status"),
        (answer(b"", status="302 Found"), "unexpected-status"),
        (answer(b'{"data":{}}', status="201 Created"), "unexpected-status"),
    ],
)
async def test_a_bad_answer_is_one_client_error_with_a_reason(said: bytes, reason: str) -> None:
    async with answering(said) as client:
        with pytest.raises(ClientError) as caught:
            await client.sessions.get("ses_one")
    assert caught.value.reason == reason


@requirement("S117")
async def test_a_failure_is_declared_by_its_tag_whatever_its_kind() -> None:
    said = answer(b'{"_tag":"NewError","message":"m","extra":1}', status="418 Teapot")
    async with answering(said) as client:
        with pytest.raises(WireError) as caught:
            await client.sessions.get("ses_one")
    assert caught.value.value == {"_tag": "NewError", "message": "m", "extra": 1}
    assert (caught.value.tag, caught.value.status) == ("NewError", 418)


@requirement("S121", "S133")
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"", "transport"),
        (STREAM_HEAD + b"transfer-encoding: chunked\r\n\r\n5\r\ndata", "transport"),
        (answer(b"{}"), "unsupported-content-type"),
        (STREAM_HEAD + b"\r\ndata: {oops\n\n", "malformed-response"),
        (STREAM_HEAD + b"\r\ndata: 7\n\n", "malformed-response"),
        (answer(b"no", status="503 Busy", type=b"text/plain"), "unexpected-status"),
    ],
)
async def test_every_failure_of_a_stream_appears_while_iterating(said: bytes, reason: str) -> None:
    async with answering(said) as client:
        stream = client.events.subscribe()
        with pytest.raises(ClientError) as caught:
            await anext(stream)
    assert caught.value.reason == reason


async def test_a_stream_gives_whole_events_and_drops_one_that_was_cut_off() -> None:
    said = STREAM_HEAD + b'\r\n: hello\n\ndata: {"a":\ndata: 1}\r\n\r\ndata: {"b":2}\n'
    async with answering(said) as client:
        assert [event async for event in client.events.subscribe()] == [{"a": 1}]


@requirement("S118", "S123")
async def test_nobody_listening_is_a_transport_failure_of_the_call_alone() -> None:
    async with WireClient("http://127.0.0.1:1") as client:
        with pytest.raises(ClientError) as caught:
            await client.health.get()
    assert caught.value.reason == "transport"
    assert str(caught.value)


async def test_a_url_that_is_none_is_a_transport_failure() -> None:
    async with WireClient("not a url") as client:
        with pytest.raises(ClientError) as caught:
            await client.health.get()
    assert caught.value.reason == "transport"


@pytest.fixture
def unknown_certificate(tmp_path: Path) -> ssl.SSLContext:
    """What is shown of the answer of an unknown server."""
    path = tmp_path / "own.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-keyout", f"{path}.key", "-out", str(path), "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.load_cert_chain(path, f"{path}.key")
    return shown


async def test_an_unknown_certificate_is_refused_on_this_machine_too(
    unknown_certificate: ssl.SSLContext,
) -> None:
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        serving(replying(answer(b'{"data":{}}')), tls=unknown_certificate) as server,
        WireClient(f"https://127.0.0.1:{server.port}") as client,
    ):
        with pytest.raises(ClientError, match="certificate") as caught:
            await client.sessions.get("ses_one")
    assert caught.value.reason == "transport"
    assert server.requests == []
