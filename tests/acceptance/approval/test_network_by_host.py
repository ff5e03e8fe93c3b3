"""The network by host: what is listed, what a person allows, and what the model is told."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from perdure.host.process.runner import LocalProcesses
from perdure.host.sandbox.local_sandbox import LocalSandbox
from perdure.schema.codec import JsonObject
from tests.acceptance.approval.test_sandboxed_commands import asked, bash, reply, said
from tests.skipping import cannot_run
from tests.support import polling
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import ScriptedProvider

FETCH = "python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read())' {0}"


@pytest.fixture(autouse=True)
async def wall() -> None:
    (trial,) = await LocalSandbox(LocalProcesses(), ("namespaces",)).trials()
    if trial.problem:
        cannot_run(f"This kernel offers no namespaces: {trial.problem}")


@pytest.fixture
def root() -> Iterator[Path]:
    with TemporaryDirectory(dir="/var/tmp") as made:
        yield Path(made)


@pytest.fixture
def folders(root: Path, provider: ScriptedProvider) -> ProjectFolders:
    return make_folders(root, provider)


@pytest.fixture
async def server() -> AsyncGenerator[str]:
    """A web server of this machine, as host and port."""
    async with web_server() as address:
        yield address


@asynccontextmanager
async def web_server() -> AsyncGenerator[str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nfetched")
        writer.close()

    serving = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with serving:
        yield f"127.0.0.1:{serving.sockets[0].getsockname()[1]}"


def fetch(address: str) -> str:
    # Without NO_PROXY: a server of this machine is reached directly otherwise.
    return f"unset NO_PROXY no_proxy; {FETCH.format(f'http://{address}/')}"


async def test_a_listed_host_is_reached_unasked(
    provider: ScriptedProvider, folders: ProjectFolders, server: str
) -> None:
    folders.configure_user(sandbox={"network": {"allow": [server]}})
    async with running(folders) as instance:
        assert "b'fetched'" in await said(
            instance.api, provider, bash(FETCH.format(f"http://{server}/"))
        )


async def test_another_host_is_refused_and_the_model_is_told(
    provider: ScriptedProvider, folders: ProjectFolders, server: str
) -> None:
    folders.configure_user(sandbox={"network": {"allow": ["docs.python.org", "*.github.com:443"]}})
    async with running(folders) as instance:
        told = await said(instance.api, provider, bash(fetch(server)))
    assert "fetched" not in told
    assert f"network: host {server} is not in the allowed list" in told
    assert "call bash again with `hosts`" in told


async def test_a_person_allows_a_host_once(
    provider: ScriptedProvider, folders: ProjectFolders, server: str
) -> None:
    async with running(folders) as instance:
        call = bash(fetch(server), hosts=[server])
        async with asked(instance.api, provider, call) as request:
            assert (request["action"], request["resources"]) == ("private_network", [server])
            await reply(instance.api, request, "once")
        assert "b'fetched'" in provider.requests[-1].texts("tool")[-1]
        async with asked(instance.api, provider, call) as request:
            await reply(instance.api, request, "reject")


async def test_always_is_remembered_for_exactly_this_host(
    provider: ScriptedProvider, folders: ProjectFolders, server: str
) -> None:
    call = bash(fetch(server), hosts=[server])
    async with running(folders) as instance:
        async with asked(instance.api, provider, call) as request:
            await reply(instance.api, request, "always")
        assert "b'fetched'" in await said(instance.api, provider, call)
    folders.configure_user(sandbox={"network": {"allow": ["docs.python.org"]}})
    async with running(folders) as instance, web_server() as other:
        # Beside a list it counts without being named again, after a restart too.
        assert "b'fetched'" in await said(instance.api, provider, bash(fetch(server)))
        async with asked(instance.api, provider, bash(fetch(other), hosts=[other])) as request:
            await reply(instance.api, request, "reject")


async def test_for_a_session_it_is_remembered_there_alone(
    provider: ScriptedProvider, folders: ProjectFolders, server: str
) -> None:
    async with running(folders) as instance:
        call = bash(fetch(server), hosts=[server])
        async with asked(instance.api, provider, call) as request:
            path = f"/api/session/{request['sessionID']}/permission/{request['id']}/reply"
            await instance.api.post(path, {"reply": "always", "scope": "session"})
        async with asked(instance.api, provider, call) as request:
            await reply(instance.api, request, "reject")


@pytest.mark.parametrize(
    ("rules", "reached"),
    [
        ([{"action": "private_network", "resource": "*", "effect": "allow"}], True),
        ([{"action": "private_network", "resource": "*", "effect": "deny"}], False),
        ([{"action": "network", "resource": "*", "effect": "allow"}], False),
        ([{"action": "*", "resource": "*", "effect": "allow"}], False),
    ],
)
async def test_rules_for_hosts_count_if_they_are_about_hosts(
    provider: ScriptedProvider,
    folders: ProjectFolders,
    server: str,
    rules: list[JsonObject],
    *,
    reached: bool,
) -> None:
    folders.configure_user(sandbox={"network": {"allow": []}}, permissions=rules)
    async with running(folders) as instance:
        told = await said(instance.api, provider, bash(fetch(server)))
    assert ("b'fetched'" in told) == reached


async def test_a_deny_rule_counts_more_than_the_list(
    provider: ScriptedProvider, folders: ProjectFolders, server: str
) -> None:
    rules = [{"action": "private_network", "resource": server, "effect": "deny"}]
    folders.configure_user(sandbox={"network": {"allow": [server]}}, permissions=rules)
    async with running(folders) as instance:
        told = await said(instance.api, provider, bash(fetch(server)))
    assert "fetched" not in told


async def test_a_project_cannot_list_or_allow_hosts(
    root: Path, provider: ScriptedProvider, server: str
) -> None:
    ruled = make_folders(
        root / "ruled",
        provider,
        sandbox={"network": {"allow": [server]}},
        permissions=[{"action": "private_network", "resource": "*", "effect": "allow"}],
    )
    async with running(ruled) as instance:
        told = await said(instance.api, provider, bash(fetch(server)))
        assert "fetched" not in told
        async with asked(instance.api, provider, bash("true", hosts=[server])) as request:
            await reply(instance.api, request, "reject")


async def test_a_background_job_reaches_listed_hosts(
    provider: ScriptedProvider, folders: ProjectFolders, server: str
) -> None:
    folders.configure_user(sandbox={"network": {"allow": [server]}})
    command = f"{FETCH.format(f'http://{server}/')} > fetched"
    async with running(folders) as instance:
        await said(instance.api, provider, bash(command, background=True))
        made = folders.project / "fetched"
        await polling.until(lambda: made.exists() and b"fetched" in made.read_bytes())


@pytest.mark.parametrize("host", ["", "a b", "http://a.test/", "a:0", "u@a.test", "*.org"])
async def test_what_is_not_a_host_is_not_asked_about(
    provider: ScriptedProvider, folders: ProjectFolders, host: str
) -> None:
    async with running(folders) as instance:
        told = await said(instance.api, provider, bash("true", hosts=[host]))
    assert "`hosts` has" in told
