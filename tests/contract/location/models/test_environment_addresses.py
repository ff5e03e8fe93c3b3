"""OPENAI_BASE_URL and its like: where requests go, and which keys go with them."""

from contextlib import suppress

import pytest

from perdure.llm.error import LLMError
from perdure.llm.message import LLMMessage, TextPart, split_segments
from perdure.llm.request import LLMRequest
from perdure.location.models.catalog import Catalog, ResolvedModel
from perdure.location.models.facts_cache import ModelFactsCache
from perdure.location.models.failures import ModelUnavailable, UnsupportedApi
from perdure.net.transport import HttpRequest
from perdure.schema.codec import JsonObject
from perdure.schema.models.model import ModelRef
from perdure.testing import ManualClock
from tests.contract.location.opened_location import LocationFolders

HERE = "https://gateway.example"
OPENAI = ModelRef(id="gpt-5", provider_id="openai")


def catalog_of(folders: LocationFolders) -> Catalog:
    clock = ManualClock()
    return Catalog(
        folders.settings(),
        variables=folders.variables,
        transport=folders.transport,
        clock=clock,
        snapshot=ModelFactsCache(
            str(folders.root / "models.json.gz"),
            variables=folders.variables,
            clock=clock,
            start=folders.background.append,
        ),
    )


async def request_of(folders: LocationFolders, model: ModelRef) -> HttpRequest:
    """The one request of a model call; its answer is not one of any protocol."""
    resolved = catalog_of(folders).resolve(model)
    assert isinstance(resolved, ResolvedModel), resolved
    segments = split_segments((LLMMessage("user", (TextPart("hi"),)),))
    with suppress(LLMError):
        async for _ in resolved.call(LLMRequest(model=model, system=(), segments=segments)):
            pass
    (request,) = folders.transport.requests
    return request


@pytest.mark.parametrize(
    ("provider", "model", "variables", "sent_to"),
    [
        (
            "openai",
            "gpt-5",
            {"OPENAI_BASE_URL": f"{HERE}/v1", "OPENAI_API_KEY": "k"},
            "/v1/responses",
        ),
        (
            "openai",
            "gpt-5",
            {"OPENAI_BASE_URL": f"{HERE}/v1/", "OPENAI_API_KEY": "k"},
            "/v1/responses",
        ),
        (
            "anthropic",
            "claude-opus-4-5",
            {"ANTHROPIC_BASE_URL": HERE, "ANTHROPIC_API_KEY": "k"},
            "/v1/messages",
        ),
        (
            "anthropic",
            "claude-opus-4-5",
            {"ANTHROPIC_BASE_URL": f"{HERE}/v1", "ANTHROPIC_API_KEY": "k"},
            "/v1/messages",
        ),
        (
            "groq",
            "openai/gpt-oss-120b",
            {"GROQ_BASE_URL": HERE, "GROQ_API_KEY": "k"},
            "/openai/v1/chat/completions",
        ),
    ],
)
async def test_requests_go_to_the_address_of_the_environment_with_its_key(
    folders: LocationFolders,
    provider: str,
    model: str,
    variables: dict[str, str],
    sent_to: str,
) -> None:
    folders.variables |= variables
    request = await request_of(folders, ModelRef(id=model, provider_id=provider))
    assert request.url == f"{HERE}{sent_to}"
    assert "k" in {value.removeprefix("Bearer ") for value in request.headers.values()}


async def test_the_configuration_comes_first(folders: LocationFolders) -> None:
    folders.variables |= {"OPENAI_BASE_URL": f"{HERE}/v1", "OPENAI_API_KEY": "k"}
    moved: JsonObject = {"api": {"url": "https://configured.example/v1"}}
    folders.configure_user({"providers": {"openai": moved}})
    request = await request_of(folders, OPENAI)
    assert request.url == "https://configured.example/v1/responses"


async def test_other_settings_of_the_provider_stay(folders: LocationFolders) -> None:
    folders.variables |= {"OPENAI_BASE_URL": f"{HERE}/v1", "OPENAI_API_KEY": "k"}
    folders.configure_user({"providers": {"openai": {"request": {"headers": {"x-team": "a"}}}}})
    request = await request_of(folders, OPENAI)
    assert (request.url, request.headers["x-team"]) == (f"{HERE}/v1/responses", "a")


def test_an_address_is_no_key(folders: LocationFolders) -> None:
    folders.variables["OPENAI_BASE_URL"] = f"{HERE}/v1"
    catalog = catalog_of(folders)
    assert isinstance(catalog.resolve(OPENAI), ModelUnavailable)
    assert "openai" not in {model.provider_id for model in catalog.models()}


def test_keys_of_other_providers_do_not_go_there(folders: LocationFolders) -> None:
    folders.variables |= {"OPENAI_BASE_URL": f"{HERE}/v1", "ANTHROPIC_API_KEY": "other"}
    folders.configure({"providers": {"openai": {"env": ["ANTHROPIC_API_KEY"]}}})
    assert isinstance(catalog_of(folders).resolve(OPENAI), ModelUnavailable)


def test_an_address_that_is_none_is_named_and_not_ignored(folders: LocationFolders) -> None:
    folders.variables |= {"OPENAI_BASE_URL": "gateway.example", "OPENAI_API_KEY": "k"}
    assert isinstance(catalog_of(folders).resolve(OPENAI), UnsupportedApi)


async def test_bedrock_is_asked_at_the_endpoint_of_the_environment(
    folders: LocationFolders,
) -> None:
    folders.variables |= {
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": HERE,
        "AWS_ACCESS_KEY_ID": "AKID",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }
    api = {"type": "aisdk", "package": "@ai-sdk/amazon-bedrock"}
    folders.configure({"providers": {"b": {"api": api, "models": {"m": {}}}}})
    request = await request_of(folders, ModelRef(id="m", provider_id="b"))
    assert request.url.startswith(f"{HERE}/model/m/")
    assert "Credential=AKID/" in request.headers["authorization"]
