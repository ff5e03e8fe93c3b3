"""Facts about models against a real server: what is fetched, what is refused, what stays."""

import asyncio
import gzip
import sys
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.core.models import facts_archive, facts_source
from perdure.host.clock import SystemClock
from perdure.host.http.client import HttptoolsTransport
from perdure.location.models import facts_cache
from perdure.location.models.facts_cache import ModelFactsCache, ModelFactsSource
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.host.loopback import Loopback, Received, replying, response, serving

HOUR_MILLIS = limits.MODELS_REFRESH_SECONDS * 1000


def facts(*models: str) -> JsonObject:
    listed: JsonObject = {model: {} for model in models}
    return {"acme": {"id": "acme", "npm": "@ai-sdk/openai", "models": listed}}


@dataclass
class ShiftedClock:
    """The machine's time, some hours on."""

    shift_millis: int = 0

    def now_millis(self) -> int:
        return SystemClock().now_millis() + self.shift_millis

    async def sleep(self, seconds: float) -> None:
        await SystemClock().sleep(seconds)


@dataclass
class Stand:
    """One process with its facts, and the tasks that it runs beside everything else."""

    path: Path
    group: asyncio.TaskGroup
    transport: HttptoolsTransport
    clock: ShiftedClock = field(default_factory=ShiftedClock)
    tasks: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])
    refreshes: int = 0

    def snapshot(self, url: str | None, *, seconds_max: float = 20) -> ModelFactsCache:
        source = url and ModelFactsSource(
            url,
            str(self.path),
            transport=self.transport,
            clock=self.clock,
            seconds_max=seconds_max,
        )
        return ModelFactsCache(
            str(self.path),
            variables={},
            clock=self.clock,
            source=source or None,
            start=self._start,
            refreshed=self._refreshed,
        )

    async def settled(self) -> None:
        async with asyncio.timeout(30):
            await asyncio.gather(*self.tasks)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        self.tasks.append(self.group.create_task(work))

    def _refreshed(self) -> None:
        self.refreshes += 1


@asynccontextmanager
async def standing(path: Path) -> AsyncGenerator[Stand]:
    transport = HttptoolsTransport()
    try:
        async with asyncio.TaskGroup() as group:
            yield Stand(path, group, transport)
    finally:
        await transport.aclose()


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncGenerator[Stand]:
    async with standing(tmp_path / "cache" / "models.json.gz") as stand:
        yield stand


def acme(snapshot: ModelFactsCache) -> list[str] | None:
    provider = snapshot.known().providers.get("acme")
    return None if provider is None else list(provider.models)


async def test_without_a_source_there_is_what_came_with_the_program(stand: Stand) -> None:
    snapshot = stand.snapshot(None)
    assert len(snapshot.known().providers) > 200
    assert snapshot.known() is snapshot.known()
    assert (stand.tasks, stand.path.parent.exists()) == ([], False)


async def test_what_is_published_is_used_from_its_arrival_on(stand: Stand) -> None:
    async with serving(replying(response(codec.encode(facts("new"))))) as server:
        snapshot = stand.snapshot(server.url + "/")
        before = snapshot.known()
        await stand.settled()
        assert (acme(snapshot), stand.refreshes) == (["new"], 1)
        assert "anthropic" in before.providers
        assert [request.target for request in server.requests] == ["/api.json"]
    # It is on disk: the next process has it without asking anybody.
    assert acme(stand.snapshot(None)) == ["new"]


async def test_a_compressed_answer_is_understood(stand: Stand) -> None:
    body = gzip.compress(codec.encode(facts("packed")))
    packed = response(body, headers="content-encoding: gzip\r\n")
    async with serving(replying(packed)) as server:
        snapshot = stand.snapshot(server.url)
        snapshot.known()
        await stand.settled()
        assert acme(snapshot) == ["packed"]


async def test_nothing_is_fetched_more_often_than_hourly(stand: Stand) -> None:
    async with serving(replying(response(codec.encode(facts("m"))))) as server:
        snapshot = stand.snapshot(server.url)
        for shift in (0, 0, HOUR_MILLIS - 60_000, HOUR_MILLIS, HOUR_MILLIS + 60_000):
            stand.clock.shift_millis = shift
            snapshot.known()
            await stand.settled()
        assert len(server.requests) == 2


async def test_a_young_copy_is_not_fetched_again_by_another_process(stand: Stand) -> None:
    async with serving(replying(response(codec.encode(facts("m"))))) as server:
        for _ in range(2):
            snapshot = stand.snapshot(server.url)
            snapshot.known()
            await stand.settled()
            assert acme(snapshot) == ["m"]
        assert len(server.requests) == 1


REFUSED = {
    "corrupt": response(b"<html>captive portal</html>"),
    "empty": response(b"{}"),
    "missing": response(b"no", status="404 Not Found"),
    "moved": response(b"", status="302 Found", headers="location: http://127.0.0.1:1/\r\n"),
    "failing": response(b"no", status="500 Internal Server Error"),
    "truncated json": response(codec.encode(facts("m"))[:-9]),
}


@pytest.mark.parametrize("answer", REFUSED.values(), ids=REFUSED.keys())
async def test_an_answer_that_is_no_good_changes_nothing(
    stand: Stand, answer: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(replying(answer)) as server:
        await assert_unchanged(stand, server, caplog)


async def test_an_answer_that_is_cut_off_changes_nothing(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    async def half(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"acme":')
        writer.close()

    async with serving(half) as server:
        await assert_unchanged(stand, server, caplog)


async def test_an_answer_without_end_changes_nothing(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    async def endless(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n{")
        while not writer.is_closing():
            writer.write(b" " * 1024 * 1024)
            await writer.drain()

    async with serving(endless) as server:
        await assert_unchanged(stand, server, caplog)


async def test_an_answer_that_does_not_come_changes_nothing(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    async def silent(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
        await asyncio.Event().wait()

    async with serving(silent) as server:
        await assert_unchanged(stand, server, caplog, seconds_max=0.2)


async def test_a_server_that_is_not_there_changes_nothing(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    await assert_unchanged(stand, Loopback(port=1), caplog)


async def assert_unchanged(
    stand: Stand, server: Loopback, caplog: pytest.LogCaptureFixture, seconds_max: float = 20
) -> None:
    snapshot = stand.snapshot(server.url, seconds_max=seconds_max)
    before = snapshot.known()
    await stand.settled()
    assert snapshot.known() is before
    assert (stand.refreshes, stand.path.exists()) == (0, False)
    [said] = caplog.messages
    assert said.startswith("model facts were not fetched from 127.0.0.1: ")


async def test_a_damaged_copy_is_removed_and_fetched_again(stand: Stand) -> None:
    stand.path.parent.mkdir()
    whole = facts_archive.pack(codec.encode(facts("old")))
    stand.path.write_bytes(whole[:-1])
    async with serving(replying(response(codec.encode(facts("new"))))) as server:
        snapshot = stand.snapshot(server.url)
        assert "anthropic" in snapshot.known().providers
        assert not stand.path.exists()
        await stand.settled()
        assert acme(snapshot) == ["new"]


async def test_a_copy_that_cannot_be_read_is_as_good_as_none(stand: Stand) -> None:
    stand.path.mkdir(parents=True)
    assert "anthropic" in stand.snapshot(None).known().providers
    assert stand.path.is_dir()


REFRESH = """
import asyncio, sys
from perdure.host.clock import SystemClock
from perdure.host.http.client import HttptoolsTransport
from perdure.location.models.facts_cache import ModelFactsSource

async def main(url, path):
    transport = HttptoolsTransport()
    source = ModelFactsSource(url, path, transport=transport, clock=SystemClock())
    print("ready", flush=True)
    await source.refresh()
    await transport.aclose()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_of_several_processes_that_refresh_at_once_one_fetches(tmp_path: Path) -> None:
    path = tmp_path / "models.json.gz"
    all_ready = asyncio.Event()

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        await all_ready.wait()
        writer.write(response(codec.encode(facts("shared"))))

    async with serving(answer) as server, asyncio.timeout(50):
        started = [
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", REFRESH, server.url, str(path)),
                stdout=asyncio.subprocess.PIPE,
            )
            for _ in range(3)
        ]
        for process in started:
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
        all_ready.set()
        assert [await process.wait() for process in started] == [0, 0, 0]
        assert len(server.requests) == 1
    archive = facts_archive.ModelArchive(path.read_bytes())
    assert list(archive.models("acme")) == ["shared"]


@pytest.mark.parametrize(
    ("variables", "source"),
    [
        ({}, "https://models.dev"),
        ({"OPENCODE_MODELS_URL": "http://mirror.example"}, "http://mirror.example"),
        ({"OPENCODE_MODELS_URL": ""}, "https://models.dev"),
        ({"OPENCODE_DISABLE_MODELS_FETCH": "1"}, None),
        ({"OPENCODE_DISABLE_MODELS_FETCH": "TRUE", "OPENCODE_MODELS_URL": "http://x"}, None),
        ({"OPENCODE_DISABLE_MODELS_FETCH": "0"}, "https://models.dev"),
    ],
)
def test_the_environment_says_where_facts_come_from(
    variables: dict[str, str], source: str | None
) -> None:
    assert facts_source.source_of(variables) == source


def test_what_came_with_the_program_is_read_once() -> None:
    assert facts_cache.load_bundled() is facts_cache.load_bundled()
