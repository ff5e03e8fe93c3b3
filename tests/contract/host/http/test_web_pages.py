"""Pages of the web from real sockets: what is never connected to, and what a server may cost."""

import asyncio
import gzip
import ssl
import subprocess
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.host.http import proxy as http_proxy
from perdure.host.http import web_pages
from perdure.host.http.web_pages import WebClient
from perdure.ports import WebFetchError, WebPage, WebRequest
from tests.contract.host.loopback import (
    Answer,
    Received,
    listening,
    replying,
    replying_late,
    response,
    serving,
)
from tests.requirements import requirement
from tests.support.inputs.decompression_bombs import gzip_bomb
from tests.support.inputs.internal_addresses import BY_HOST, RESOLVED

OK = response(b"secret of the network", headers="content-type: text/plain\r\n")


@dataclass
class Names:
    """A resolver of the test's own. Answers are given one by one, the last one for ever."""

    known: dict[str, list[Sequence[str]]] = field(default_factory=dict[str, list[Sequence[str]]])
    asked: list[str] = field(default_factory=list[str])

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self.known.get(host)
        if answers is None:
            raise OSError("no such name")
        return answers.pop(0) if len(answers) > 1 else answers[0]


async def fetch(
    url: str, *allowed: str, client: WebClient | None = None, seconds: float = 10
) -> WebPage:
    request = WebRequest(url=url, allowed_hosts=allowed, seconds_max=seconds)
    async with asyncio.timeout(20):
        return await (client or WebClient()).fetch(request)


async def failure(
    url: str, *allowed: str, client: WebClient | None = None, seconds: float = 10
) -> str:
    with pytest.raises(WebFetchError) as failed:
        await fetch(url, *allowed, client=client, seconds=seconds)
    assert len(str(failed.value)) < 500
    return str(failed.value)


def redirecting(*locations: str) -> Answer:
    """The n-th path leads to the n-th location; the path after the last one is a page."""

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        step = int(request.target.strip("/") or 0)
        if step == len(locations):
            writer.write(OK)
            return
        writer.write(response(b"", status="302 Found", headers=f"location: {locations[step]}\r\n"))

    return answer


@requirement("S184")
async def test_no_spelling_of_an_internal_host_is_connected_to() -> None:
    names = Names()
    client = WebClient(resolve=names)
    async with serving(replying(OK)) as server:
        for host in BY_HOST:
            await failure(f"http://{host}:{server.port}/", client=client)
    assert server.connections == 0
    assert names.asked == []


async def test_no_redirect_leads_to_an_internal_host() -> None:
    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        host = BY_HOST[int(request.target.strip("/"))]
        location = f"location: http://{host}:{inner.port}/\r\n".encode()
        writer.write(b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\n" + location + b"\r\n")

    async with serving(replying(OK)) as inner, serving(answer) as outer:
        allowed = f"127.0.0.1:{outer.port}"
        for index in range(len(BY_HOST)):
            await failure(f"{outer.url}/{index}", allowed)
    assert inner.connections == 0
    assert len(outer.requests) == len(BY_HOST)


@pytest.mark.parametrize("address", RESOLVED)
async def test_a_name_that_leads_to_an_internal_address_is_refused(address: str) -> None:
    mixed = ("8.8.8.8", address)
    names = Names({"plain.example": [(address,)], "mixed.example": [mixed]})
    client = WebClient(resolve=names)
    async with serving(replying(OK)) as server:
        for host in names.known:
            told = await failure(f"http://{host}:{server.port}/", client=client)
            assert "not on the public internet" in told
    assert server.connections == 0


async def test_a_chain_of_redirects_that_turns_internal_at_its_last_hop_is_refused() -> None:
    names = Names({"start.example": [("127.0.0.1",)], "inner.example": [("127.0.0.1",)]})
    async with serving(replying(OK)) as inner:
        last = f"http://inner.example:{inner.port}/"
        async with serving(redirecting("/1", "/2", "/3", "/4", last)) as outer:
            start = f"start.example:{outer.port}"
            told = await failure(f"http://{start}/", start, client=WebClient(resolve=names))
    assert "inner.example" in told
    assert (inner.connections, len(outer.requests)) == (0, 5)


async def test_a_name_is_not_looked_up_again_to_connect() -> None:
    # Global when it is judged, internal a moment later: the connection must go to the first.
    async with serving(replying(OK)) as server:
        names = Names({"rebind.example": [("192.0.2.1",), ("127.0.0.1",)]})
        # An address at which no server answers, allowed so that it is used at all.
        url = f"http://rebind.example:{server.port}/"
        await failure(url, "rebind.example", client=WebClient(resolve=names), seconds=0.3)
    assert names.asked == ["rebind.example"]
    assert server.connections == 0


async def test_one_allowed_port_of_a_host_opens_no_other() -> None:
    names = Names({"docs.example": [("127.0.0.1",)]})
    async with (
        serving(replying(OK)) as inner,
        serving(redirecting(f"http://docs.example:{inner.port}/")) as outer,
    ):
        start = f"docs.example:{outer.port}"
        told = await failure(f"http://{start}/", start, client=WebClient(resolve=names))
    assert f"docs.example:{inner.port} is not on the public internet" in told
    assert (inner.connections, len(outer.requests)) == (0, 1)


@requirement("S184")
async def test_an_allowed_host_is_fetched_without_credentials() -> None:
    async with serving(replying(OK)) as server:
        page = await fetch(f"{server.url}/a?b=c#d", "127.0.0.1")
    assert page.body == b"secret of the network"
    assert page.content_type == "text/plain"
    assert page.url == f"{server.url}/a?b=c#d"
    (seen,) = server.requests
    assert (seen.method, seen.target) == ("GET", "/a?b=c")
    assert not seen.headers.keys() & {"cookie", "authorization", "referer"}
    assert seen.headers["user-agent"].startswith("Mozilla/5.0")


async def test_the_server_is_asked_under_its_name_at_the_judged_address() -> None:
    names = Names({"docs.example": [("127.0.0.1",)]})
    async with serving(replying(OK)) as server:
        url = f"http://docs.example:{server.port}/"
        await fetch(url, "docs.example", client=WebClient(resolve=names))
    assert server.requests[0].headers["host"] == f"docs.example:{server.port}"
    assert names.asked == ["docs.example"]


async def test_the_next_address_of_a_host_is_tried_when_one_does_not_answer() -> None:
    async with listening(_never) as closed:
        pass
    async with serving(replying(OK)) as server:
        names = Names({"docs.example": [("127.0.0.2", "127.0.0.1")]})
        client = WebClient(resolve=names)
        page = await fetch(f"http://docs.example:{server.port}/", "docs.example", client=client)
        assert page.body == b"secret of the network"
        told = await failure(f"http://docs.example:{closed}/", "docs.example", client=client)
    assert "Cannot connect" in told


def certified(folder: Path) -> tuple[Path, Path]:
    """A certificate for docs.example, and its key."""
    certificate, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=docs.example", "-addext"),
            *("subjectAltName=DNS:docs.example", "-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
        timeout=30,
    )
    return certificate, key


async def test_a_certificate_must_be_of_the_name_in_the_url(tmp_path: Path) -> None:
    certificate, key = certified(tmp_path)
    asked: list[str] = []
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    tls.sni_callback = lambda _, name, __: asked.append(str(name))
    names = Names({"docs.example": [("127.0.0.1",)], "other.example": [("127.0.0.1",)]})
    trusting = WebClient(
        resolve=names, tls=lambda: ssl.create_default_context(cafile=str(certificate))
    )
    async with serving(replying(OK), tls=tls) as server:
        url = f"https://docs.example:{server.port}/"
        page = await fetch(url, "*.example", client=trusting)
        assert page.body == b"secret of the network"
        assert asked == ["docs.example"]
        other = f"https://other.example:{server.port}/"
        assert "certificate" in await failure(other, "*.example", client=trusting)
        assert "certificate" in await failure(url, "*.example", client=WebClient(resolve=names))
    assert len(server.requests) == 1


async def test_redirects_are_followed_and_the_last_place_is_told() -> None:
    async with serving(redirecting("/1", "2", "?", "//{}/3")) as server:
        told = await failure(f"{server.url}/", "127.0.0.1")
        assert "cannot follow" in told or "redirects more" in told
    async with serving(redirecting("/1", "/2", "/3", "/4", "/5")) as server:
        page = await fetch(f"{server.url}/", "127.0.0.1")
    assert page.url == f"{server.url}/5"
    assert len(server.requests) == limits.WEB_REDIRECTS_MAX + 1


async def test_endless_redirects_come_to_an_end() -> None:
    async with serving(redirecting(*["/0"] * 100)) as server:
        told = await failure(f"{server.url}/", "127.0.0.1")
    assert "more than 5 times" in told
    assert len(server.requests) == limits.WEB_REDIRECTS_MAX + 1


@pytest.mark.parametrize(
    "location",
    ["file:///etc/passwd", "ftp://127.0.0.1/", "gopher://x", "http://u:p@127.0.0.1/", "data:,x"],
)
async def test_a_redirect_away_from_the_web_is_refused(location: str) -> None:
    async with serving(redirecting(location)) as server:
        assert "cannot follow" in await failure(f"{server.url}/", "127.0.0.1")


async def test_a_guard_that_doubts_a_browser_is_told_who_asks() -> None:
    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        if request.headers["user-agent"].startswith("Mozilla"):
            headers = "cf-mitigated: challenge\r\n"
            writer.write(response(b"", status="403 Forbidden", headers=headers))
        else:
            writer.write(OK)

    async with serving(answer) as server:
        assert (await fetch(server.url, "127.0.0.1")).body == b"secret of the network"
    assert [r.headers["user-agent"].split("/")[0] for r in server.requests] == [
        "Mozilla",
        "perdure",
    ]


@pytest.mark.parametrize(
    ("status", "told"),
    [("404 Not Found", "404 Not Found"), ("500 Oops", "500 Internal Server"), ("799 X", "799")],
)
async def test_an_error_of_the_server_is_named(status: str, told: str) -> None:
    async with serving(replying(response(b"page", status=status))) as server:
        assert told in await failure(server.url, "127.0.0.1")


async def test_a_name_that_does_not_exist_is_said_to() -> None:
    assert "cannot be found" in await failure(
        "http://x.example/", client=WebClient(resolve=Names())
    )
    nowhere = Names({"x.example": [()]})
    assert "no address" in await failure("http://x.example/", client=WebClient(resolve=nowhere))


async def test_through_a_proxy_the_judged_address_is_asked_for() -> None:
    asked: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(OK)
        await writer.drain()

    # The second answer would be this machine: a name that is looked up twice is found out here.
    changing: list[Sequence[str]] = [("8.8.8.8",), ("127.0.0.1",)]
    names = Names({"docs.example": changing, "inner.example": [("10.0.0.1",)]})
    async with listening(proxy) as port:
        rules = http_proxy.from_environment({"http_proxy": f"http://127.0.0.1:{port}"})
        client = WebClient(resolve=names, proxies=rules)
        page = await fetch("http://docs.example/x", client=client)
        assert page.body == b"secret of the network"
        assert names.asked == ["docs.example"]
        await failure("http://inner.example/", client=client)
    connect, request = asked
    assert connect.startswith(b"CONNECT 8.8.8.8:80 HTTP/1.1\r\n")
    assert request.startswith(b"GET /x HTTP/1.1\r\nhost: docs.example\r\n")


async def _never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n"


def endless(head: bytes, piece: bytes) -> Answer:
    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()

    return answer


CHUNK = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
LARGE = limits.WEB_PAGE_BYTES_MAX + 1

HOSTILE: dict[str, tuple[Answer, str]] = {
    "endless body": (endless(CHUNKED + b"\r\n", CHUNK), "larger than"),
    "endless body without a length": (endless(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536), "larger"),
    "declared too large": (
        replying(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % LARGE),
        "larger than",
    ),
    "endless headers": (endless(b"HTTP/1.1 200 OK\r\n", b"x: y\r\n" * 500), "head of the answer"),
    "one endless header": (endless(b"HTTP/1.1 200 OK\r\nx: ", b"y" * 4096), "head of the answer"),
    "endless interim answers": (
        endless(b"", b"HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n"),
        "head of the answer",
    ),
    "endless trailer": (
        endless(CHUNKED + b"\r\n1\r\nx\r\n0\r\n", b"x: y\r\n" * 500),
        "head of the answer",
    ),
    "one endless trailer": (
        endless(CHUNKED + b"\r\n1\r\nx\r\n0\r\nx: ", b"y" * 65536),
        "head of the answer",
    ),
    "endless chunk extension": (endless(CHUNKED + b"\r\n1;x=", b"y" * 65536), "head of the answer"),
    "gzip bomb": (
        replying_late(lambda: response(gzip_bomb(64), headers="content-encoding: gzip\r\n")),
        "compressed to less than",
    ),
    "large after decompression": (
        replying_late(
            lambda: response(
                gzip.compress(bytes(range(256)) * (LARGE // 256 + 1), 1),
                headers="content-encoding: gzip\r\n",
            )
        ),
        "",
    ),
    "damaged gzip": (
        replying(response(b"\x1f\x8bnot gzip", headers="content-encoding: gzip\r\n")),
        "damaged",
    ),
    "unknown encoding": (
        replying(response(b"x", headers="content-encoding: br\r\n")),
        "unknown content encoding",
    ),
    "not HTTP": (replying(b"SSH-2.0-OpenSSH_9.6\r\n"), "not HTTP"),
    "huge content length": (
        replying(b"HTTP/1.1 200 OK\r\ncontent-length: %s\r\n\r\n" % (b"9" * 5000)),
        "",
    ),
    "negative content length": (
        replying(b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nx"),
        "not HTTP",
    ),
    "two content lengths": (
        replying(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxy"),
        "not HTTP",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_server_costs_little_and_is_told_of(name: str) -> None:
    answer, told = HOSTILE[name]
    async with serving(answer) as server:
        tracemalloc.start()
        try:
            message = await failure(server.url, "127.0.0.1")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert told in message
    assert peak < 8 * limits.WEB_PAGE_BYTES_MAX


async def test_a_body_shorter_than_it_says_is_no_page() -> None:
    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort")
        writer.close()

    async with serving(answer) as server:
        assert "in the middle of the answer" in await failure(server.url, "127.0.0.1")


async def test_a_server_that_says_nothing_is_given_up_in_time() -> None:
    async with listening(_never) as port:
        url = f"http://127.0.0.1:{port}/"
        assert "within 0.2 s" in await failure(url, "127.0.0.1", seconds=0.2)


@pytest.mark.parametrize(
    "head",
    [b"HTTP/1.1 200 OK\r\nx-slow: ", b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\nx"],
    ids=["in the head", "in the body"],
)
async def test_a_server_that_dawdles_is_given_up_in_time(head: bytes) -> None:
    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while not writer.is_closing():
            writer.write(b"y")
            await asyncio.sleep(0.02)

    async with serving(answer) as server:
        begun = asyncio.get_running_loop().time()
        told = await failure(server.url, "127.0.0.1", seconds=0.4)
        assert asyncio.get_running_loop().time() - begun < 5
        async with asyncio.timeout(5):
            await server.closed.wait()
    assert "within 0.4 s" in told


async def test_redirects_share_one_time_limit() -> None:
    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.2)
        writer.write(response(b"", status="302 Found", headers="location: /again\r\n"))

    async with serving(answer) as server:
        assert "within 0.5 s" in await failure(server.url, "127.0.0.1", seconds=0.5)
    assert len(server.requests) <= 3


async def test_cancelling_closes_the_connection() -> None:
    arrived = asyncio.Event()

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED + b"\r\n1\r\nx\r\n")
        arrived.set()

    async with serving(answer) as server:
        task = asyncio.create_task(fetch(server.url, "127.0.0.1"))
        async with asyncio.timeout(5):
            await arrived.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await server.closed.wait()
    assert task.cancelled()


async def test_the_system_is_asked_for_each_address_once() -> None:
    assert await web_pages.system_resolve("127.0.0.1", 80) == ("127.0.0.1",)
    assert set(await web_pages.system_resolve("localhost", 80)) <= {"127.0.0.1", "::1"}
