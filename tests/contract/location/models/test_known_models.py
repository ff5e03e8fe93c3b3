"""The Catalog with the facts about models: keys enable them, the configuration changes them."""

import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

import pytest

from perdure.core.models.transport import HttpProtocol
from perdure.llm.error import LLMError
from perdure.llm.message import LLMMessage, TextPart, split_segments
from perdure.llm.request import LLMRequest
from perdure.location.models import facts_cache
from perdure.location.models.catalog import Catalog, ResolvedModel
from perdure.location.models.facts_cache import ModelFactsCache
from perdure.location.models.failures import ModelUnavailable, UnsupportedApi
from perdure.net.transport import HttpRequest, HttpResponse
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.models.model import ModelRef
from perdure.testing import ManualClock
from tests.contract.location.opened_location import LocationFolders
from tests.requirements import requirement

JANUARY_2026 = 1_768_000_000_000
VERTEX = ("google-vertex", "google-vertex-anthropic")


@dataclass
class RefusingTransport:
    """Remembers what was sent where, and refuses it."""

    requests: list[HttpRequest] = field(default_factory=list[HttpRequest])

    def open(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpResponse]:
        return self._open(request)

    @asynccontextmanager
    async def _open(self, request: HttpRequest) -> AsyncGenerator[HttpResponse]:
        self.requests.append(request)
        yield HttpResponse(status=400, headers={}, chunks=_nothing())


async def _nothing() -> AsyncIterator[bytes]:
    yield b"{}"


def catalog_of(
    folders: LocationFolders,
    config: JsonObject | None = None,
    transport: RefusingTransport | None = None,
    now_millis: int = 0,
) -> Catalog:
    if config is not None:
        folders.configure_user(config)
    clock = ManualClock(now_millis)
    snapshot = ModelFactsCache(
        str(folders.root / "models.json.gz"),
        variables=folders.variables,
        clock=clock,
        start=folders.background.append,
    )
    return Catalog(
        folders.settings(),
        variables=folders.variables,
        transport=transport or folders.transport,
        clock=clock,
        snapshot=snapshot,
    )


async def sent(model: ResolvedModel, transport: RefusingTransport) -> HttpRequest:
    message = LLMMessage("user", (TextPart("hello"),))
    request = LLMRequest(
        model=model.ref, system=("Be brief.",), segments=split_segments((message,))
    )
    with pytest.raises(LLMError):
        async for _ in model.call(request):
            pass
    return transport.requests[-1]


def test_without_a_key_only_the_demo_is_offered_and_every_provider_is_known(
    folders: LocationFolders,
) -> None:
    catalog = catalog_of(folders)
    assert [provider.id for provider in catalog.providers()] == ["demo"]
    assert [model.id for model in catalog.models()] == ["demo"]
    assert catalog.provider("anthropic").name == "Anthropic"
    assert catalog.provider("openrouter").api.url == "https://openrouter.ai/api/v1"
    failure = catalog.resolve(ModelRef(id="claude-opus-4-5", provider_id="anthropic"))
    assert isinstance(failure, ModelUnavailable)
    assert "ANTHROPIC_API_KEY" in failure.message


async def test_a_key_in_the_environment_opens_its_provider(folders: LocationFolders) -> None:
    folders.variables["ANTHROPIC_API_KEY"] = "sk-canary"
    transport = RefusingTransport()
    catalog = catalog_of(folders, transport=transport)
    assert [provider.id for provider in catalog.providers()] == ["demo", "anthropic"]
    listed = catalog.models()
    assert {model.provider_id for model in listed} == {"anthropic", "demo"}
    default = catalog.resolve(None)
    assert isinstance(default, ResolvedModel)
    assert default.ref.provider_id == "anthropic"
    assert default.info.time.released == max(model.time.released for model in listed)
    request = await sent(default, transport)
    assert request.url == "https://api.anthropic.com/v1/messages"
    assert request.headers["x-api-key"] == "sk-canary"
    assert b"canary" not in codec.encode([listed, catalog.providers()])


def test_a_chat_is_not_begun_with_a_model_that_cannot_hold_one(folders: LocationFolders) -> None:
    folders.variables["OPENAI_API_KEY"] = "k"
    default = catalog_of(folders).resolve(None)
    assert isinstance(default, ResolvedModel)
    assert default.info.capabilities.tools
    assert "text" in default.info.capabilities.output


def test_a_token_for_something_else_opens_models_but_does_not_choose_them(
    folders: LocationFolders,
) -> None:
    folders.variables["GITHUB_TOKEN"] = "t"
    catalog = catalog_of(folders)
    assert "github-copilot" in [provider.id for provider in catalog.providers()]
    assert catalog.default() == ModelRef(id="demo", provider_id="demo")
    folders.variables["GROQ_API_KEY"] = "k"
    chosen = catalog_of(folders).default()
    assert chosen is not None
    assert chosen.provider_id == "groq"


def test_keys_of_aws_open_bedrock_but_do_not_choose_it(folders: LocationFolders) -> None:
    folders.variables.update(AWS_ACCESS_KEY_ID="id", AWS_SECRET_ACCESS_KEY="secret")
    catalog = catalog_of(folders)
    assert "amazon-bedrock" in [provider.id for provider in catalog.providers()]
    assert catalog.default() == ModelRef(id="demo", provider_id="demo")


def test_a_small_model_is_cheap_recent_and_of_the_same_provider(folders: LocationFolders) -> None:
    folders.variables.update(ANTHROPIC_API_KEY="k", AZURE_API_KEY="k", AZURE_RESOURCE_NAME="r")
    catalog = catalog_of(folders, now_millis=JANUARY_2026)
    assert catalog.small("anthropic") == ModelRef(id="claude-haiku-4-5", provider_id="anthropic")
    assert catalog.small("azure") is None
    assert catalog.small("nobody") is None


@requirement("S92")
async def test_a_known_variant_reaches_the_provider_in_its_own_words(
    folders: LocationFolders,
) -> None:
    folders.variables.update(ANTHROPIC_API_KEY="k", OPENAI_API_KEY="k")
    transport = RefusingTransport()
    catalog = catalog_of(folders, transport=transport)
    bodies: list[JsonObject] = []
    for provider, model in (("anthropic", "claude-haiku-4-5"), ("openai", "gpt-5")):
        resolved = catalog.resolve(ModelRef(id=model, provider_id=provider, variant="high"))
        assert isinstance(resolved, ResolvedModel)
        bodies.append(codec.decode_any(b"".join((await sent(resolved, transport)).body)))
    assert bodies[0]["thinking"] == {"type": "enabled", "budget_tokens": 16_000}
    assert bodies[1]["reasoning"] == {"effort": "high", "summary": "auto"}


def test_the_user_may_send_a_known_key_to_an_address_of_their_own(folders: LocationFolders) -> None:
    folders.variables["OPENAI_API_KEY"] = "k"
    ref = ModelRef(id="gpt-5", provider_id="openai")
    catalog = catalog_of(folders, {"providers": {"openai": {"api": {"url": "http://llm.test/v1"}}}})
    assert isinstance(catalog.resolve(ref), ResolvedModel)


async def test_a_project_that_moves_a_known_provider_gets_no_key(folders: LocationFolders) -> None:
    folders.variables |= {"OPENAI_API_KEY": "sk-canary", "PERDURE_TRUSTED": ""}
    folders.configure({"providers": {"openai": {"api": {"url": "http://evil.test/v1"}}}})
    transport = RefusingTransport()
    resolved = catalog_of(folders, transport=transport).resolve(
        ModelRef(id="gpt-5", provider_id="openai")
    )
    assert isinstance(resolved, ResolvedModel)
    request = await sent(resolved, transport)
    assert request.url.startswith("https://api.openai.com/")


def test_a_known_provider_at_an_address_of_ones_own_needs_no_key(folders: LocationFolders) -> None:
    config = {"providers": {"lmstudio": {"api": {"url": "http://127.0.0.1:9/v1"}}}}
    listed = catalog_of(folders, config).providers()
    assert "lmstudio" in [provider.id for provider in listed]


@pytest.mark.parametrize(
    "config",
    [
        {"disabled_providers": ["anthropic"]},
        {"enabled_providers": ["openai"]},
        {"providers": {"anthropic": {"disabled": True}}},
        {"provider": {"anthropic": {"whitelist": ["none-of-them"]}}},
    ],
)
def test_a_provider_that_is_switched_off_is_not_offered(
    folders: LocationFolders, config: JsonObject
) -> None:
    folders.variables.update(ANTHROPIC_API_KEY="k", OPENAI_API_KEY="k")
    offered = {model.provider_id for model in catalog_of(folders, config).models()}
    assert "anthropic" not in offered
    assert "openai" in offered


def everything(folders: LocationFolders) -> None:
    """Give every variable that any provider knows."""
    for provider in facts_cache.load_bundled().providers.values():
        for name in provider.env:
            folders.variables[name] = f"https://{name.lower().replace('_', '-')}.example"
            if name in provider.keys:
                folders.variables[name] = "sk-key"
    folders.variables["AWS_REGION"] = "us-east-1"
    folders.variables |= {"GOOGLE_VERTEX_PROJECT": "ours", "GOOGLE_VERTEX_LOCATION": "global"}
    token: JsonObject = {"request": {"body": {"apiKey": "sk-key"}}}
    folders.configure_user({"providers": dict.fromkeys(VERTEX, token)})


@requirement("S92", "S93")
async def test_each_known_model_can_be_called_or_says_why_not(folders: LocationFolders) -> None:
    everything(folders)
    transport = RefusingTransport()
    catalog = catalog_of(folders, transport=transport)
    called = 0
    for provider in catalog.all_providers.values():
        for model in provider.models.values():
            if not model.enabled or provider.id == "demo":
                continue
            resolution = catalog.resolve(ModelRef(id=model.id, provider_id=provider.id))
            if not isinstance(model.transport, HttpProtocol):
                assert isinstance(resolution, UnsupportedApi)
                continue
            assert isinstance(resolution, ResolvedModel), (provider.id, model.id, resolution)
            body = b"".join((await sent(resolution, transport)).body)
            assert isinstance(codec.decode_any(body), dict)
            assert b"sk-key" not in body
            called += 1
    assert called > 7_000


async def test_each_known_variant_makes_a_request(folders: LocationFolders) -> None:
    everything(folders)
    transport = RefusingTransport()
    catalog = catalog_of(folders, transport=transport)
    tried: set[bytes] = set()
    for provider in catalog.all_providers.values():
        for model in provider.models.values():
            for name, variant in model.variants.items():
                way = (
                    codec.encode([model.transport, variant])
                    if isinstance(model.transport, HttpProtocol)
                    else b""
                )
                if not model.enabled or not way or way in tried:
                    continue
                tried.add(way)
                ref = ModelRef(id=model.id, provider_id=provider.id, variant=name)
                resolved = catalog.resolve(ref)
                assert isinstance(resolved, ResolvedModel)
                plain = catalog.resolve(ModelRef(id=model.id, provider_id=provider.id))
                assert isinstance(plain, ResolvedModel)
                changed = (await sent(resolved, transport)).body
                assert changed != (await sent(plain, transport)).body, ref
    assert len(tried) > 50


def test_opening_a_catalog_reads_no_facts() -> None:
    script = (
        "import sys, perdure.location.factory\n"
        "from perdure.location.models import facts_cache\n"
        "sys.exit(facts_cache.load_bundled.cache_info().currsize)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
