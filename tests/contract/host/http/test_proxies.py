"""Proxies over HTTP, HTTPS and SOCKS, against real sockets; and which requests go past them."""

import asyncio
import ssl
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from perdure.host.http import proxy as http_proxy
from perdure.host.http.client import HttptoolsTransport
from perdure.net.transport import HttpRequest, TransportError
from tests.contract.host.loopback import Loopback, listening, replying, response, serving


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate of models.test and of this machine, its key beside it."""
    path = tmp_path_factory.mktemp("tls") / "models.pem"
    names = "subjectAltName=DNS:models.test,DNS:xn--bcher-kva.test,IP:127.0.0.1"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-keyout", f"{path}.key", "-out", str(path), "-days", "2"),
            *("-subj", "/CN=models.test", "-addext", names),
        ],
        check=True,
        capture_output=True,
    )
    return path


def server_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, f"{certificate}.key")
    return context


async def fetch(
    url: str, variables: dict[str, str], certificate: Path | None = None
) -> tuple[int, bytes]:
    """Fetch a URL with these variables, trusting this certificate and no other."""
    transport = HttptoolsTransport(
        proxies=http_proxy.from_environment(variables),
        tls=lambda: ssl.create_default_context(cafile=None if certificate is None else certificate),
    )
    request = HttpRequest(url=url, headers={}, body=(), method="GET")
    try:
        async with asyncio.timeout(20), transport.open(request) as answer:
            return answer.status, b"".join([chunk async for chunk in answer.chunks])
    finally:
        await transport.aclose()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    there, to_there = await asyncio.open_connection("127.0.0.1", port)
    try:
        await asyncio.gather(pump(reader, to_there), pump(there, writer))
    finally:
        to_there.transport.abort()


class SocksProxy:
    """A SOCKS proxy, versions 4, 4a and 5, whose every connection leads to one port."""

    def __init__(self, target: int, *, login: tuple[str, str] | None = None) -> None:
        self.asked: list[tuple[str, int]] = []
        self._target = target
        self._login = login

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        version = (await reader.readexactly(1))[0]
        accepted = await (
            self._four(reader, writer) if version == 4 else self._five(reader, writer)
        )
        if accepted:
            await join(reader, writer, self._target)

    async def _four(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        _, *port, a, b, c, d = await reader.readexactly(7)
        await reader.readuntil(b"\0")
        host = f"{a}.{b}.{c}.{d}"
        if (a, b, c) == (0, 0, 0) and d:
            host = (await reader.readuntil(b"\0"))[:-1].decode()
        self.asked.append((host, int.from_bytes(bytes(port))))
        writer.write(b"\0\x5a" + bytes(6))
        return True

    async def _five(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        methods = await reader.readexactly((await reader.readexactly(1))[0])
        wanted = 0 if self._login is None else 2
        if wanted not in methods:
            writer.write(b"\x05\xff")
            return False
        writer.write(bytes((5, wanted)))
        if self._login is not None:
            await reader.readexactly(1)
            user = await reader.readexactly((await reader.readexactly(1))[0])
            password = await reader.readexactly((await reader.readexactly(1))[0])
            right = (user.decode(), password.decode()) == self._login
            writer.write(bytes((1, 0 if right else 1)))
            if not right:
                return False
        _, _, _, kind = await reader.readexactly(4)
        if kind == 3:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            host = ".".join(map(str, await reader.readexactly(4)))
        self.asked.append((host, int.from_bytes(await reader.readexactly(2))))
        writer.write(b"\x05\0\0\x01" + bytes(6))
        return True


@asynccontextmanager
async def socks_proxy(
    target: Loopback, login: tuple[str, str] | None = None
) -> AsyncGenerator[tuple[SocksProxy, int]]:
    proxy = SocksProxy(target.port, login=login)
    async with listening(proxy) as port:
        yield proxy, port


@pytest.mark.parametrize("scheme", ["socks5h", "socks4a"])
async def test_https_goes_through_a_socks_proxy_that_resolves_the_name(
    certificate: Path, scheme: str
) -> None:
    async with (
        serving(replying(response(b"secret")), tls=server_tls(certificate)) as site,
        socks_proxy(site) as (proxy, port),
    ):
        variables = {"ALL_PROXY": f"{scheme}://127.0.0.1:{port}"}
        found = await fetch("https://models.test/", variables, certificate)
    assert found == (200, b"secret")
    assert proxy.asked == [("models.test", 443)]


async def test_plain_requests_through_socks_are_those_of_the_origin() -> None:
    async with (
        serving(replying(response(b"plain"))) as site,
        socks_proxy(site, ("me", "p@ss")) as (proxy, port),
    ):
        variables = {"http_proxy": f"socks5h://me:p%40ss@127.0.0.1:{port}"}
        assert await fetch("http://models.test/v1?x=1", variables) == (200, b"plain")
    (seen,) = site.requests
    assert (seen.target, seen.headers["host"]) == ("/v1?x=1", "models.test")
    assert "proxy-authorization" not in seen.headers
    assert proxy.asked == [("models.test", 80)]


@pytest.mark.parametrize("scheme", ["socks5", "socks4"])
async def test_a_name_is_resolved_here_where_the_scheme_says_so(scheme: str) -> None:
    async with serving(replying(response(b"ok"))) as site, socks_proxy(site) as (proxy, port):
        variables = {"http_proxy": f"{scheme}://127.0.0.1:{port}"}
        assert await fetch("http://192.0.2.7:8080/", variables) == (200, b"ok")
    assert proxy.asked == [("192.0.2.7", 8080)]


async def test_a_socks_proxy_that_refuses_fails_the_request() -> None:
    async with (
        serving(replying(response(b"ok"))) as site,
        socks_proxy(site, ("me", "right")) as (proxy, port),
    ):
        variables = {"http_proxy": f"socks5h://me:wrong@127.0.0.1:{port}"}
        with pytest.raises(TransportError, match="the proxy refused") as refused:
            await fetch("http://models.test/", variables)
    assert "wrong" not in str(refused.value)
    assert (proxy.asked, site.requests) == ([], [])


def test_without_the_package_a_socks_proxy_is_refused_and_says_what_to_install() -> None:
    """In an interpreter of its own, in which the package cannot be found."""
    program = (
        "import asyncio, sys\n"
        "sys.modules['python_socks'] = None\n"
        "from perdure.host.http import socks\n"
        "from perdure.host.http.proxy import Proxy\n"
        "asyncio.run(socks.connect(Proxy('proxy.test', 1080, scheme='socks5'), 'a.test', 80))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False
    )
    assert "install `perdure[socks]`" in ran.stderr


# ---- a proxy that is reached over TLS -----------------------------------------------------------


async def test_https_goes_through_a_tunnel_inside_tls(certificate: Path) -> None:
    heads: list[bytes] = []

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await join(reader, writer, site.port)

    async with (
        serving(replying(response(b"secret")), tls=server_tls(certificate)) as site,
        listening(tunnel, tls=server_tls(certificate)) as port,
    ):
        variables = {"HTTPS_PROXY": f"https://me:pw@127.0.0.1:{port}"}
        found = await fetch("https://models.test/", variables, certificate)
        assert found == (200, b"secret")
        with pytest.raises(TransportError, match="certificate"):
            await fetch("https://models.test/", variables)
    assert heads[0].startswith(b"CONNECT models.test:443 HTTP/1.1\r\n")
    assert b"proxy-authorization: Basic bWU6cHc=" in heads[0]


async def test_plain_requests_reach_a_proxy_over_tls_in_absolute_form(certificate: Path) -> None:
    async with serving(replying(response(b"ok")), tls=server_tls(certificate)) as proxy:
        variables = {"HTTP_PROXY": f"https://127.0.0.1:{proxy.port}"}
        assert await fetch("http://models.test/a", variables, certificate) == (200, b"ok")
    (seen,) = proxy.requests
    assert seen.target == "http://models.test/a"


# ---- which proxy --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["ftp://proxy.test", "quic://u:s3cret@proxy.test", "http://", "http://[::1", "h:x"]
)
async def test_a_proxy_that_cannot_be_used_is_never_bypassed(value: str) -> None:
    async with serving(replying(response(b"leaked"))) as site:
        url = f"http://models.test:{site.port}/"
        with pytest.raises(TransportError, match="HTTP_PROXY") as refused:
            await fetch(url, {"HTTP_PROXY": value})
        assert "s3cret" not in str(refused.value)
        # Hosts that need no proxy are reached all the same.
        assert await fetch(site.url, {"HTTP_PROXY": value}) == (200, b"leaked")


@pytest.mark.parametrize(
    ("listed", "host", "port", "goes_past"),
    [
        ("*", "models.test", 443, True),
        ("models.test", "models.test", 443, True),
        ("models.test", "a.models.test", 443, True),
        ("models.test", "othermodels.test", 443, False),
        ("*.models.test", "a.models.test", 443, True),
        (".models.test", "MODELS.test.", 443, True),
        ("models.test:8443", "models.test", 8443, True),
        ("models.test:8443", "models.test", 443, False),
        ("a.test b.test,c.test", "b.test", 443, True),
        ("10.0.0.0/8", "10.200.3.4", 443, True),
        ("10.0.0.0/8", "11.0.0.1", 443, False),
        ("10.0.0.0/8", "models.test", 443, False),
        ("10.1.2.3/8", "10.9.9.9", 443, True),
        ("10.0.0.0/8:8080", "10.1.1.1", 8080, True),
        ("10.0.0.0/8:8080", "10.1.1.1", 443, False),
        ("192.0.2.1", "192.0.2.1", 443, True),
        ("192.0.2.1:80", "192.0.2.1", 443, False),
        ("fd00::/8", "fd12::1", 443, True),
        ("fd00::/8", "fe80::1", 443, False),
        ("[fd12::1]:8080", "fd12::1", 8080, True),
        ("[fd12::1]:8080", "fd12::1", 443, False),
        ("fd12::1", "fd12:0::1", 443, True),
        ("bücher.test", "xn--bcher-kva.test", 443, True),
        ("models.test:99999999", "models.test", 443, False),
        ("10.0.0.0/99", "10.0.0.1", 443, False),
    ],
)
def test_no_proxy_takes_names_addresses_networks_and_ports(
    listed: str, host: str, port: int, goes_past: bool
) -> None:
    rules = http_proxy.from_environment({"https_proxy": "http://p.test", "NO_PROXY": listed})
    assert (rules.proxy_for("https", host, port) is None) is goes_past


# ---- names that are not ASCII -------------------------------------------------------------------


async def test_a_name_that_is_not_ascii_is_sent_as_browsers_send_it(certificate: Path) -> None:
    async with (
        serving(replying(response(b"ok")), tls=server_tls(certificate)) as site,
        socks_proxy(site) as (proxy, port),
    ):
        variables = {"ALL_PROXY": f"socks5h://127.0.0.1:{port}"}
        assert await fetch("https://Bücher。test/", variables, certificate) == (200, b"ok")
    assert proxy.asked == [("xn--bcher-kva.test", 443)]
    assert site.requests[0].headers["host"] == "xn--bcher-kva.test"
