"""The network by host list: what commands reach through the proxy, and that nothing else leads out.

The servers are on this machine, so the list names its address too. Names are resolved by a table.
"""

import asyncio
import json
import os
import shutil
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from perdure.core import limits
from perdure.core.sandbox import host_list
from perdure.core.sandbox.policy import make_policy
from perdure.host.process.runner import LocalProcesses
from perdure.host.sandbox.launches import Launches
from perdure.host.sandbox.local_sandbox import LocalSandbox
from perdure.host.sandbox.network_proxy import NetworkProxy
from perdure.ports.sandbox import HostAccess, Wall
from perdure.runtime.tasks import Background
from perdure.schema.approval.permission import Effect
from tests.contract.host.sandbox.network_attempts import Attempt, get, hostile_attempts
from tests.contract.host.sandbox.test_hostile import NOBODY, as_user
from tests.figures import Figure
from tests.skipping import cannot_run
from tests.support import polling

CLIENT: Final = (Path(__file__).parent / "proxy_client.py").read_text()
SECONDS: Final = 60
NAMES: Final = {
    "allowed.test": ("127.0.0.1",),
    "a.wild.test": ("127.0.0.1",),
    "wild.test": ("127.0.0.1",),
    "evil.test": ("127.0.0.1",),
    "internal.test": ("10.0.0.1",),
    "metadata.test": ("169.254.169.254",),
    "mapped.test": ("::ffff:127.0.0.2",),
    "mixed.test": ("127.0.0.1", "127.0.0.2"),
    "nowhere.test": (),
}


@dataclass(kw_only=True)
class Origin:
    """A server that notes what it is sent, and answers each connection once."""

    port: int = 0
    received: list[bytes] = field(default_factory=list[bytes])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.received.append(b"")
        mine = len(self.received) - 1
        while b"\r\n\r\n" not in self.received[mine] and b"PING\r\n" not in self.received[mine]:
            data = await reader.read(65536)
            self.received[mine] += data
            if not data:
                break
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
            writer.write_eof()
            # What comes after the answer is noted too.
            with suppress(ConnectionError):
                while data := await reader.read(65536):
                    self.received[mine] += data
        writer.close()


@dataclass(kw_only=True)
class Network:
    sandbox: LocalSandbox
    processes: LocalProcesses
    directory: Path
    allowed: Origin
    forbidden: Origin
    asked: list[str]
    proxy: NetworkProxy

    async def run(
        self, access: HostAccess, arguments: Sequence[str], seconds: float = SECONDS
    ) -> str:
        policy = make_policy(())
        words = await self.sandbox.wrap(
            arguments, policy=policy, directory=str(self.directory), hosts=access
        )
        result = await self.processes.run(
            words,
            directory=str(self.directory),
            environment=policy.variables({"PATH": os.environ["PATH"]}, proxied=True),
            timeout_seconds=seconds,
            output_bytes_max=5_000_000,
        )
        return result.output.decode(errors="replace")

    async def attempt(self, attempts: Sequence[Attempt], access: HostAccess) -> list[str]:
        """What came of each attempt."""
        words = ("/usr/bin/env", "python3", "-c", CLIENT, json.dumps(attempts))
        printed = await self.run(access, words)
        results = [json.loads(line) for line in printed.splitlines()]
        assert len(results) == len(attempts), printed
        return results

    def access(self, *more: str) -> HostAccess:
        """The list that the attempts are about."""
        port = self.allowed.port
        names = (f"allowed.test:{port}", f"*.wild.test:{port}", "nowhere.test", "internal.test")
        literal = (f"127.0.0.1:{port}", "mapped.test", "metadata.test", f"mixed.test:{port}")
        return HostAccess(listed=host_list.parse_list((*names, *literal, *more)))


@pytest.fixture(params=["this user", "an ordinary user"])
def user(request: pytest.FixtureRequest) -> int | None:
    other = request.param == "an ordinary user" and os.getuid() == 0
    return NOBODY if other else None


@pytest.fixture
async def network(user: int | None) -> AsyncGenerator[Network]:
    launches = Launches() if user is None else Launches(server=as_user(user))
    async with open_network(launches, "namespaces", user) as opened:
        yield opened


@asynccontextmanager
async def open_network(launches: Launches, wall: Wall, user: int | None) -> AsyncGenerator[Network]:
    processes = LocalProcesses(None, launches)
    (trial,) = await LocalSandbox(processes, (wall,)).trials()
    if trial.problem:
        cannot_run(f"This kernel does not offer {wall}: {trial.problem}")
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        if host not in NAMES:
            raise socket.gaierror(-2, "Name or service not known")
        return NAMES[host]

    allowed, forbidden = Origin(), Origin()
    with TemporaryDirectory(dir="/var/tmp") as made:
        folder = Path(made)
        folder.chmod(0o755)
        servers = [
            await asyncio.start_server(o.serve, "127.0.0.1", 0) for o in (allowed, forbidden)
        ]
        for origin, server in zip((allowed, forbidden), servers, strict=True):
            origin.port = server.sockets[0].getsockname()[1]
        async with Background() as background:
            proxy = NetworkProxy(
                made, start=lambda work: background.start(work, name="network"), resolve=resolve
            )
            if user is not None:
                # As if the server ran as that user, whose directory it is.
                proxy.admit(HostAccess())
                for path in (folder, *folder.rglob("*")):
                    os.chown(path, user, user)
            yield Network(
                sandbox=LocalSandbox(processes, (wall,), proxy=proxy),
                processes=processes,
                directory=folder,
                allowed=allowed,
                forbidden=forbidden,
                asked=asked,
                proxy=proxy,
            )
            await launches.aclose()
        assert list(folder.glob("perdure-*/network-*")) == []
        for server in servers:
            server.close()
            await server.wait_closed()


async def test_no_way_around_the_list_reaches_another_host(
    network: Network, figure: Figure
) -> None:
    attempts = hostile_attempts(network.allowed.port, network.forbidden.port)
    access = network.access()
    with socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0perdure-test")
        abstract.listen()
        results = await network.attempt(attempts, access)
    reached = [
        (attempt, result)
        for attempt, result in zip(attempts, results, strict=True)
        if result in {"it went through", "TLS began"} or "hello" in result
        if not attempt[1].startswith("import socket; socket.getaddrinfo")
    ]
    assert reached == []
    assert network.forbidden.received == []
    assert [data for data in network.allowed.received if data] == []
    figure("attempts to get around the list of hosts", len(attempts))


async def test_what_the_list_allows_is_reached(network: Network) -> None:
    port = network.allowed.port
    target = f"allowed.test:{port}"
    attempts: list[Attempt] = [
        ("proxy", get(f"http://{target}/x?y=1", target, "X-Own: 1")),
        ("proxy", get(f"HTTP://ALLOWED.test.:{port}/", target)),
        ("proxy", get(f"http://a.wild.test:{port}/", f"a.wild.test:{port}")),
        ("tunnel", f"CONNECT {target} HTTP/1.1\r\n\r\n", "PING\r\n"),
        ("proxy", get(f"http://127.0.0.1:{port}/", f"127.0.0.1:{port}")),
    ]
    results = await network.attempt(attempts, network.access())
    assert [result.endswith("hello") for result in results] == [True] * 5
    first = network.allowed.received[0]
    assert first == (
        f"GET /x?y=1 HTTP/1.1\r\nHost: {target}\r\nX-Own: 1\r\nConnection: close\r\n\r\n".encode()
    )


async def test_a_second_request_in_the_same_connection_is_not_forwarded(network: Network) -> None:
    target = f"allowed.test:{network.allowed.port}"
    body = get("/smuggled", "evil.test")
    post = f"POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\nContent-Length: 2\r\n\r\nab{body}"
    chunked = (
        f"POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\nTransfer-Encoding: chunked\r\n\r\n"
        f"2;x=y\r\nab\r\n0\r\nTrailer: x\r\n\r\n{body}"
    )
    await network.attempt([("proxy", post), ("proxy", chunked)], network.access())
    assert len(network.allowed.received) == 2
    assert not any(b"smuggled" in data for data in network.allowed.received)
    assert network.allowed.received[0].endswith(b"\r\n\r\nab")


async def test_a_refusal_says_which_host_and_why(network: Network) -> None:
    access = network.access()
    results = await network.attempt(
        [
            ("proxy", "CONNECT evil.test:443 HTTP/1.1\r\n\r\n"),
            ("proxy", get("http://internal.test:443/", "internal.test:443")),
            ("proxy", "CONNECT nowhere.test:443 HTTP/1.1\r\n\r\n"),
        ],
        access,
    )
    text = "network: host evil.test:443 is not in the allowed list"
    assert results[0].startswith(f"HTTP/1.1 403 {text}\r\n")
    assert results[2].startswith("HTTP/1.1 502 network: nowhere.test:443 cannot be reached")
    assert access.refusals == [
        text,
        (
            "network: host internal.test:443 leads to 10.0.0.1, which is an internal address and"
            " not in the allowed list"
        ),
    ]
    assert "evil.test" not in network.asked


async def test_a_name_is_resolved_once_so_that_it_cannot_change(network: Network) -> None:
    target = f"allowed.test:{network.allowed.port}"
    await network.attempt([("proxy", get(f"http://{target}/", target))], network.access())
    assert network.asked == ["allowed.test"]


async def test_a_decision_counts_before_the_list(network: Network) -> None:
    target = f"allowed.test:{network.allowed.port}"
    access = network.access()

    async def decide(wanted: host_list.Target) -> Effect:
        return "deny" if wanted.host == "allowed.test" else "allow"

    access.decide = decide
    attempts: list[Attempt] = [
        ("proxy", get(f"http://{target}/", target)),
        (
            "proxy",
            get(f"http://evil.test:{network.allowed.port}/", f"evil.test:{network.allowed.port}"),
        ),
    ]
    results = await network.attempt(attempts, access)
    assert " 403 " in results[0]
    assert results[1].endswith("hello")


async def test_more_connections_than_allowed_wait(network: Network) -> None:
    """Held connections of one command do not take those of another."""
    count = limits.PROXY_CONNECTIONS_MAX + 20
    code = (
        "import socket, sys\n"
        f"held = [socket.create_connection(('127.0.0.1', 3128)) for _ in range({count})]\n"
        "print('held', flush=True); sys.stdin.read(); __import__('time').sleep(60)"
    )
    holder = asyncio.create_task(network.run(network.access(), ("python3", "-c", code), seconds=20))
    try:
        target = f"allowed.test:{network.allowed.port}"
        results = await network.attempt(
            [("proxy", get(f"http://{target}/", target))], network.access()
        )
        assert results[0].endswith("hello")
    finally:
        holder.cancel()
        await asyncio.wait([holder])


async def test_a_large_body_goes_through_both_ways(network: Network) -> None:
    size = 3_000_000

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    code = (
        "import socket, threading\n"
        f"s = socket.create_connection(('127.0.0.1', 3128))\n"
        f"s.sendall(b'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n'); s.recv(1000)\n"
        f"def send(): s.sendall(b'\\0' * {size}); s.shutdown(1)\n"
        "threading.Thread(target=send).start()\n"
        "n = 0\n"
        "while d := s.recv(65536): n += len(d)\n"
        "print(n)"
    )
    access = network.access(f"127.0.0.1:{port}")
    assert await network.run(access, ("python3", "-c", code)) == f"{size}\n"
    server.close()


async def test_a_command_line_has_the_network_once(network: Network) -> None:
    policy = make_policy(())
    words = await network.sandbox.wrap(
        (
            "python3",
            "-c",
            (
                "import socket; s = socket.create_connection(('127.0.0.1', 3128), timeout=5)\n"
                "s.sendall(b'CONNECT evil.test:1 HTTP/1.1\\r\\n\\r\\n'); print(s.recv(12))"
            ),
        ),
        policy=policy,
        directory="/",
        hosts=network.access(),
    )
    outputs = [
        (
            await network.processes.run(
                words,
                directory="/",
                environment={"PATH": os.environ["PATH"]},
                timeout_seconds=SECONDS,
                output_bytes_max=10_000,
            )
        ).output
        for _ in range(2)
    ]
    assert outputs[0] == b"b'HTTP/1.1 403'\n"
    assert b"Connection" in outputs[1]


async def test_the_listener_ends_with_the_command(network: Network) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    await network.run(network.access(), ("true",))
    before = descriptors()
    for _ in range(5):
        await network.run(network.access(), ("true",))
    await polling.until(lambda: descriptors() <= before)


async def test_bubblewrap_leads_to_the_proxy_or_is_not_installed() -> None:
    if shutil.which("bwrap") is None:
        (trial,) = await LocalSandbox(LocalProcesses(), ("bubblewrap",)).trials()
        assert trial.problem == "bwrap is not installed"
        return
    async with open_network(Launches(), "bubblewrap", None) as network:
        target = f"allowed.test:{network.allowed.port}"
        attempts: list[Attempt] = [
            ("proxy", get(f"http://{target}/", target)),
            ("proxy", "CONNECT evil.test:443 HTTP/1.1\r\n\r\n"),
        ]
        results = await network.attempt(attempts, network.access())
        assert results[0].endswith("hello")
        assert " 403 " in results[1]
