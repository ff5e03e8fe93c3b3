"""Every route of the table against every way of not being welcome: no cell may be open.

Handlers are replaced by one that notes that it was reached, so a cell is open when the note is
made, whatever the answer looks like. The rows come from the table: a new route is in the matrix
the moment it exists.
"""

import asyncio
import base64
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import wraps

import pytest

from perdure.protocol.ag_ui import AG_UI_API
from perdure.protocol.api import API as V2_API
from perdure.protocol.endpoint import Endpoint
from perdure.protocol.v1.api import V1_API
from perdure.schema.errors import NotFoundError
from perdure.server.ag_ui import routes as ag_ui_routes
from perdure.server.app import HANDLERS
from perdure.server.call import Call, Handlers
from perdure.server.settings import HttpLimits, ServerSettings
from perdure.server.v1.routes import make_handlers
from tests.contract.server.served_runtime import KEY, SESSION, Backend, Run, with_handler
from tests.support.polling import until
from tests.support.raw_http import Answer, call, connected

API = (*V2_API, *V1_API, *AG_UI_API)
PASSWORD = "correct horse"
GOOD = {"authorization": "Basic " + base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()}
WRONG = base64.b64encode(b"opencode:battery staple").decode()
UPGRADE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
}

REFUSED: Mapping[str, tuple[Mapping[str, str], str, frozenset[int]]] = {
    "no credential": ({}, "", frozenset({401})),
    "wrong credential": ({"authorization": f"Basic {WRONG}"}, "", frozenset({401})),
    "wrong credential in the query": ({}, f"?auth_token={WRONG}", frozenset({401})),
    "wrong Host": (GOOD | {"host": "evil.example"}, "", frozenset({403})),
    "foreign Origin": (GOOD | {"origin": "https://evil.example"}, "", frozenset({403})),
    "null Origin": (GOOD | {"origin": "null"}, "", frozenset({403})),
    "two Hosts": (GOOD | {"host": "localhost\r\nhost: evil.example"}, "", frozenset({400})),
    "upgrade, no credential": (UPGRADE, "", frozenset({401})),
    "upgrade, foreign Origin": (
        GOOD | UPGRADE | {"origin": "https://evil.example"},
        "",
        frozenset({403}),
    ),
    "upgrade, null Origin": (GOOD | UPGRADE | {"origin": "null"}, "", frozenset({403})),
    "upgrade, wrong Host": (GOOD | UPGRADE | {"host": "evil.example"}, "", frozenset({403})),
}
WITHOUT_CREDENTIALS = ("no credential", "wrong credential in the query", "upgrade, no credential")
OPEN = {"v2.health.get", "v2.health.ready"}
"""What a probe may ask without credentials. A route is added here only if it tells nothing."""
MEDIA = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "")


@dataclass(slots=True)
class Watched:
    """A server whose handlers only note that a request reached them."""

    port: int = 0
    reached: list[str] = field(default_factory=list[str])

    def handlers(self, watched: Handlers) -> Handlers:
        return {name: wraps(handler)(self._noting(name)) for name, handler in watched.items()}

    async def send(self, endpoint: Endpoint, headers: Mapping[str, str], query: str = "") -> Answer:
        body = b"{}" if endpoint.body is not None else None
        return await call(self.port, endpoint.method, path_of(endpoint) + query, body, headers)

    def _noting(self, operation_id: str) -> Run:
        async def note(_: Call[object, object]) -> object:
            self.reached.append(operation_id)
            raise NotFoundError("reached")

        return note


def path_of(endpoint: Endpoint) -> str:
    path = endpoint.path.replace("{sessionID}", SESSION)
    request = "que_x" if "/question/" in path else "per_x"
    path = (
        path.replace("{messageID}", "msg_x")
        .replace("{ptyID}", "pty_x")
        .replace("{requestID}", request)
    )
    return re.sub(r"\{\w+\}", "x", path)


@asynccontextmanager
async def watched(backend: Backend) -> AsyncGenerator[Watched]:
    found = Watched()
    given = backend.settings(password=PASSWORD)
    v1_handlers = found.handlers(make_handlers(backend.runtime))
    handlers = found.handlers(HANDLERS)
    ag_ui_handlers = found.handlers(ag_ui_routes.HANDLERS)
    async with backend.port(
        given, handlers=handlers, v1_handlers=v1_handlers, ag_ui_handlers=ag_ui_handlers
    ) as port:
        found.port = port
        yield found


@pytest.mark.parametrize("way", REFUSED)
async def test_no_route_is_open_to(way: str, backend: Backend) -> None:
    headers, query, statuses = REFUSED[way]
    async with watched(backend) as server:
        open_cells = [
            f"{item.operation_id}: {answer.status}"
            for item in API
            if not (item.operation_id in OPEN and way in WITHOUT_CREDENTIALS)
            for answer in [await server.send(item, headers, query)]
            if answer.status not in statuses or "_tag" not in answer.json()
        ]
    assert open_cells == []
    assert server.reached == []


@pytest.mark.parametrize("way", WITHOUT_CREDENTIALS[:2])
async def test_only_probes_are_answered_to(way: str, backend: Backend) -> None:
    headers, query, _ = REFUSED[way]
    async with watched(backend) as server:
        for endpoint in API:
            await server.send(endpoint, headers, query)
    assert set(server.reached) == OPEN == {item.operation_id for item in API if item.is_open}


async def test_a_probe_is_no_websocket(backend: Backend) -> None:
    async with watched(backend) as server:
        for endpoint in API:
            if endpoint.is_open:
                assert (await server.send(endpoint, UPGRADE)).status == 400
    assert server.reached == []


@pytest.mark.parametrize("media", MEDIA)
async def test_no_route_takes_a_body_that_a_page_could_send_unasked(
    media: str, backend: Backend
) -> None:
    async with watched(backend) as server:
        for endpoint in API:
            if endpoint.body is not None:
                answer = await server.send(endpoint, GOOD | {"content-type": media})
                assert answer.status == 415, endpoint.operation_id
    assert server.reached == []


async def test_the_owner_is_let_in_on_every_route(backend: Backend) -> None:
    """Without this the matrix would be green for a server that refuses every request."""
    async with watched(backend) as server:
        for endpoint in API:
            answer = await server.send(endpoint, GOOD)
            assert answer.status in {400, 404}, endpoint.operation_id
        without_input = {
            item.operation_id for item in API if item.body is None and item.query is None
        }
    parameterless = {
        item.operation_id for item in API if item.params is None or "requestID" in item.path
    }
    assert without_input & parameterless <= set(server.reached)


async def test_a_client_with_too_many_requests_is_told_to_come_back(backend: Backend) -> None:
    given = ServerSettings(
        default_directory=backend.here, cursor_key=KEY, requests_per_client_max=2
    )
    arrived, idle = asyncio.Semaphore(0), asyncio.Event()

    async def wait(_: Call[object, object]) -> object:
        arrived.release()
        await idle.wait()
        return None

    waiting = f"POST /api/session/{SESSION}/wait HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()
    async with (
        backend.port(given, handlers=with_handler("v2.session.wait", wait)) as port,
        connected(port) as first,
        connected(port) as second,
    ):
        for client in (first, second):
            await client.say(waiting)
            await arrived.acquire()
        refused = await call(port, "GET", "/api/health")
        assert (refused.status, refused.json()["_tag"]) == (429, "TooManyRequestsError")
        assert refused.headers["retry-after"] == "1"
        idle.set()
        assert (await first.answer()).status == 204
        assert (await call(port, "GET", "/api/health")).status == 200


async def test_one_stream_too_many_is_refused_until_another_ends(backend: Backend) -> None:
    given = ServerSettings(
        default_directory=backend.here, cursor_key=KEY, streams_max=1, requests_per_client_max=1
    )
    listen = b"GET /api/event HTTP/1.1\r\nhost: localhost\r\n\r\n"
    async with backend.port(given) as port:
        async with connected(port) as client:
            await client.say(listen)
            assert (await client.head()).status == 200
            assert (await call(port, "GET", "/api/event")).status == 429
            assert (await call(port, "GET", "/api/health")).status == 200
        await until(lambda: not backend.runtime.hub.has_readers)
        async with connected(port) as client:
            await client.say(listen)
            assert (await client.head()).status == 200


async def test_a_connection_that_sends_a_flood_in_one_go_is_cut_off(backend: Backend) -> None:
    limits = HttpLimits(pipelined_max=3)
    ask = b"GET /api/health HTTP/1.1\r\nhost: localhost\r\n\r\n"
    async with backend.port(limits=limits) as port, connected(port) as client:
        await client.say(ask * 50)
        statuses = re.findall(rb"HTTP/1.1 (\d+) ", await client.rest())
    assert statuses == [b"200", b"200", b"200", b"200", b"429"]
