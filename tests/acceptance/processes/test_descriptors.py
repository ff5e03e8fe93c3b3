"""A server that may open few files: crowds of clients, and nothing left for anything else."""

import asyncio
import re
import resource
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from typing import Final

import pytest

from perdure.core import limits
from tests.support import fork_server
from tests.support.api import Api
from tests.support.project import ProjectFolders
from tests.support.raw_http import RawClient, connected
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text
from tests.support.server_process import ServerProcess, server_process

DESCRIPTORS: Final = 256
CROWD: Final = 400
LOG_BYTES_MAX: Final = 20_000
QUIET: Final = re.compile(r"event loop stalled| INFO (GET|POST) ")
"""Lines that say nothing of a fault."""


@contextmanager
def allowed_descriptors(pid: int, count: int) -> Generator[None]:
    """Let a process open this many files, and as many as before afterwards."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (count, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@asynccontextmanager
async def cramped_server(folders: ProjectFolders) -> AsyncGenerator[ServerProcess]:
    """A server that was started where a process may open few files."""
    async with AsyncExitStack() as stack:
        with allowed_descriptors(fork_server.shared().pid, DESCRIPTORS):
            server = await stack.enter_async_context(server_process(folders))
        yield server


HABITS: Final = {
    "says nothing": b"",
    "does not end its head": b"GET / HTTP/1.1\r\nhost: loc",
    "has its answer": b"GET /api/health HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "does not read": b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 20,
}


@pytest.mark.parametrize("habit", HABITS)
async def test_a_crowd_of_idle_clients_keeps_no_other_from_its_answer(
    folders: ProjectFolders, provider: ScriptedProvider, habit: str
) -> None:
    async with cramped_server(folders) as server:
        session = await server.api.create()
        with ExitStack() as crowd:
            async with server.api.events(session) as stream:
                for _ in range(CROWD):
                    await asyncio.to_thread(join, crowd, server.api.port, HABITS[habit])
                assert (await server.api.get("/api/health"))["healthy"] is True
                await server.api.ask(session, "hello")
                await stream.until("session.next.step.ended")
        # A busy machine may be slow to make a page; that is reported, and no fault.
        lines = [line for line in server.log.splitlines() if not QUIET.search(line)]
        assert lines == []


async def test_a_server_whose_limit_is_lowered_has_fewer_connections_and_goes_on(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with server_process(folders) as server:
        with allowed_descriptors(server.pid, DESCRIPTORS), ExitStack() as crowd:
            for _ in range(CROWD):
                await asyncio.to_thread(join, crowd, server.api.port, b"")
            for _ in range(3):
                assert (await server.api.get("/api/health"))["healthy"] is True
        assert len(server.log) < LOG_BYTES_MAX


def join(crowd: ExitStack, port: int, said: bytes) -> None:
    client = crowd.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
    client.sendall(said)


NEEDS_FILES: Final = (
    ("GET", "/api/health"),
    ("GET", "/api/session"),
    ("GET", "/api/fs/read/opencode.json"),
    ("GET", "/api/fs/list"),
    ("GET", "/api/fs/find?query=open"),
    ("GET", "/api/agent"),
    ("GET", "/api/model"),
    ("GET", "/api/command"),
    ("GET", "/api/skill"),
    ("GET", "/api/integration"),
    ("POST", "/api/session"),
    ("POST", "/api/pty"),
)


async def test_without_a_free_descriptor_each_request_is_answered_and_none_is_a_defect(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with server_process(folders) as server, connected(server.api.port) as client:
        # Only a connection that was accepted before is served.
        assert await request(client, "GET", "/api/health") == 200
        with allowed_descriptors(server.pid, 3):
            answers = {path: await request(client, method, path) for method, path in NEEDS_FILES}
            waiting = asyncio.create_task(server.api.get("/api/health"))
            done, _ = await asyncio.wait([waiting], timeout=limits.ACCEPT_RETRY_SECONDS * 2)
            assert not done
        assert set(answers.values()) <= {200, 503}
        assert {path for path, status in answers.items() if status == 503} >= {
            "/api/fs/read/opencode.json",
            "/api/fs/list",
            "/api/pty",
        }
        assert await waiting
        assert await server.api.get("/api/fs/list")
        assert "request failed" not in server.log
        assert server.log.count("no new connection") < 10


async def test_without_a_free_descriptor_a_command_fails_and_the_run_goes_on(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with server_process(folders) as server:
        session = await server.api.create()
        async with connected(server.api.port) as client:
            assert await request(client, "GET", "/api/health") == 200
            await server.api.ask(session, "connect to the provider")
            provider.then(calls(Call("bash", {"command": "echo hi", "description": "say hi"})))
            provider.then(text("I see"))
            body = b'{"prompt":{"text":"run it"}}'
            with allowed_descriptors(server.pid, 3):
                assert await request(client, "POST", f"/api/session/{session}/prompt", body) == 200
                assert await request(client, "POST", f"/api/session/{session}/wait") == 204
        messages = await server.api.messages(session)
        await check_told(server.api, session)
        assert messages[-1]["content"][-1]["text"] == "I see"


async def check_told(api: Api, session: str) -> None:
    """The model was told that its command could not be started, and why."""
    messages = await api.messages(session)
    tools = [
        part for each in messages for part in each.get("content", ()) if part["type"] == "tool"
    ]
    assert [part["state"]["status"] for part in tools] == ["error"]
    assert "too many open files" in tools[0]["state"]["error"]["message"]


async def request(client: RawClient, method: str, path: str, body: bytes = b"{}") -> int:
    """The status of an answer over a connection that there is already."""
    sent = b"" if method == "GET" else body
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    await client.say(f"{head}content-length: {len(sent)}\r\n\r\n".encode() + sent)
    return (await client.answer()).status
