"""Probes and metrics: what a load balancer, a container and Prometheus ask of a server."""

import asyncio
import base64
import re
from pathlib import Path

from perdure.server.settings import ServerSettings
from tests.contract.server.served_runtime import Backend
from tests.support.raw_http import call, connected

PASSWORD = "correct horse"
GOOD = {"authorization": "Basic " + base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()}
SAMPLE = re.compile(r'[a-z_]+(\{([a-z]+="[^"\n]*",?)+\})? [0-9.e+-]+')


async def test_probes_need_no_password_and_the_report_does(backend: Backend) -> None:
    async with backend.port(backend.settings(password=PASSWORD)) as port:
        lives = await call(port, "GET", "/api/health")
        ready = await call(port, "GET", "/api/health/ready")
        report = await call(port, "GET", "/api/health/detail")
        tried = await call(port, "GET", "/api/health", headers={"authorization": "Basic eDp5"})
    assert (lives.status, lives.json()) == (200, {"healthy": True})
    assert (ready.status, ready.json()) == (200, {"ready": True})
    assert report.status == 401
    # A client that tries a password with a probe learns that it is wrong.
    assert tried.status == 401


async def test_a_server_that_cannot_store_prompts_lives_and_is_not_ready(backend: Backend) -> None:
    async with backend.port(backend.settings(password=PASSWORD)) as port:
        Path(backend.runtime.database_path).unlink()
        lives = await call(port, "GET", "/api/health")
        ready = await call(port, "GET", "/api/health/ready")
    assert (lives.status, lives.json()) == (200, {"healthy": False})
    assert ready.status == 503
    assert "retry-after" in ready.headers
    # Where the data is stored is not for callers without a password.
    assert backend.runtime.database_path not in ready.body.decode()


async def test_metrics_need_the_password_unless_they_are_open(backend: Backend) -> None:
    given = backend.settings(password=PASSWORD)
    async with backend.port(given) as port:
        assert (await call(port, "GET", "/metrics")).status == 401
        assert (await call(port, "GET", "/metrics", headers=GOOD)).status == 200
        assert (await call(port, "POST", "/metrics", headers=GOOD)).status == 405
    opened = ServerSettings(
        default_directory=given.default_directory,
        cursor_key=given.cursor_key,
        password=PASSWORD,
        open_metrics=True,
    )
    async with backend.port(opened) as port:
        assert (await call(port, "GET", "/metrics")).status == 200
        assert (await call(port, "GET", "/api/session")).status == 401
        foreign = await call(port, "GET", "/metrics", headers={"host": "evil.example"})
        assert foreign.status == 403


async def test_metrics_are_valid_and_count_what_happened(backend: Backend) -> None:
    async with backend.port() as port:
        await call(port, "GET", "/api/session/ses_missing")
        await call(port, "GET", "/api/location")
        answer = await call(port, "GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.body.decode().splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert [line for line in samples if SAMPLE.fullmatch(line) is None] == []
    values = dict(line.rsplit(" ", 1) for line in samples)
    assert values['perdure_requests_total{status="404"}'] == "1"
    assert values['perdure_requests_total{status="200"}'] == "1"
    assert values["perdure_healthy"] == "1"
    assert values['perdure_duration_seconds_count{part="request"}'] == "2"
    buckets = [int(count) for name, count in values.items() if 'bucket{part="request"' in name]
    assert buckets == sorted(buckets)
    assert buckets[-1] == 2


async def test_every_request_is_observed_once_and_a_stream_when_it_ends(backend: Backend) -> None:
    seen: asyncio.Queue[tuple[str, bytes, int]] = asyncio.Queue()

    def observe(method: str, path: bytes, status: int, seconds: float) -> None:
        assert seconds >= 0
        seen.put_nowait((method, path, status))

    given = backend.settings()
    settings = ServerSettings(
        default_directory=given.default_directory,
        cursor_key=given.cursor_key,
        observe_request=observe,
    )
    async with backend.port(settings) as port, asyncio.timeout(10):
        await call(port, "GET", "/api/health?auth_token=secret")
        assert await seen.get() == ("GET", b"/api/health", 200)
        await call(port, "GET", "/nothing", headers={"host": "evil.example"})
        assert await seen.get() == ("GET", b"/nothing", 403)
        async with connected(port) as client:
            await client.say(b"GET /api/event HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert (await client.head()).status == 200
            assert seen.empty()
        assert await seen.get() == ("GET", b"/api/event", 200)
    assert seen.empty()
