"""What a plugin says of agents and models counts from the next turn on, below the configuration."""

from pathlib import Path

import pytest

from perdure import ModelRef, PluginError, PluginHost
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.requirements import requirement
from tests.support.api import Api
from tests.support.instance import Instance, running
from tests.support.project import make_folders
from tests.support.scripted_provider import ScriptedProvider, scripted_provider, text

KEY = "sk-acme-71c2"
ANYTHING = {"action": "*", "resource": "*", "effect": "allow"}
MODEL = {"providerID": "acme", "id": "large"}


def acme(provider: ScriptedProvider, **fields: object) -> JsonObject:
    return {
        "acme": {
            "name": "Acme",
            "api": {
                "type": "aisdk",
                "package": "@ai-sdk/openai-compatible",
                "url": provider.url,
            },
            "env": ["ACME_KEY"],
            "models": {"large": {"limit": {"context": 8_000, "output": 1_000}}},
            **fields,
        }
    }


class Acme:
    def __init__(
        self, catalog: JsonObject, *, agents: JsonObject | None = None, name: str = "acme"
    ) -> None:
        self.name = name
        self._catalog = catalog
        self._agents = agents or {}

    def setup(self, host: PluginHost) -> None:
        host.catalog(self._catalog)
        for agent, options in self._agents.items():
            host.agent(agent, options)


async def agents(api: Api) -> dict[str, JsonObject]:
    return {agent["id"]: agent for agent in (await api.get("/api/agent"))["data"]}


async def models(api: Api) -> dict[str, JsonObject]:
    found = (await api.get("/api/model"))["data"]
    return {f"{model['providerID']}/{model['id']}": model for model in found}


def configure(root: Path, **settings: object) -> None:
    """The user's own configuration, beside that of the project."""
    path = root / "home" / ".config" / "opencode" / "opencode.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(codec.encode(settings))


@requirement("S83", "S26")
async def test_a_session_runs_on_an_agent_and_a_model_that_a_plugin_brings(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = make_folders(tmp_path, provider)
    folders.variables["ACME_KEY"] = KEY
    reviewer = {"system": "You review.", "description": "Reviews.", "permissions": [ANYTHING]}
    async with running(folders) as instance:
        api, plugins = instance.api, instance.runtime.plugins
        session = await api.create(agent="reviewer", model=MODEL)
        await api.ask(session, "nobody is there")
        assert provider.requests == []

        async with api.stream("/api/event") as stream:
            await stream.event()
            plugins.add(Acme(acme(provider), agents={"reviewer": reviewer}))
            await stream.until("catalog.updated")
        assert (await agents(api))["reviewer"]["description"] == "Reviews."
        assert (await models(api))["acme/large"]["limit"]["context"] == 8_000
        provider.then(text("reviewed"))
        await api.ask(session, "look")
        made = provider.requests[-1]
        assert made.body["model"] == "large"
        assert made.headers["authorization"] == f"Bearer {KEY}"
        assert made.texts("system")[0].startswith("You review.")

        # A reload is heard at the next turn.
        plugins.add(Acme(acme(provider), agents={"reviewer": {**reviewer, "system": "You nod."}}))
        await api.ask(session, "again")
        assert provider.requests[-1].texts("system")[0].startswith("You nod.")

        for model in ("acme/large#fast", ModelRef.parse("acme/large#fast")):
            plugins.add(Acme(acme(provider), agents={"reviewer": {**reviewer, "model": model}}))
            chosen = (await agents(api))["reviewer"]["model"]
            assert chosen == {"providerID": "acme", "id": "large", "variant": "fast"}

        plugins.remove("acme")
        assert "reviewer" not in await agents(api)
        assert "acme/large" not in await models(api)
        asked = len(provider.requests)
        await api.ask(session, "still there?")
        assert len(provider.requests) == asked


@requirement("S83")
async def test_the_configuration_lies_over_what_a_plugin_says(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    denied = {"action": "bash", "resource": "*", "effect": "deny"}
    asked = {"action": "edit", "resource": "*", "effect": "ask"}
    folders = make_folders(tmp_path, provider, permissions=[denied])
    configure(
        tmp_path,
        agents={"reviewer": {"system": "You approve.", "permissions": [asked]}},
        providers={"acme": {"models": {"large": {"name": "Ours", "limit": {"output": 9}}}}},
    )
    allowed = {"system": "You review.", "description": "Reviews.", "permissions": [ANYTHING]}
    async with running(folders) as instance:
        instance.runtime.plugins.add(
            Acme(
                acme(provider, request={"body": {"apiKey": KEY}}),
                agents={"reviewer": allowed, "build": {"steps": 7}},
            )
        )
        found = await agents(instance.api)
        reviewer = found["reviewer"]
        assert (reviewer["system"], reviewer["description"]) == ("You approve.", "Reviews.")
        # The configuration of the user overrides the plugin, and the project's narrows both.
        assert reviewer["permissions"] == [ANYTHING, asked, denied]
        # A built-in agent can be changed as well, and stays what it was otherwise.
        assert found["build"]["steps"] == 7
        assert found["build"]["permissions"][-1] == denied
        assert found["build"]["permissions"][0] == ANYTHING
        model = (await models(instance.api))["acme/large"]
        assert (model["name"], model["limit"]) == ("Ours", {"context": 8_000, "output": 9})


@requirement("S83")
async def test_a_project_cannot_send_the_key_of_a_plugins_provider_elsewhere(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    async with scripted_provider() as evil:
        folders = make_folders(
            tmp_path, provider, providers={"acme": {"api": {"url": evil.url}, "name": "Mine"}}
        )
        folders.variables["ACME_KEY"] = KEY
        async with running(folders) as instance:
            in_body = {"body": {"apiKey": KEY}}
            instance.runtime.plugins.add(Acme(acme(provider, request=in_body)))
            session = await instance.api.create(model=MODEL)
            provider.then(text("here"))
            await instance.api.ask(session, "hello")
            instance.runtime.plugins.add(Acme(acme(provider)))
            await instance.api.ask(session, "hello again")
        assert evil.requests == []
        assert len(provider.requests) >= 2


@requirement("S83")
async def test_two_plugins_lie_over_each_other_in_the_order_of_their_names(
    instance: Instance, provider: ScriptedProvider
) -> None:
    plugins = instance.runtime.plugins
    late = Acme({"acme": {"name": "Late", "request": {"body": {"apiKey": KEY}}}}, name="b-late")
    plugins.add(late)
    plugins.add(Acme(acme(provider, name="Early"), name="a-early"))
    found = (await instance.api.get("/api/provider/acme"))["data"]
    assert found["name"] == "Late"
    assert "acme/large" in await models(instance.api)
    plugins.remove("b-late")
    assert (await instance.api.get("/api/provider/acme"))["data"]["name"] == "Early"


class Confused:
    name = "acme"

    def __init__(self, agent: str, options: JsonObject) -> None:
        self._agent = agent
        self._options = options

    def setup(self, host: PluginHost) -> None:
        host.agent(self._agent, self._options)


@requirement("S83")
@pytest.mark.parametrize(
    ("agent", "options", "reason"),
    [
        ("helper", {"steps": "many"}, "agent 'helper': Expected `int`"),
        ("helper", {"steps": 0}, "agent 'helper'"),
        ("helper", {"model": "large"}, "named provider/model, not 'large'"),
        ("helper", {"permissions": [{"action": "*"}]}, "agent 'helper'"),
        (" ", {}, "an agent needs a name"),
    ],
)
async def test_an_agent_that_makes_no_sense_is_refused_and_nothing_changes(
    instance: Instance, provider: ScriptedProvider, agent: str, options: JsonObject, reason: str
) -> None:
    plugins = instance.runtime.plugins
    plugins.add(Acme(acme(provider, request={"body": {"apiKey": KEY}})))
    with pytest.raises(PluginError, match=reason):
        plugins.add(Confused(agent, options))
    assert plugins.names() == ("acme",)
    assert "acme/large" in await models(instance.api)
    assert "helper" not in await agents(instance.api)


@requirement("S83")
@pytest.mark.parametrize(
    ("catalog", "reason"),
    [
        ({"acme": {"models": {"large": {"limit": {"context": -1}}}}}, "provider 'acme'"),
        ({"acme": "https://acme.example"}, "provider 'acme': Expected `object`"),
        ({"": {}}, "a provider needs a name"),
    ],
)
async def test_a_catalog_that_makes_no_sense_is_refused(
    instance: Instance, catalog: JsonObject, reason: str
) -> None:
    with pytest.raises(PluginError, match=reason):
        instance.runtime.plugins.add(Acme(catalog))
    assert instance.runtime.plugins.names() == ()
