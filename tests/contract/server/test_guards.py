"""Who may call: every endpoint against every way of not being allowed."""

import base64
from collections.abc import Mapping

import pytest

from perdure.protocol.api import API as V2_API
from perdure.protocol.endpoint import Endpoint
from perdure.protocol.v1.api import V1_API
from perdure.server import auth
from perdure.server.serve import UnsafeBindError, serve
from perdure.server.settings import ServerSettings
from tests.contract.server.served_runtime import KEY, SESSION, Backend
from tests.support.raw_http import call, connected

API = (*V2_API, *V1_API)
PASSWORD = "pässword"
TOKEN = base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()
GOOD = {"authorization": f"Basic {TOKEN}"}
WRONG = base64.b64encode(b"opencode:other").decode()
FRIEND = "https://friend.example"

INTRUDERS: Mapping[str, tuple[Mapping[str, str], int]] = {
    "no token": ({}, 401),
    "bad token": ({"authorization": f"Basic {WRONG}"}, 401),
    "token that is no base64": ({"authorization": "Basic ====x"}, 401),
    "bearer": ({"authorization": f"Bearer {TOKEN}"}, 401),
    "bad host": (GOOD | {"host": "evil.example"}, 403),
    "bad host with a good one inside": (GOOD | {"host": "localhost.evil.example:80"}, 403),
    "host with a strange port": (GOOD | {"host": "localhost:80@evil.example"}, 403),
    "bad origin": (GOOD | {"origin": "https://evil.example"}, 403),
    "another local page": (GOOD | {"origin": "http://localhost:3000"}, 403),
    "null origin": (GOOD | {"origin": "null"}, 403),
    "rebound": (GOOD | {"host": "evil.example", "origin": "http://evil.example"}, 403),
}


def path_of(endpoint: Endpoint) -> str:
    return (
        endpoint.path.replace("{sessionID}", SESSION)
        .replace("{messageID}", "msg_one")
        .replace("{providerID}", "fake")
    )


@pytest.mark.parametrize("intruder", INTRUDERS)
async def test_no_endpoint_lets_an_intruder_in(intruder: str, backend: Backend) -> None:
    headers, status = INTRUDERS[intruder]
    async with backend.port(backend.settings(password=PASSWORD)) as port:
        before = await call(port, "GET", "/api/session", headers=GOOD)
        for endpoint in API:
            if endpoint.is_open and "authorization" not in headers:
                continue
            body = b"{}" if endpoint.body is not None else None
            answer = await call(port, endpoint.method, path_of(endpoint), body, headers)
            assert answer.status == status, endpoint.operation_id
            tag = {401: "UnauthorizedError", 403: "ForbiddenError"}[status]
            assert answer.json()["_tag"] == tag
            challenged = answer.headers.get("www-authenticate")
            assert challenged == ('Basic realm="Secure Area"' if status == 401 else None)
            assert "access-control-allow-origin" not in answer.headers
        after = await call(port, "GET", "/api/session", headers=GOOD)
    assert (after.status, after.body) == (200, before.body)
    assert await backend.count_events(SESSION) == 0
    assert not backend.runtime.hub.has_readers


@pytest.mark.parametrize(
    ("path", "status"),
    [("/nope", 404), ("/api/nope", 404), ("/doc", 200), ("/openapi.json", 200), ("/assets/x", 404)],
)
async def test_a_stranger_does_not_learn_which_paths_exist(
    path: str, status: int, backend: Backend
) -> None:
    async with backend.port(backend.settings(password=PASSWORD)) as port:
        assert (await call(port, "GET", path)).status == 401
        assert (await call(port, "GET", path, headers=GOOD)).status == status


@pytest.mark.parametrize("scheme", ["Basic", "basic", "BASIC"])
async def test_the_right_password_opens_whatever_the_case_of_the_scheme(
    scheme: str, backend: Backend
) -> None:
    async with backend.port(backend.settings(password=PASSWORD)) as port:
        answer = await call(
            port, "GET", "/api/health", None, {"authorization": f"{scheme} {TOKEN}"}
        )
        assert answer.status == 200


async def test_a_token_in_the_url_opens_streams_and_nothing_else(backend: Backend) -> None:
    async with backend.port(backend.settings(password=PASSWORD)) as port:
        assert (await call(port, "GET", f"/api/session?auth_token={TOKEN}")).status == 401
        for path in ("/api/event", f"/api/session/{SESSION}/event"):
            assert (await call(port, "GET", f"{path}?auth_token={WRONG}")).status == 401
            async with connected(port) as client:
                await client.say(
                    f"GET {path}?auth_token={TOKEN} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()
                )
                assert (await client.head()).status == 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "127.0.0.1:1", "[::1]:1", "[::1]"])
async def test_the_names_of_this_machine_are_answered(host: str, port: int) -> None:
    assert (await call(port, "GET", "/api/health", None, {"host": host})).status == 200


@pytest.mark.parametrize("host", ["", ":80", "[::1", "0.0.0.0", "127.0.0.1.evil.example", "a b"])
async def test_no_other_name_is(host: str, port: int) -> None:
    assert (await call(port, "GET", "/api/health", None, {"host": host})).status == 403


async def test_two_hosts_are_one_too_many(port: int) -> None:
    async with connected(port) as client:
        await client.say(b"GET /api/health HTTP/1.1\r\nhost: evil\r\nhost: localhost\r\n\r\n")
        assert (await client.answer()).status == 400


async def test_a_page_of_our_own_may_call(port: int) -> None:
    headers = {"host": f"localhost:{port}", "origin": f"http://localhost:{port}"}
    assert (await call(port, "GET", "/api/health", None, headers)).status == 200


async def test_a_listed_origin_may_call_and_is_told_so(backend: Backend) -> None:
    async with backend.port(backend.settings(origins=frozenset({FRIEND}))) as port:
        answer = await call(port, "GET", "/api/health", None, {"origin": FRIEND})
        assert answer.status == 200
        assert answer.headers["access-control-allow-origin"] == FRIEND
        assert "Origin" in answer.headers["vary"]
        refused = await call(port, "GET", "/api/nope", None, {"origin": FRIEND})
        assert refused.headers["access-control-allow-origin"] == FRIEND


async def test_a_preflight_needs_no_password_but_a_listed_origin(backend: Backend) -> None:
    given = backend.settings(password=PASSWORD, origins=frozenset({FRIEND}))
    asks = {
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, content-type",
    }
    async with backend.port(given) as port:
        answer = await call(port, "OPTIONS", "/api/session", None, asks | {"origin": FRIEND})
        assert (answer.status, answer.body) == (204, b"")
        assert answer.headers["access-control-allow-origin"] == FRIEND
        assert answer.headers["access-control-allow-methods"] == (
            "GET, HEAD, PUT, PATCH, POST, DELETE"
        )
        assert answer.headers["access-control-allow-headers"] == "authorization, content-type"
        assert answer.headers["access-control-max-age"] == "86400"
        for origin in ("https://evil.example", "null", f"{FRIEND}.evil.example"):
            refused = await call(port, "OPTIONS", "/api/session", None, asks | {"origin": origin})
            assert refused.status == 403
            assert "access-control-allow-origin" not in refused.headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 400), ({"origin": "https://evil.example"}, 403), ({"host": "evil.example"}, 403)],
)
async def test_an_upgrade_is_refused_after_the_same_checks(
    headers: Mapping[str, str], status: int, port: int
) -> None:
    upgrade = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    answer = await call(port, "GET", "/api/event", None, upgrade | dict(headers))
    assert answer.status == status
    assert answer.headers["connection"] == "close"
    assert "_tag" in answer.json()


async def test_a_server_without_a_password_listens_to_this_machine_only(
    backend: Backend,
) -> None:
    given = ServerSettings(default_directory="/", cursor_key=KEY, host="0.0.0.0")
    with pytest.raises(UnsafeBindError):
        await serve(backend.runtime, given, ready=lambda _: None)


def test_secrets_do_not_show_when_settings_are_printed() -> None:
    shown = repr(ServerSettings(default_directory="/", cursor_key=KEY, password=PASSWORD))
    assert PASSWORD not in shown
    assert repr(KEY) not in shown


def test_a_longer_wrong_password_is_compared_like_a_short_one() -> None:
    given = ServerSettings(default_directory="/", cursor_key=KEY, password=PASSWORD)
    policy = auth.make_policy(given)
    assert policy.credential is not None
    assert len(policy.credential) == 32
