"""A Session with Gemini at Vertex AI, over real HTTP, with the Google login of the user."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest

from perdure.schema import codec
from tests.contract.llm.protocols.gemini import recordings as wire
from tests.contract.llm.protocols.gemini.validator import faults
from tests.requirements import requirement
from tests.support.api import Api
from tests.support.authorization_server import AuthorizationServer, authorization_server
from tests.support.instance import running
from tests.support.project import make_folders
from tests.support.scripted_provider import Reply, ScriptedProvider, scripted_provider


@dataclass(frozen=True, slots=True)
class Cloud:
    api: Api
    tokens: AuthorizationServer
    models: ScriptedProvider


@pytest.fixture
async def cloud(tmp_path: Path, provider: ScriptedProvider) -> AsyncGenerator[Cloud]:
    async with authorization_server() as tokens, scripted_provider() as models:
        folders = make_folders(tmp_path, provider, model="vertex/gemini-3-test")
        home = tmp_path / "home"
        entry = {
            "api": {"type": "aisdk", "package": "@ai-sdk/google-vertex", "url": models.url},
            "env": ["GOOGLE_APPLICATION_CREDENTIALS"],
            "models": {"gemini-3-test": {"limit": {"context": 1_000_000, "output": 32_000}}},
        }
        login = {
            "type": "authorized_user",
            "client_id": "client",
            "client_secret": "canary-client-secret",
            "refresh_token": tokens.tokens()["refresh_token"],
            "token_uri": f"{tokens.url}/token",
        }
        written = {
            home / ".config/opencode/opencode.json": {"providers": {"vertex": entry}},
            home / ".config/gcloud/application_default_credentials.json": login,
        }
        for file, content in written.items():
            file.parent.mkdir(parents=True)
            file.write_bytes(codec.encode(content))
        async with running(folders) as instance:
            yield Cloud(instance.api, tokens, models)


@requirement("S92")
async def test_a_turn_is_answered_with_a_token_of_the_users_login(cloud: Cloud) -> None:
    for word in ("Hello", "Again"):
        frame = wire.chunk(wire.said(word), why="STOP")
        cloud.models.then(Reply(pieces=(wire.body_of([frame]),)))
    session = await cloud.api.create()
    _, first = await cloud.api.ask(session, "hi")
    assert [part["text"] for part in first["content"]] == ["Hello"]
    await cloud.api.ask(session, "more")
    assert cloud.tokens.renewals == 1
    access = cloud.tokens.issued[-1]
    for request in cloud.models.requests:
        assert request.headers["authorization"] == f"Bearer {access}"
        assert faults(request.body, request.raw) == []


async def test_a_login_that_is_refused_is_a_failed_step_that_tells_no_secret(
    cloud: Cloud,
) -> None:
    cloud.tokens.status = 400
    session = await cloud.api.create()
    _, failed = await cloud.api.ask(session, "hi")
    assert "gcloud auth application-default login" in failed["error"]["message"]
    assert b"canary" not in codec.encode(failed)
    assert cloud.models.requests == []
