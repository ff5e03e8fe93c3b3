"""Models and providers as clients see them: what is known, what is fetched, what stays secret."""

import asyncio
from pathlib import Path

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.host.loopback import replying, response, serving
from tests.requirements import requirement
from tests.support.api import Api, Stream
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import ScriptedProvider
from tests.support.server_process import server_process

CANARY = "canary-71d0"


async def ids(api: Api, what: str) -> list[str]:
    return [item["id"] for item in (await api.get(f"/api/{what}"))["data"]]


async def test_a_key_makes_the_models_of_its_provider_available(folders: ProjectFolders) -> None:
    folders.variables["ANTHROPIC_API_KEY"] = "k"
    async with running(folders) as instance:
        assert "anthropic" in await ids(instance.api, "provider")
        models = (await instance.api.get("/api/model"))["data"]
        unavailable = await instance.api.call("GET", "/api/provider/openai")
    known = [model for model in models if model["providerID"] == "anthropic"]
    assert len(known) > 5
    assert all(model["cost"] and model["limit"]["context"] for model in known)
    assert unavailable.status == 200


async def test_a_server_fetches_newer_facts_when_its_models_are_used(
    folders: ProjectFolders,
) -> None:
    facts = {
        "acme": {
            "id": "acme",
            "name": "Acme",
            "env": ["ACME_API_KEY"],
            "npm": "@ai-sdk/openai-compatible",
            "api": "https://acme.example/v1",
            "models": {"fresh": {"name": "Fresh", "tool_call": True}},
        }
    }
    folders.variables["ACME_API_KEY"] = "k"
    del folders.variables["OPENCODE_DISABLE_MODELS_FETCH"]
    async with serving(replying(response(codec.encode(facts)))) as published:
        folders.variables["OPENCODE_MODELS_URL"] = published.url
        async with server_process(folders) as server, server.api.stream("/api/event") as events:
            assert published.requests == []
            assert "acme" not in await ids(server.api, "provider")
            seen = await events.until("catalog.updated")
            assert "models-dev.refreshed" in [event["type"] for event in seen]
            assert await ids(server.api, "provider") == ["fake", "demo", "acme"]
            assert "fresh" in await ids(server.api, "model")
        assert len(published.requests) == 1


def secretive(configuration: JsonObject) -> JsonObject:
    """A secret wherever a configuration can hold one, of our own provider and of a known one."""
    slots: JsonObject = {
        "headers": {"x-secret": CANARY},
        "body": {"apiKey": CANARY, "extra": CANARY, "user": CANARY, "metadata": {"a": CANARY}},
    }
    fake = configuration["providers"]["fake"]
    fake["request"] = slots
    fake["env"] = ["FAKE_API_KEY"]
    fake["api"]["url"] += f"?key={CANARY}"
    fake["api"]["settings"] = {"apiKey": CANARY, "organization": CANARY}
    for model in fake["models"].values():
        model["request"] = slots
        model["variants"] = [{"id": "secretive", **slots}]
    url = f"https://user:{CANARY}@acme.example:8443/v1?key={CANARY}#{CANARY}"
    configuration["providers"]["openai"] = {
        "api": {"url": url, "settings": {"baseURL": url, "apiKey": CANARY}},
        "request": slots,
        "models": {"gpt-5": {"request": slots, "variants": [{"id": "high", **slots}]}},
    }
    return configuration


@requirement("S195", "S196")
async def test_no_secret_of_the_configuration_reaches_a_client(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = make_folders(tmp_path, provider)
    path = folders.project / "opencode.json"
    path.write_bytes(codec.encode(secretive(codec.decode_any(path.read_bytes()))))
    folders.variables.update(FAKE_API_KEY=CANARY, OPENAI_API_KEY=CANARY, GROQ_API_KEY=CANARY)
    async with running(folders) as instance, instance.api.stream("/api/event") as events:
        api = instance.api
        paths = ["/api/provider", "/api/model", "/api/integration"]
        paths += (f"/api/{kind}/{name}" for kind in ("provider", "integration") for name in KNOWN)
        answers = [await api.call("GET", path) for path in paths]
        session = await api.create(
            model={"id": "fake-model", "providerID": "fake", "variant": "secretive"}
        )
        messages = await api.ask(session, "hello")
        told = await told_until_idle(events, session)
    assert [answer.status for answer in answers] == [200] * len(paths)
    assert provider.requests[0].headers["x-secret"] == CANARY
    shown = b"".join(answer.body for answer in answers) + codec.encode([messages, told])
    assert b"openai" in shown
    assert CANARY.encode() not in shown


KNOWN = ("fake", "openai", "groq")


async def told_until_idle(events: Stream, session: str) -> list[JsonObject]:
    told: list[JsonObject] = []
    async with asyncio.timeout(10):
        while True:
            told.append(await events.event())
            data = told[-1]["data"]
            if data.get("sessionID") == session and data.get("status") == {"type": "idle"}:
                return told
