"""The HTTP client against real sockets: framing, kept connections, cuts, proxies and TLS."""

import asyncio
import gzip
import ssl
import subprocess
import zlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from perdure.host.http import proxy as http_proxy
from perdure.host.http.client import HttptoolsTransport
from perdure.net.transport import HttpRequest, TransportError
from tests.contract.host.loopback import Received, listening, replying, response, serving


@asynccontextmanager
async def client(transport: HttptoolsTransport) -> AsyncGenerator[HttptoolsTransport]:
    try:
        async with asyncio.timeout(20):
            yield transport
    finally:
        await transport.aclose()


def post(
    url: str, *body: bytes, method: str = "POST", headers: Mapping[str, str] | None = None
) -> HttpRequest:
    return HttpRequest(url=url, headers=headers or {}, body=body, method=method)


async def fetch(transport: HttptoolsTransport, request: HttpRequest) -> tuple[int, bytes]:
    async with transport.open(request) as answer:
        body = b"".join([chunk async for chunk in answer.chunks])
        return answer.status, body


async def test_a_request_arrives_whole_and_its_answer_comes_back() -> None:
    async with serving(replying(response(b"hello"))) as server, client(HttptoolsTransport()) as web:
        request = post(f"{server.url}/a%20b?x=1", b"one", b"two", headers={"X-Session-Id": "s"})
        assert await fetch(web, request) == (200, b"hello")
    (seen,) = server.requests
    assert (seen.method, seen.target, seen.body) == ("POST", "/a%20b?x=1", b"onetwo")
    assert seen.headers["x-session-id"] == "s"
    assert seen.headers["host"] == f"127.0.0.1:{server.port}"


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        (CHUNKED, b"3\r\nabc\r\n", b"3\r\ndef\r\n0\r\n\r\n"),
        (CHUNKED + b"6;ext=1\r\nabcdef\r\n0\r\ntrailer: x\r\n\r\n",),
        tuple(bytes((byte,)) for byte in CHUNKED + b"6\r\nabcdef\r\n0\r\n\r\n"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + response(b"abcdef"),),
        (response(gzip.compress(b"abcdef", mtime=0), headers="content-encoding: gzip\r\n"),),
        (response(zlib.compress(b"abcdef"), headers="content-encoding: deflate\r\n"),),
        (response(zlib.compress(b"abcdef")[2:-4], headers="content-encoding: deflate\r\n"),),
    ],
    ids=["chunks", "one-piece", "byte-by-byte", "interim", "gzip", "deflate", "raw-deflate"],
)
async def test_a_body_is_the_same_however_it_is_framed(pieces: tuple[bytes, ...]) -> None:
    async with serving(replying(*pieces)) as server, client(HttptoolsTransport()) as web:
        assert await fetch(web, post(server.url)) == (200, b"abcdef")


async def test_a_body_may_end_with_the_connection() -> None:
    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nabc")
        writer.close()

    async with serving(answer) as server, client(HttptoolsTransport()) as web:
        assert await fetch(web, post(server.url)) == (200, b"abc")
        assert await fetch(web, post(server.url)) == (200, b"abc")
    assert server.connections == 2


async def test_connections_are_used_again() -> None:
    async with serving(replying(response(b"ok"))) as server, client(HttptoolsTransport()) as web:
        for _ in range(5):
            assert await fetch(web, post(server.url, b"x")) == (200, b"ok")
    assert (server.connections, len(server.requests)) == (1, 5)


async def test_requests_at_the_same_time_have_connections_of_their_own() -> None:
    async with serving(replying(response(b"ok"))) as server, client(HttptoolsTransport()) as web:
        answers = await asyncio.gather(*(fetch(web, post(server.url)) for _ in range(20)))
    assert answers == [(200, b"ok")] * 20


async def test_a_kept_connection_that_the_server_closed_is_replaced_once() -> None:
    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        # The second request on a connection finds it closing, as after a server's idle limit.
        if writer in answered:
            writer.transport.abort()
            return
        answered.add(writer)
        writer.write(response(b"ok"))

    answered: set[asyncio.StreamWriter] = set()
    async with serving(answer) as server, client(HttptoolsTransport()) as web:
        assert await fetch(web, post(server.url, b"1")) == (200, b"ok")
        assert await fetch(web, post(server.url, b"2")) == (200, b"ok")
    assert [request.body for request in server.requests] == [b"1", b"2", b"2"]


async def test_a_request_is_not_sent_again_on_a_fresh_connection() -> None:
    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async with serving(answer) as server, client(HttptoolsTransport()) as web:
        with pytest.raises(TransportError, match="before an answer"):
            await fetch(web, post(server.url))
    assert len(server.requests) == 1


async def test_an_idle_connection_is_closed_after_its_time() -> None:
    impatient = HttptoolsTransport(idle_seconds_max=0.01)
    async with serving(replying(response(b"ok"))) as server, client(impatient) as web:
        await fetch(web, post(server.url))
        await server.closed.wait()
        assert await fetch(web, post(server.url)) == (200, b"ok")
    assert server.connections == 2


async def test_a_reader_that_breaks_off_closes_the_connection_at_once() -> None:
    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED + b"1\r\nx\r\n")
        await writer.drain()

    async with serving(answer) as server, client(HttptoolsTransport()) as web:
        opened = web.open(post(server.url))
        answered = await opened.__aenter__()
        assert await anext(answered.chunks) == b"x"
        enough = RuntimeError("enough")
        assert not await opened.__aexit__(RuntimeError, enough, None)
        async with asyncio.timeout(0.5):
            await server.closed.wait()


async def test_cancelling_while_the_answer_is_awaited_closes_the_connection() -> None:
    arrived = asyncio.Event()

    async def answer(_: Received, __: asyncio.StreamWriter) -> None:
        arrived.set()

    async with serving(answer) as server, client(HttptoolsTransport()) as web:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(fetch(web, post(server.url)))
            await arrived.wait()
            task.cancel()
        await server.closed.wait()
    assert task.cancelled()


async def test_a_connection_survives_an_answer_whose_end_comes_a_little_late() -> None:
    left = asyncio.Event()

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED + b"4\r\ndone\r\n")
        await left.wait()
        writer.write(b"0\r\n\r\n")
        ended.set()

    ended = asyncio.Event()
    async with serving(answer) as server, client(HttptoolsTransport()) as web:
        async with web.open(post(server.url)) as opened:
            assert await anext(opened.chunks) == b"done"
        left.set()
        await ended.wait()
        # The end is in the socket; a few turns of the loop bring it to the client.
        for _turn in range(10):
            await asyncio.sleep(0)
        assert await fetch(web, post(server.url)) == (200, b"done")
    assert server.connections == 1


async def test_a_connection_whose_answer_goes_on_is_closed() -> None:
    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED)
        while not writer.is_closing():
            writer.write(b"1000\r\n" + bytes(0x1000) + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0)

    async with serving(answer) as server, client(HttptoolsTransport()) as web:
        async with web.open(post(server.url)) as opened:
            await anext(opened.chunks)
        await server.closed.wait()


async def test_a_slow_reader_slows_the_server_down() -> None:
    total = 64 * 1024 * 1024
    written = 0

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {total}\r\n\r\n".encode())
        for _piece in range(total // 65536):
            writer.write(bytes(65536))
            await writer.drain()
            written += 65536

    async with (
        serving(answer) as server,
        client(HttptoolsTransport()) as web,
        web.open(post(server.url)) as opened,
    ):
        before = -1
        while written != before:
            before = written
            for _ in range(200):
                await asyncio.sleep(0)
        assert written < total // 2
        assert sum([len(chunk) async for chunk in opened.chunks]) == total


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"not http at all\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc", "middle of the answer"),
        (CHUNKED + b"5\r\nab", "middle of the answer"),
        (CHUNKED + b"zz\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 80_000, "larger than"),
        (b"HTTP/1.1 200 OK\r\n", "middle of the answer"),
        (b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", "HTTP|middle"),
        (response(b"x", headers="content-encoding: br\r\n"), "content encoding"),
        (response(b"junk", headers="content-encoding: gzip\r\n"), "damaged"),
        (
            response(
                gzip.compress(bytes(9999), mtime=0)[:-9], headers="content-encoding: gzip\r\n"
            ),
            "cut off",
        ),
    ],
    ids=[
        *("text", "short-body", "short-chunk", "bad-chunk", "huge-head", "no-head", "upgrade"),
        *("unknown-encoding", "bad-gzip", "short-gzip"),
    ],
)
async def test_a_broken_answer_is_a_transport_error(answer: bytes, message: str) -> None:
    async def broken(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        writer.close()

    async with serving(broken) as server, client(HttptoolsTransport()) as web:
        with pytest.raises(TransportError, match=message):
            await fetch(web, post(server.url))


async def test_an_answer_cut_at_any_byte_is_whole_or_a_transport_error() -> None:
    whole = CHUNKED + b"3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n"
    cut_at = 0

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(whole[:cut_at])
        writer.close()

    async with serving(answer) as server, client(HttptoolsTransport()) as web:
        for offset in range(len(whole)):
            cut_at = offset
            with pytest.raises(TransportError):
                await fetch(web, post(server.url))


async def test_a_small_compressed_body_never_becomes_one_huge_piece() -> None:
    bomb = gzip.compress(bytes(32 * 1024 * 1024))
    answer = replying(response(bomb, headers="content-encoding: gzip\r\n"))
    async with (
        serving(answer) as server,
        client(HttptoolsTransport()) as web,
        web.open(post(server.url)) as opened,
    ):
        sizes = [len(chunk) async for chunk in opened.chunks]
    assert sum(sizes) == 32 * 1024 * 1024
    assert max(sizes) <= 1024 * 1024


async def test_a_refused_connection_says_where() -> None:
    async with serving(replying()) as server:
        port = server.port
    async with client(HttptoolsTransport()) as web:
        with pytest.raises(TransportError, match=f"127.0.0.1:{port}"):
            await fetch(web, post(f"http://127.0.0.1:{port}/"))


async def test_connecting_has_a_time_limit() -> None:
    # The server waits for a request in plain text: TLS never begins.
    impatient = HttptoolsTransport(connect_seconds_max=0.05)
    async with serving(replying()) as server, client(impatient) as web:
        with pytest.raises(TransportError, match="within"):
            await fetch(web, post(f"https://127.0.0.1:{server.port}/"))


async def test_a_request_may_say_how_long_connecting_takes() -> None:
    async with serving(replying()) as server, client(HttptoolsTransport()) as web:
        request = replace(post(f"https://127.0.0.1:{server.port}/"), connect_seconds_max=0.05)
        with pytest.raises(TransportError, match=r"within 0\.05 s \(`connect`\)"):
            await fetch(web, request)


@pytest.mark.parametrize(
    "url", ["ftp://host/", "http://", "nonsense", "http://a:b@host/", "http://host:99999/"]
)
async def test_a_url_that_cannot_be_requested_is_refused(url: str) -> None:
    async with client(HttptoolsTransport()) as web:
        with pytest.raises(TransportError):
            await fetch(web, post(url))


async def test_a_header_with_a_line_break_is_refused_without_showing_it() -> None:
    async with serving(replying(response(b""))) as server, client(HttptoolsTransport()) as web:
        with pytest.raises(TransportError) as refused:
            await fetch(web, post(server.url, headers={"authorization": "Bearer s3cret\r\nx: y"}))
    assert "s3cret" not in str(refused.value)
    assert server.requests == []


async def test_plain_requests_go_through_the_proxy_in_absolute_form() -> None:
    async with serving(replying(response(b"proxied"))) as proxy:
        rules = http_proxy.from_environment(
            {"HTTP_PROXY": f"http://me:pw@127.0.0.1:{proxy.port}", "NO_PROXY": "direct.test"}
        )
        async with client(HttptoolsTransport(proxies=rules)) as web:
            assert await fetch(web, post("http://models.test/v1")) == (200, b"proxied")
    (seen,) = proxy.requests
    assert seen.target == "http://models.test/v1"
    assert seen.headers["host"] == "models.test"
    assert seen.headers["proxy-authorization"] == "Basic bWU6cHc="


def test_this_machine_and_listed_hosts_are_reached_without_proxy() -> None:
    rules = http_proxy.from_environment(
        {"https_proxy": "proxy.test:3128", "no_proxy": " .internal.test, 10.0.0.1"}
    )
    assert rules.proxy_for("https", "models.test", 443) == http_proxy.Proxy("proxy.test", 3128)
    for host in ("localhost", "127.0.0.1", "::1", "internal.test", "a.internal.test", "10.0.0.1"):
        assert rules.proxy_for("https", host, 443) is None
    assert rules.proxy_for("http", "models.test", 80) is None


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for models.test, with its key in the same file."""
    path = tmp_path_factory.mktemp("tls") / "models.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-keyout", f"{path}.key", "-out", str(path), "-days", "2"),
            *("-subj", "/CN=models.test", "-addext", "subjectAltName=DNS:models.test"),
        ],
        check=True,
        capture_output=True,
    )
    return path


@asynccontextmanager
async def tunnelling_proxy(certificate: Path, *, refuse: bool) -> AsyncGenerator[int]:
    """A proxy whose every tunnel leads to one TLS server that says `secret`."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"CONNECT models.test:443 HTTP/1.1\r\n")
        if refuse:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        there, to_there = await asyncio.open_connection("127.0.0.1", site.port)
        try:
            await asyncio.gather(pump(reader, to_there), pump(there, writer))
        finally:
            to_there.transport.abort()

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, f"{certificate}.key")
    async with (
        serving(replying(response(b"secret")), tls=tls) as site,
        listening(tunnel) as port,
    ):
        yield port


async def test_https_goes_through_a_tunnel_and_trusts_only_known_certificates(
    certificate: Path,
) -> None:
    async with tunnelling_proxy(certificate, refuse=False) as port:
        rules = http_proxy.from_environment({"HTTPS_PROXY": f"http://127.0.0.1:{port}"})
        trusting = HttptoolsTransport(
            proxies=rules, tls=lambda: ssl.create_default_context(cafile=str(certificate))
        )
        async with client(trusting) as web:
            assert await fetch(web, post("https://models.test/")) == (200, b"secret")
        async with client(HttptoolsTransport(proxies=rules)) as web:
            with pytest.raises(TransportError, match="certificate"):
                await fetch(web, post("https://models.test/"))


async def test_a_proxy_that_refuses_is_named_in_the_error(certificate: Path) -> None:
    async with tunnelling_proxy(certificate, refuse=True) as port:
        rules = http_proxy.from_environment({"HTTPS_PROXY": f"http://127.0.0.1:{port}"})
        async with client(HttptoolsTransport(proxies=rules)) as web:
            with pytest.raises(TransportError, match="proxy refused: 407"):
                await fetch(web, post("https://models.test/"))
