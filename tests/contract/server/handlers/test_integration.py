"""The routes of integrations and credentials: spelled as the contract says, and no secret back."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import pytest

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.models.integration import AttemptFailed, AttemptTime
from tests.contract.server.served_runtime import Backend, open_backend
from tests.support.authorization_server import AuthorizationServer, authorization_server
from tests.support.raw_http import call

CANARY: Final = "sk-canary-1c0ffee"
GATE: Final = "/api/integration/gate"


@pytest.fixture
async def authority() -> AsyncGenerator[AuthorizationServer]:
    async with authorization_server() as opened:
        yield opened


@pytest.fixture
async def backend(tmp_path: Path, authority: AuthorizationServer) -> AsyncGenerator[Backend]:
    """A user whose configuration has one provider, with a key, a variable and a login."""
    region = {"type": "text", "key": "region", "message": "Where?"}
    method = authority.method(redirect_url="https://login.gate.example/code", prompts=[region])
    document: JsonObject = {
        "providers": {
            "gate": {
                "name": "Gate",
                "api": {"url": "https://gate.example/v1"},
                "env": ["GATE_KEY"],
                "models": {"one": {}},
            }
        },
        "experimental": {"logins": {"gate": {"code": method}}},
    }
    async with open_backend(tmp_path) as opened:
        path = tmp_path / "home" / ".config" / "opencode" / "opencode.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(codec.encode(document))
        yield opened


async def connections(port: int) -> list[JsonObject]:
    return (await call(port, "GET", GATE)).json()["data"]["connections"]


async def begin(port: int) -> JsonObject:
    body = b'{"methodID":"code","inputs":{"region":"eu"}}'
    begun = await call(port, "POST", f"{GATE}/connect/oauth", body)
    assert begun.status == 200, begun.body
    return begun.json()["data"]


async def test_integrations_are_listed_with_methods_and_connections(
    port: int, backend: Backend
) -> None:
    await call(port, "POST", f"{GATE}/connect/key", b'{"key":"k","label":"mine"}')
    answer = await call(port, "GET", "/api/integration")
    assert answer.status == 200
    assert answer.json()["location"]["directory"] == backend.here
    (found,) = (each for each in answer.json()["data"] if each["id"] == "gate")
    assert found == (await call(port, "GET", GATE)).json()["data"]
    (connection,) = found["connections"]
    assert connection == {"type": "credential", "id": connection["id"], "label": "mine"}
    methods = {method["type"]: method for method in found["methods"]}
    assert (found["name"], methods["key"]) == ("Gate", {"type": "key"})
    assert methods["env"] == {"type": "env", "names": ["GATE_KEY"]}
    assert (methods["oauth"]["id"], methods["oauth"]["label"]) == ("code", "Log in")


async def test_a_key_is_handed_over_and_answered_with_nothing(port: int) -> None:
    body = b'{"key":"%b","label":"mine"}' % CANARY.encode()
    answer = await call(port, "POST", f"{GATE}/connect/key", body)
    assert (answer.status, answer.body) == (204, b"")
    assert [each["label"] for each in await connections(port)] == ["mine"]
    assert CANARY.encode() not in (await call(port, "GET", "/api/integration")).body


async def test_a_login_is_begun_asked_about_and_completed(
    port: int, authority: AuthorizationServer
) -> None:
    begun = await begin(port)
    attempt = f"/api/integration/attempt/{begun['attemptID']}"
    assert dict(parse_qsl(urlsplit(str(begun["url"])).query))["region"] == "eu"
    assert set(begun) == {"attemptID", "url", "instructions", "mode", "time"}
    assert (begun["mode"], set(begun["time"])) == ("code", {"created", "expires"})
    status = (await call(port, "GET", attempt)).json()["data"]
    assert status == {"status": "pending", "time": begun["time"]}
    without_code = await call(port, "POST", f"{attempt}/complete", b"{}")
    assert (without_code.status, without_code.json()["_tag"]) == (400, "InvalidRequestError")
    code, _ = authority.grant(begun["url"])
    completed = await call(port, "POST", f"{attempt}/complete", codec.encode({"code": code}))
    assert (completed.status, completed.body) == (204, b"")
    assert (await call(port, "GET", attempt)).json()["data"]["status"] == "complete"
    assert len(await connections(port)) == 1


async def test_a_login_that_failed_says_why() -> None:
    failed = AttemptFailed("no", AttemptTime(created=1, expires=2))
    assert codec.to_json_value(failed) == {
        "status": "failed",
        "message": "no",
        "time": {"created": 1, "expires": 2},
    }


async def test_a_login_is_cancelled_and_then_unknown(port: int) -> None:
    attempt = f"/api/integration/attempt/{(await begin(port))['attemptID']}"
    for _ in range(2):
        assert (await call(port, "DELETE", attempt)).status == 204
    assert (await call(port, "GET", attempt)).status == 404
    assert (await call(port, "DELETE", "/api/integration/attempt/gone")).status == 204


async def test_a_credential_is_renamed_and_forgotten(port: int) -> None:
    await call(port, "POST", f"{GATE}/connect/key", b'{"key":"k","label":"mine"}')
    (connection,) = await connections(port)
    credential = f"/api/credential/{connection['id']}"
    assert (await call(port, "PATCH", credential, b'{"label":"work"}')).status == 204
    assert await connections(port) == [{**connection, "label": "work"}]
    assert (await call(port, "DELETE", credential)).status == 204
    assert await connections(port) == []


@pytest.mark.parametrize(
    ("method", "path", "body", "tag"),
    [
        ("GET", "/api/integration/nope", None, "IntegrationNotFoundError"),
        (
            "POST",
            "/api/integration/nope/connect/key",
            b'{"key":"k"}',
            "IntegrationNotFoundError",
        ),
        ("GET", "/api/integration/attempt/nope", None, "AttemptNotFoundError"),
        ("POST", "/api/integration/attempt/nope/complete", b"{}", "AttemptNotFoundError"),
        ("PATCH", "/api/credential/nope", b'{"label":"x"}', "CredentialNotFoundError"),
    ],
)
async def test_what_is_not_there_is_said_to_be_missing(
    port: int, method: str, path: str, body: bytes | None, tag: str
) -> None:
    answer = await call(port, method, path, body)
    assert (answer.status, answer.json()["_tag"]) == (404, tag)


@pytest.mark.parametrize(
    ("path", "key"), [(f"{GATE}/connect/key", "key"), (f"{GATE}/connect/oauth", "methodID")]
)
async def test_a_body_that_lacks_what_is_needed_is_refused(port: int, path: str, key: str) -> None:
    answer = await call(port, "POST", path, b"{}")
    assert answer.status == 400
    assert answer.json()["message"].startswith(f'Missing key\n  at ["{key}"]')
    assert answer.json()["kind"] == "Payload"
