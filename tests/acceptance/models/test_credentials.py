"""Credentials of providers: stored once, sent where they belong, changed without a restart."""

import asyncio
import stat
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from perdure.host.credentials.file import FileCredentials
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.host import stored
from tests.support.api import PATIENCE_SECONDS, Api
from tests.support.authorization_server import AuthorizationServer, authorization_server, browse
from tests.support.instance import Instance, running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import ScriptedProvider, refusal

CANARY = "sk-canary-5eed5"
MODEL = {"id": "gate-model", "providerID": "gate"}


@pytest.fixture
async def authority() -> AsyncGenerator[AuthorizationServer]:
    async with authorization_server() as opened:
        yield opened


@pytest.fixture
def folders(
    tmp_path: Path, provider: ScriptedProvider, authority: AuthorizationServer
) -> ProjectFolders:
    """The user knows the provider `gate` and how to log in; the project knows nothing of it."""
    made = make_folders(tmp_path, provider, model="gate/gate-model")
    configure_user(
        made,
        providers={"gate": gate(provider.url, env=["GATE_KEY"])},
        experimental={"logins": {"gate": {"browser": authority.method()}}},
    )
    return made


def gate(url: str, **fields: object) -> JsonObject:
    return {
        "name": "Gate",
        "api": {"type": "aisdk", "package": "@ai-sdk/openai-compatible", "url": url},
        "models": {"gate-model": {"limit": {"context": 1_000_000, "output": 32_000}}},
        **fields,
    }


def configure_user(folders: ProjectFolders, **document: object) -> None:
    path = Path(folders.variables["HOME"]) / ".config" / "opencode" / "opencode.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(codec.encode(document))


def credential_file(folders: ProjectFolders) -> Path:
    return folders.data / "credentials.json"


async def store_key(api: Api, key: str = CANARY, provider: str = "gate") -> None:
    await api.post(f"/api/integration/{provider}/connect/key", {"key": key, "label": "mine"})


async def connections(api: Api, provider: str = "gate") -> list[JsonObject]:
    return (await api.get(f"/api/integration/{provider}"))["data"]["connections"]


async def log_in(api: Api, authority: AuthorizationServer) -> None:
    body: JsonObject = {"methodID": "browser", "inputs": {}}
    attempt = (await api.post("/api/integration/gate/connect/oauth", body))["data"]
    _, back = authority.grant(attempt["url"])
    assert (await browse(back))[0] == 200
    status = (await api.get(f"/api/integration/attempt/{attempt['attemptID']}"))["data"]
    assert status["status"] == "complete"


def sent_key(provider: ScriptedProvider) -> str:
    return provider.requests[-1].headers["authorization"]


async def test_a_stored_key_makes_its_models_usable_and_goes_to_their_provider(
    api: Api, provider: ScriptedProvider
) -> None:
    assert "gate" not in {model["providerID"] for model in (await api.get("/api/model"))["data"]}
    await store_key(api)
    assert "gate" in {model["providerID"] for model in (await api.get("/api/model"))["data"]}
    session = await api.create()
    (*_, answer) = await api.ask(session, "hello")
    assert answer["content"][0]["text"] == "ok"
    assert sent_key(provider) == f"Bearer {CANARY}"


async def test_a_known_provider_is_offered_for_as_long_as_a_key_of_it_is_stored(api: Api) -> None:
    async def offers() -> bool:
        models, providers = await api.get("/api/model"), await api.get("/api/provider")
        found = {model["providerID"] for model in models["data"]}
        assert found == {provider["id"] for provider in providers["data"]}
        return "anthropic" in found

    assert not await offers()
    await store_key(api, provider="anthropic")
    assert await offers()
    (connection,) = await connections(api, "anthropic")
    assert (await api.call("DELETE", f"/api/credential/{connection['id']}")).status == 204
    assert not await offers()


async def test_a_missing_key_is_told_in_the_step_that_needed_it(api: Api) -> None:
    session = await api.create()
    (*_, answer) = await api.ask(session, "hello")
    assert "GATE_KEY" in answer["error"]["message"]


async def test_running_sessions_use_another_key_from_their_next_turn_on(
    instance: Instance, provider: ScriptedProvider
) -> None:
    api = instance.api
    await store_key(api, "first")
    session = await api.create()
    await api.ask(session, "one")
    assert sent_key(provider) == "Bearer first"
    await store_key(api, "second")
    await api.ask(session, "two")
    assert sent_key(provider) == "Bearer second"
    # Another process of the user's: `perdure auth login` beside a running server.
    held = FileCredentials(str(instance.folders.data)).look()["gate"]
    theirs = stored.key("gate", value="third")
    origins = codec.to_json_value(held)["origins"]
    FileCredentials(str(instance.folders.data)).put(
        codec.convert(type(theirs), {**codec.to_json_value(theirs), "origins": origins}),
        instead_of=None,
    )
    await api.ask(session, "three")
    assert sent_key(provider) == "Bearer third"
    (connection,) = await connections(api)
    await api.call("DELETE", f"/api/credential/{connection['id']}")
    messages = await api.ask(session, "four")
    assert "GATE_KEY" in messages[-1]["error"]["message"]
    assert len(provider.requests) == 3


async def test_whoever_listens_hears_that_a_connection_changed(instance: Instance) -> None:
    api = instance.api
    async with api.stream("/api/event") as live:
        await live.until("server.connected")
        await store_key(api)
        seen = await live.until("catalog.updated")
        assert [(event["type"], event["data"]) for event in seen] == [
            ("integration.connection.updated", {"integrationID": "gate"}),
            ("integration.updated", {}),
            ("catalog.updated", {}),
        ]
        (connection,) = await connections(api)
        path = f"/api/credential/{connection['id']}"
        assert (await api.call("PATCH", path, {"label": "work"})).status == 204
        await live.until("integration.connection.updated", integrationID="gate")
        assert (await connections(api))[0]["label"] == "work"
        assert (await api.call("DELETE", path)).status == 204
        await live.until("integration.connection.updated", integrationID="gate")
        assert (await api.call("DELETE", path)).status == 204
        assert await connections(api) == []


async def test_a_project_that_redirects_a_known_provider_gets_no_stored_key(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    theirs: JsonObject = {**gate(provider.url), "models": {"gpt-5": {}}}
    (folders.project / "opencode.json").write_bytes(
        codec.encode({"model": "openai/gpt-5", "providers": {"openai": theirs}})
    )
    async with running(folders) as instance:
        # Stored from inside that very project: it is for the provider's own address all the same.
        await store_key(instance.api, provider="openai")
        (*_, answer) = await instance.api.ask(await instance.api.create(), "hello")
    assert "https://api.openai.com" in answer["error"]["message"]
    assert CANARY not in answer["error"]["message"]
    assert provider.requests == []


async def test_a_project_that_takes_the_name_of_a_provider_gets_no_stored_key(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    configure_user(folders, providers={"gate": gate("https://api.gate.example")})
    async with running(folders) as instance:
        await store_key(instance.api)
    # The user forgets about the provider; a cloned project remembers, and says where it is.
    configure_user(folders)
    (folders.project / "opencode.json").write_bytes(
        codec.encode({"model": "gate/gate-model", "providers": {"gate": gate(provider.url)}})
    )
    async with running(folders) as instance:
        session = await instance.api.create()
        (*_, answer) = await instance.api.ask(session, "hello")
        message = answer["error"]["message"]
        assert "https://api.gate.example" in message
        assert provider.url.removesuffix("/v1") in message
        assert CANARY not in message
    assert provider.requests == []


async def test_no_key_is_kept_for_a_provider_that_only_a_project_defines(api: Api) -> None:
    answer = await api.call("POST", "/api/integration/fake/connect/key", {"key": CANARY})
    assert answer.status == 400
    assert answer.json["kind"] == "integration_authorization"
    assert "your own configuration" in answer.json["message"]


async def test_a_provider_without_an_address_says_so(folders: ProjectFolders) -> None:
    configure_user(folders, providers={"gate": {"env": ["GATE_KEY"]}})
    async with running(folders) as instance:
        answer = await instance.api.call("POST", "/api/integration/gate/connect/key", {"key": "k"})
    assert answer.status == 400
    assert "has no URL" in answer.json["message"]


async def test_a_variable_is_a_connection_by_its_name(folders: ProjectFolders) -> None:
    folders.variables["GATE_KEY"] = CANARY
    async with running(folders) as instance:
        await store_key(instance.api)
        first, second = await connections(instance.api)
        assert (first["type"], second) == ("credential", {"type": "env", "name": "GATE_KEY"})


@pytest.mark.parametrize(
    "key", ["", "a b", "a\nb", f"{CANARY}\r\nx-evil: 1", "\x00", "x" * 1024 * 1024]
)
async def test_what_cannot_be_a_key_is_refused_and_nothing_is_stored(
    instance: Instance, key: str
) -> None:
    answer = await instance.api.call("POST", "/api/integration/gate/connect/key", {"key": key})
    assert (answer.status, answer.json["kind"]) == (400, "integration_authorization")
    assert CANARY.encode() not in answer.body
    assert len(answer.body) < 1_000
    assert not credential_file(instance.folders).exists()


@pytest.mark.parametrize("label", ["", "x" * 201, "a\nb", "\x1b[2J"])
async def test_a_label_is_one_line(instance: Instance, label: str) -> None:
    await store_key(instance.api)
    (connection,) = await connections(instance.api)
    path = f"/api/credential/{connection['id']}"
    answer = await instance.api.call("PATCH", path, {"label": label})
    assert answer.status == 400
    assert await connections(instance.api) == [connection]


async def test_a_file_that_cannot_be_trusted_stops_what_needs_it_and_nothing_else(
    instance: Instance, provider: ScriptedProvider
) -> None:
    api = instance.api
    await store_key(api)
    path = credential_file(instance.folders)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    listed = await api.call("GET", "/api/integration")
    assert (listed.status, listed.json["service"]) == (503, "credentials")
    assert f"chmod 600 {path}" in listed.json["message"]
    stopped = await api.create()
    (*_, answer) = await api.ask(stopped, "hello")
    assert f"chmod 600 {path}" in answer["error"]["message"]
    # This one has its key beside its address.
    going = await api.create(model={"id": "fake-model", "providerID": "fake"})
    (*_, answer) = await api.ask(going, "hello")
    assert answer["content"][0]["text"] == "ok"
    path.chmod(0o600)
    await api.ask(stopped, "again")
    assert sent_key(provider) == f"Bearer {CANARY}"


async def test_a_damaged_file_is_kept_aside_when_a_key_is_stored_anew(instance: Instance) -> None:
    path = credential_file(instance.folders)
    path.write_bytes(b'{"version":1,"credentials":[')
    path.chmod(0o600)
    assert (await instance.api.call("GET", "/api/integration")).status == 503
    await store_key(instance.api)
    assert len(await connections(instance.api)) == 1
    (aside,) = instance.folders.data.glob("credentials.json.damaged-*")
    assert aside.read_bytes() == b'{"version":1,"credentials":['


# ---- logins -------------------------------------------------------------------------------------


async def test_a_login_is_used_and_renewed_while_a_session_goes_on(
    api: Api, authority: AuthorizationServer, provider: ScriptedProvider
) -> None:
    authority.expires_in = 1
    await log_in(api, authority)
    session = await api.create()
    await api.ask(session, "one")
    first = sent_key(provider)
    assert first.removeprefix("Bearer ") in authority.issued
    authority.expires_in = 3600
    await authority.until_asked(2)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while sent_key(provider) == first:
            await api.ask(session, "again")
    assert authority.renewals == 1


async def test_a_login_that_its_provider_will_not_renew_is_told_and_can_be_made_anew(
    api: Api, authority: AuthorizationServer
) -> None:
    authority.expires_in = 1
    await log_in(api, authority)
    authority.valid.clear()
    authority.status = 400
    session = await api.create()
    await api.ask(session, "hello")
    await authority.until_asked(2)
    message = ""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while "log in again" not in message:
            messages = await api.ask(session, "hello")
            message = messages[-1].get("error", {}).get("message", "")
    assert "invalid_grant" in message
    authority.status, authority.expires_in = 200, 3600
    await log_in(api, authority)
    messages = await api.ask(session, "and now")
    assert messages[-1]["content"][0]["text"] == "ok"


# ---- secrets ------------------------------------------------------------------------------------


async def test_no_secret_is_in_any_answer_event_log_or_database(
    folders: ProjectFolders,
    authority: AuthorizationServer,
    provider: ScriptedProvider,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(0)
    seen: list[bytes] = []
    async with running(folders) as instance:
        api = instance.api
        async with api.stream("/api/event") as live:
            await store_key(api)
            await api.ask(await api.create(), "with a key")
            await log_in(api, authority)
            await api.ask(await api.create(), "with a login")
            echo = authority.issued[-1]
            provider.then(refusal(401, {"error": {"message": f"{echo} is no token of ours"}}))
            await api.ask(await api.create(), "refused")
            paths = ["/api/integration", "/api/integration/gate", "/api/provider", "/api/model"]
            seen += [(await api.call("GET", path)).body for path in paths]
            sessions = (await api.get("/api/session"))["data"]
            for session in sessions:
                at = f"/api/session/{session['id']}"
                for path in (f"{at}/message", f"{at}/history?limit=100", f"{at}/provider-context"):
                    seen.append((await api.call("GET", path)).body)
            await store_key(api, "last")
            events = await live.until("integration.connection.updated", integrationID="gate")
            events += await live.until("catalog.updated")
            seen.append(codec.encode(events))
        async with api.events(sessions[0]["id"]) as durable:
            seen.append(codec.encode(await durable.until("step.failed")))
    seen += [record.getMessage().encode() for record in caplog.records]
    seen += [repr(record.args).encode() for record in caplog.records]
    seen += [path.read_bytes() for path in folders.data.glob("perdure.db*")]
    secrets = [CANARY, *authority.issued]
    assert len(secrets) > 3
    found = [(secret, data[:200]) for data in seen for secret in secrets if secret.encode() in data]
    assert found == []
    # What was looked for had really been sent, and came back in an error.
    assert provider.requests[0].headers["authorization"] == f"Bearer {CANARY}"
    assert provider.requests[-1].headers["authorization"] == f"Bearer {echo}"
