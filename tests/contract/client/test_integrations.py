"""Integrations and credentials through the client, over a socket and in memory."""

import json
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import pytest

from perdure.client import WireClient, WireError
from perdure.schema.codec import JsonObject
from tests.contract.client.hosts import OpenClient, in_memory, over_network, plain
from tests.support.authorization_server import AuthorizationServer, authorization_server

CANARY: Final = "sk-canary-c11e47"


@pytest.fixture
async def authority() -> AsyncGenerator[AuthorizationServer]:
    async with authorization_server() as opened:
        yield opened


@pytest.fixture(params=[over_network, in_memory], ids=["network", "memory"])
async def client(
    request: pytest.FixtureRequest, tmp_path: Path, authority: AuthorizationServer
) -> AsyncGenerator[WireClient]:
    region = {"type": "text", "key": "region", "message": "Where?"}
    method = authority.method(redirect_url="https://login.gate.example/code", prompts=[region])
    document: JsonObject = {
        "providers": {"gate": {"api": {"url": "https://gate.example/v1"}, "models": {"one": {}}}},
        "experimental": {"logins": {"gate": {"code": method}}},
    }
    path = Path(os.environ["HOME"]) / ".config" / "opencode" / "opencode.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    opens: OpenClient = request.param
    async with opens(tmp_path) as opened:
        yield opened


async def test_a_key_is_stored_renamed_and_forgotten(client: WireClient) -> None:
    await client.integrations.connect_key("gate", CANARY, label="mine")
    assert any(each["id"] == "gate" for each in await client.integrations.list())
    found = await client.integrations.get("gate")
    (connection,) = plain(found["connections"])
    assert connection["label"] == "mine"
    assert CANARY not in repr(found)
    await client.credentials.update(connection["id"], label="work")
    (renamed,) = (await client.integrations.get("gate"))["connections"]
    assert renamed == {**connection, "label": "work"}
    await client.credentials.remove(connection["id"])
    await client.credentials.remove(connection["id"])
    assert (await client.integrations.get("gate"))["connections"] == []


async def test_a_login_is_begun_with_answers_and_completed_with_a_code(
    client: WireClient, authority: AuthorizationServer
) -> None:
    attempt = await client.integrations.connect_oauth("gate", "code", inputs={"region": "eu"})
    assert dict(parse_qsl(urlsplit(str(attempt["url"])).query))["region"] == "eu"
    assert (await client.integrations.attempt(attempt["attemptID"]))["status"] == "pending"
    with pytest.raises(WireError) as raised:
        await client.integrations.complete_attempt(attempt["attemptID"])
    assert (raised.value.tag, raised.value.status) == ("InvalidRequestError", 400)
    code, _ = authority.grant(attempt["url"])
    await client.integrations.complete_attempt(attempt["attemptID"], code)
    assert (await client.integrations.attempt(attempt["attemptID"]))["status"] == "complete"
    (connection,) = plain((await client.integrations.get("gate"))["connections"])
    assert connection["label"] == "Log in"


async def test_a_login_is_cancelled_and_then_unknown(client: WireClient) -> None:
    attempt = await client.integrations.connect_oauth("gate", "code", inputs={"region": "eu"})
    await client.integrations.cancel_attempt(attempt["attemptID"])
    await client.integrations.cancel_attempt(attempt["attemptID"])
    with pytest.raises(WireError) as raised:
        await client.integrations.attempt(attempt["attemptID"])
    assert raised.value.tag == "AttemptNotFoundError"


async def test_what_is_unknown_is_a_declared_failure(client: WireClient) -> None:
    with pytest.raises(WireError) as raised:
        await client.integrations.connect_key("nobody", CANARY)
    assert raised.value.tag == "IntegrationNotFoundError"
    assert CANARY not in repr(raised.value)
    with pytest.raises(WireError) as raised:
        await client.credentials.update("cred_nobody", label="x")
    assert raised.value.tag == "CredentialNotFoundError"
