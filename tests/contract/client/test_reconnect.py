"""Durable events across lost connections: each once, in order, and the reader is told."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from perdure.client import ClientError, WireClient, WireError
from perdure.client.client import Client, resume_events
from perdure.client.reconnect import Reconnected, resume_wire_events
from perdure.schema.ids import SessionID
from tests.contract.client.gate import gate
from tests.contract.client.hosts import PATIENCE_SECONDS, served
from tests.requirements import requirement
from tests.support import server_process
from tests.support.project import make_folders
from tests.support.scripted_provider import scripted_provider

MINE = "ses_mine"


def port_of(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port


async def switched(client: WireClient, times: int, *, since: int = 0) -> None:
    """One event each; the number of those before says which agent is another one."""
    for number in range(since, since + times):
        await client.sessions.switch_agent(MINE, ("plan", "build")[number % 2])


@requirement("S122", "S134")
@pytest.mark.parametrize("bytes_max", [1100, 1777, 3001])
async def test_connections_that_are_cut_anywhere_lose_and_repeat_nothing(
    tmp_path: Path, bytes_max: int
) -> None:
    told: list[Reconnected] = []
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        served(tmp_path) as url,
        gate() as (between, through),
        WireClient(url) as direct,
        WireClient(through) as client,
    ):
        await direct.sessions.create(id=MINE)
        await switched(direct, 30)
        between.upstream, between.bytes_max = port_of(url), bytes_max
        events = resume_wire_events(client, MINE, reconnected=told.append)
        async with aclosing(events):
            seen = [(await anext(events))["durable"]["seq"] for _ in range(30)]
    assert seen == list(range(1, 31))
    assert between.connections > 1
    assert len(told) == between.connections - 1
    assert all(one.cause is not None and one.cause.reason == "transport" for one in told)
    # Each begins after what the one before it had delivered.
    assert [one.after for one in told] == sorted({one.after or 0 for one in told})


@requirement("S122", "S134")
@pytest.mark.parametrize("ending", ["killed", "stopped"])
async def test_a_server_that_ended_and_is_started_again_is_followed_on(
    tmp_path: Path, ending: str
) -> None:
    told: list[Reconnected] = []
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        scripted_provider() as provider,
        gate() as (between, through),
        Client(through) as client,
    ):
        folders = make_folders(tmp_path, provider)
        first = await server_process.start(folders, "first")
        between.upstream = first.api.port
        async with WireClient(f"http://127.0.0.1:{first.api.port}") as direct:
            await direct.sessions.create(id=MINE)
            await switched(direct, 3)
        events = resume_events(client, SessionID(MINE), after=1, reconnected=told.append)
        seen = [(await anext(events)).durable.seq for _ in range(2)]
        await (first.kill() if ending == "killed" else first.stop())
        following = asyncio.gather(*[anext(events)])
        second = await server_process.start(folders, "second")
        try:
            async with WireClient(f"http://127.0.0.1:{second.api.port}") as direct:
                await switched(direct, 2, since=3)
            between.upstream = second.api.port
            seen += [one.durable.seq for one in await following]
            seen.append((await anext(events)).durable.seq)
            await events.aclose()
        finally:
            await second.stop()
    assert seen == [2, 3, 4, 5]
    assert [one.after for one in told] == [3]


async def test_a_reader_that_begins_while_nobody_answers_waits(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        served(tmp_path) as url,
        gate() as (between, through),
        WireClient(url) as direct,
        WireClient(through) as client,
    ):
        await direct.sessions.create(id=MINE)
        await switched(direct, 1)
        events = resume_wire_events(client, MINE)
        waiting = asyncio.gather(*[anext(events)])
        await between.visited.wait()
        between.upstream = port_of(url)
        assert [one["durable"]["seq"] for one in await waiting] == [1]
        await events.aclose()


@requirement("S122")
async def test_a_declared_failure_is_not_tried_again(tmp_path: Path) -> None:
    async with served(tmp_path) as url, WireClient(url) as client:
        with pytest.raises(WireError) as caught:
            await anext(resume_wire_events(client, "ses_missing"))
    assert caught.value.tag == "SessionNotFoundError"


class Nonsense(httpx2.AsyncBaseTransport):
    def __init__(self) -> None:
        self.asked = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked += 1
        return httpx2.Response(200, text="hello", headers={"content-type": "text/html"})


async def test_an_answer_that_makes_no_sense_is_not_tried_again() -> None:
    transport = Nonsense()
    async with WireClient("http://nowhere.invalid", transport=transport) as client:
        with pytest.raises(ClientError) as caught:
            await anext(resume_wire_events(client, MINE))
    assert (caught.value.reason, transport.asked) == ("unsupported-content-type", 1)
