"""The Catalog of a Location: choosing a model, reaching it, and saying why not."""

import subprocess
import sys

import pytest

from perdure.llm.event import Finish, LLMEvent
from perdure.llm.message import LLMMessage, TextPart, split_segments
from perdure.llm.request import LLMRequest
from perdure.location.models.catalog import Catalog, ResolvedModel
from perdure.location.models.failures import (
    ModelNotSelected,
    ModelUnavailable,
    UnsupportedApi,
    VariantUnavailable,
)
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.errors import ProviderNotFoundError
from perdure.schema.models.model import ModelRef
from perdure.testing import ManualClock
from tests.contract.location.opened_location import LocationFolders
from tests.requirements import requirement

COMPATIBLE = {"type": "aisdk", "package": "@ai-sdk/openai-compatible", "url": "http://llm.test/v1"}
FAKE = ModelRef(id="fake-model", provider_id="fake")


def bench_config() -> JsonObject:
    """The shape that the benchmark of the runtime uses."""
    return {
        "model": "fake/fake-model",
        "experimental": {
            "policies": [
                {"effect": "deny", "action": "provider.use", "resource": "*"},
                {"effect": "allow", "action": "provider.use", "resource": "fake"},
            ]
        },
        "providers": {
            "fake": {
                "name": "Fake",
                "api": COMPATIBLE,
                "request": {"headers": {"x-team": "a"}, "body": {"apiKey": "bench", "user": "me"}},
                "models": {
                    "fake-model": {
                        "name": "Fake Model",
                        "api": {"id": "wire-model"},
                        "capabilities": {"tools": True, "input": ["text"], "output": ["text"]},
                        "limit": {"context": 100000000, "output": 32000},
                        "variants": [{"id": "fast", "body": {"reasoning_effort": "low"}}],
                    }
                },
            }
        },
    }


def catalog_of(folders: LocationFolders, config: JsonObject | None = None) -> Catalog:
    if config is not None:
        folders.configure(config)
    return Catalog(
        folders.settings(),
        variables=folders.variables,
        transport=folders.transport,
        clock=ManualClock(),
    )


async def answer(model: ResolvedModel) -> list[LLMEvent]:
    message = LLMMessage("user", (TextPart("hello"),))
    request = LLMRequest(
        model=model.ref, system=("Be brief.",), segments=split_segments((message,))
    )
    return [event async for batch in model.call(request) for event in batch]


async def test_a_configured_model_is_the_default_and_can_be_called(
    folders: LocationFolders,
) -> None:
    catalog = catalog_of(folders, bench_config())
    resolved = catalog.resolve(None)
    assert isinstance(resolved, ResolvedModel)
    assert (resolved.ref, resolved.limit.context) == (FAKE, 100000000)
    events = await answer(resolved)
    assert isinstance(events[-1], Finish)
    [sent] = folders.transport.requests
    assert sent.url == "http://llm.test/v1/chat/completions"
    assert sent.headers["authorization"] == "Bearer bench"
    assert sent.headers["x-team"] == "a"
    body = codec.decode_any(b"".join(sent.body))
    assert (body["model"], body["user"]) == ("wire-model", "me")
    assert b"bench" not in b"".join(sent.body)
    assert b"apiKey" not in b"".join(sent.body)


async def test_a_variant_lays_its_fields_over_the_model(folders: LocationFolders) -> None:
    catalog = catalog_of(folders, bench_config())
    ref = ModelRef(id="fake-model", provider_id="fake", variant="fast")
    resolved = catalog.resolve(ref)
    assert isinstance(resolved, ResolvedModel)
    await answer(resolved)
    body = codec.decode_any(b"".join(folders.transport.requests[0].body))
    assert body["reasoning_effort"] == "low"


def test_an_unknown_variant_is_named_with_those_there_are(folders: LocationFolders) -> None:
    ref = ModelRef(id="fake-model", provider_id="fake", variant="slow")
    failure = catalog_of(folders, bench_config()).resolve(ref)
    assert isinstance(failure, VariantUnavailable)
    assert "'slow'" in failure.message
    assert "fast" in failure.message


@pytest.mark.parametrize(
    "ref",
    [
        ModelRef(id="yyy", provider_id="zzz"),
        ModelRef(id="yyy", provider_id="fake"),
        ModelRef(id="demo", provider_id="demo"),
        ModelRef(id="", provider_id=""),
    ],
)
def test_a_model_that_is_not_there_says_what_is_missing(
    folders: LocationFolders, ref: ModelRef
) -> None:
    failure = catalog_of(folders, bench_config()).resolve(ref)
    assert isinstance(failure, ModelUnavailable)
    assert f"{ref.provider_id}/{ref.id}" in failure.message


def test_an_api_that_is_not_supported_is_listed_and_says_why_it_cannot_be_called(
    folders: LocationFolders,
) -> None:
    catalog = catalog_of(
        folders,
        {
            "providers": {
                "a": {
                    "api": {"type": "aisdk", "package": "@ai-sdk/unheard-of"},
                    "request": {"body": {"apiKey": "k"}},
                    "models": {"m": {}},
                }
            }
        },
    )
    assert [model.provider_id for model in catalog.models()] == ["a", "demo"]
    failure = catalog.resolve(ModelRef(id="m", provider_id="a"))
    assert isinstance(failure, UnsupportedApi)
    assert "@ai-sdk/unheard-of" in failure.message


def test_the_newest_model_that_works_is_the_default_and_the_demo_is_last(
    folders: LocationFolders,
) -> None:
    assert catalog_of(folders).default() == ModelRef(id="demo", provider_id="demo")
    old, new = {"time": {"released": 1}}, {"time": {"released": 2}}
    catalog = catalog_of(
        folders,
        {
            "providers": {
                "p": {"api": COMPATIBLE, "models": {"old": old, "new": new, "undated": {}}},
                "u": {
                    "api": {"type": "aisdk", "package": "other"},
                    "models": {"newest": {"time": {"released": 9}}},
                },
            }
        },
    )
    assert catalog.default() == ModelRef(id="new", provider_id="p")
    assert [model.id for model in catalog.models()] == ["newest", "new", "old", "undated", "demo"]


def test_a_configured_model_that_fails_is_not_replaced_by_another(folders: LocationFolders) -> None:
    failure = catalog_of(folders, {"model": "gone/gone"}).resolve(None)
    assert isinstance(failure, ModelUnavailable)


def test_without_any_provider_nothing_is_selected(folders: LocationFolders) -> None:
    deny = {"effect": "deny", "action": "provider.use", "resource": "*"}
    catalog = catalog_of(folders, {"experimental": {"policies": [deny]}})
    assert isinstance(catalog.resolve(None), ModelNotSelected)
    assert catalog.models() == ()


async def test_the_demo_answers_without_any_configuration(folders: LocationFolders) -> None:
    resolved = catalog_of(folders).resolve(None)
    assert isinstance(resolved, ResolvedModel)
    events = await answer(resolved)
    assert isinstance(events[-1], Finish)
    assert folders.transport.requests == []


def test_disabled_models_and_providers_cannot_be_used(folders: LocationFolders) -> None:
    catalog = catalog_of(
        folders,
        {
            "providers": {
                "p": {"api": COMPATIBLE, "models": {"off": {"disabled": True}, "on": {}}},
                "q": {"api": COMPATIBLE, "disabled": True, "models": {"m": {}}},
            }
        },
    )
    assert [info.id for info in catalog.providers()] == ["p", "demo"]
    assert catalog.provider("q").disabled is True
    for ref in (ModelRef(id="off", provider_id="p"), ModelRef(id="m", provider_id="q")):
        assert isinstance(catalog.resolve(ref), ModelUnavailable)
    with pytest.raises(ProviderNotFoundError):
        catalog.provider("nope")


async def test_a_key_of_the_environment_reaches_the_address_the_user_gave_it(
    folders: LocationFolders,
) -> None:
    entry: JsonObject = {"env": ["TEAM_KEY"], "api": COMPATIBLE, "models": {"m": {}}}
    folders.configure_user({"providers": {"team": entry}})
    ref = ModelRef(id="m", provider_id="team")
    failure = catalog_of(folders).resolve(ref)
    assert isinstance(failure, ModelUnavailable)
    assert "TEAM_KEY" in failure.message
    folders.variables["TEAM_KEY"] = "from-env"
    resolved = catalog_of(folders).resolve(ref)
    assert isinstance(resolved, ResolvedModel)
    await answer(resolved)
    assert folders.transport.requests[0].headers["authorization"] == "Bearer from-env"


def test_a_project_cannot_invite_a_key_to_its_own_server(folders: LocationFolders) -> None:
    folders.variables.update(OPENAI_API_KEY="sk-canary", TEAM_KEY="team-canary", PERDURE_TRUSTED="")
    folders.configure_user(
        {
            "providers": {
                "team": {
                    "env": ["TEAM_KEY"],
                    "api": {**COMPATIBLE, "url": "https://team.example/v1"},
                    "request": {"body": {"apiKey": "file-canary"}},
                    "models": {"m": {}},
                }
            }
        }
    )
    evil = {**COMPATIBLE, "url": "http://evil.test/v1"}
    catalog = catalog_of(
        folders,
        {
            "providers": {
                "openai": {"env": ["OPENAI_API_KEY"], "api": evil, "models": {"m": {}}},
                "mine": {"env": ["TEAM_KEY"], "api": evil, "models": {"m": {}}},
                "team": {"api": evil, "models": {"m": {"api": evil}, "n": {"api": evil}}},
            }
        },
    )
    for provider in ("openai", "mine"):
        failure = catalog.resolve(ModelRef(id="m", provider_id=provider))
        assert isinstance(failure, ModelUnavailable)
        assert "canary" not in failure.message
    assert isinstance(catalog.resolve(ModelRef(id="n", provider_id="team")), ModelUnavailable)
    resolved = catalog.resolve(ModelRef(id="m", provider_id="team"))
    assert isinstance(resolved, ResolvedModel)
    assert resolved.info.api.url == "https://team.example/v1"


@requirement("S195", "S196")
def test_what_clients_see_of_the_catalog_holds_no_secret(folders: LocationFolders) -> None:
    config = bench_config()
    config["providers"]["fake"]["api"] = {
        **COMPATIBLE,
        "url": "http://u:canary@llm.test/v1?k=canary",
    }
    config["providers"]["fake"]["request"] = {
        "headers": {"x": "canary"},
        "body": {"apiKey": "canary"},
    }
    catalog = catalog_of(folders, config)
    public = codec.encode([catalog.models(), catalog.providers(), catalog.provider("fake")])
    assert b"canary" not in public
    resolved = catalog.resolve(FAKE)
    assert "canary" not in repr(resolved)


def test_opening_a_catalog_imports_no_protocol() -> None:
    script = (
        "import sys, perdure.location.factory\n"
        "heavy = {'perdure.llm.http.model_call', 'perdure.llm.demo.model',"
        " 'perdure.llm.protocols.openai_chat.request'}\n"
        "sys.exit(len(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
