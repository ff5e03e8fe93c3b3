"""The catalog: what is public, what a call costs, which key goes where."""

import pytest

from perdure.core.credentials import keys
from perdure.core.credentials.keys import Key, KeyMissing, NoKeyNeeded
from perdure.core.models import catalog, transport
from perdure.core.models import public as catalog_public
from perdure.core.models.catalog import CatalogProvider
from perdure.core.models.transport import Api, BuiltIn, HttpProtocol, Unreachable
from perdure.core.settings import document, settings
from perdure.core.settings.document import Trust
from perdure.core.settings.settings import Settings
from perdure.llm.event import Usage
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.models.model import CacheCost, CostTier, ModelCost
from tests.requirements import requirement

COMPATIBLE = "@ai-sdk/openai-compatible"
CANARY = "canary-8c1f"


def configured(value: JsonObject, trust: Trust = "user") -> Settings:
    result = settings.merge((document.read("opencode.json", trust, value),))
    assert result.problems == ()
    return result


def providers(value: JsonObject) -> dict[str, CatalogProvider]:
    return catalog.build(configured({"providers": value}))


def secretive() -> JsonObject:
    return {
        "p": {
            "api": {
                "type": "aisdk",
                "package": COMPATIBLE,
                "url": f"https://user:{CANARY}@Host.example:443/v1?key={CANARY}#{CANARY}",
                "settings": {"apiKey": CANARY, "organization": CANARY},
            },
            "request": {"headers": {"x-secret": CANARY}, "body": {"apiKey": CANARY}},
            "models": {
                "m": {
                    "request": {"headers": {"x": CANARY}, "body": {"secret": CANARY}},
                    "variants": [{"id": "v", "headers": {"x": CANARY}, "body": {"y": CANARY}}],
                }
            },
        }
    }


@requirement("S195")
def test_no_secret_of_the_configuration_is_public() -> None:
    provider = providers(secretive())["p"]
    public = codec.encode(catalog_public.public_provider(provider))
    public += codec.encode(catalog_public.public_model(provider.models["m"]))
    assert CANARY.encode() not in public
    assert b'"request":{"headers":{},"body":{}}' in public
    assert b'"variants":[{"id":"v","headers":{},"body":{}}]' in public


@requirement("S196")
def test_public_addresses_have_no_credentials_query_or_fragment() -> None:
    info = catalog_public.public_provider(providers(secretive())["p"])
    assert info.api.url == "https://host.example/v1"


def test_printing_a_catalog_shows_no_secret() -> None:
    provider = providers(secretive())["p"]
    assert provider.request.api_key == CANARY
    assert CANARY not in repr(provider)


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("http://localhost:8080/v1/", "http://localhost:8080/v1/"),
        ("https://[::1]:9/x", "https://[::1]:9/x"),
        ("ftp://host/x", None),
        ("http://[broken", None),
        ("http://host:port/", None),
        ("host/v1", None),
        ("", None),
        (None, None),
    ],
)
def test_only_web_addresses_are_addresses(url: str | None, public: str | None) -> None:
    assert keys.public_url(url) == public


def test_a_model_inherits_from_its_provider_and_overrides_it() -> None:
    found = providers(
        {
            "p": {
                "api": {"type": "aisdk", "package": COMPATIBLE, "url": "https://a.example/v1"},
                "request": {"headers": {"h": "provider", "k": "kept"}},
                "models": {
                    "plain": {},
                    "own": {
                        "api": {"id": "wire-own", "url": "https://b.example/v1"},
                        "request": {"headers": {"h": "model"}},
                    },
                    "moved": {"request": {"body": {"baseURL": "https://c.example"}}},
                },
            }
        }
    )["p"].models
    assert (found["plain"].api.url, found["plain"].wire_name) == ("https://a.example/v1", "plain")
    assert (found["own"].api.url, found["own"].wire_name) == ("https://b.example/v1", "wire-own")
    assert found["own"].request.headers == {"h": "model", "k": "kept"}
    assert found["moved"].api.url == "https://c.example"


@pytest.mark.parametrize(
    ("api", "kind"),
    [
        (Api(type="aisdk", package=COMPATIBLE, url="https://x.example"), HttpProtocol),
        (Api(type="native", url="http://127.0.0.1:1/v1"), HttpProtocol),
        (Api(type="aisdk", package=COMPATIBLE), Unreachable),
        (Api(type="aisdk", package="@ai-sdk/unheard-of", url="https://x.example"), Unreachable),
        (Api(type="aisdk", package=COMPATIBLE, url="file:///etc/passwd"), Unreachable),
        (Api(type="native"), Unreachable),
    ],
)
def test_what_cannot_be_reached_says_why(api: Api, kind: type) -> None:
    found = transport.transport_of(api)
    assert isinstance(found, kind)
    if isinstance(found, Unreachable):
        assert found.reason


def test_the_demo_is_always_there_and_says_that_it_is_no_ai() -> None:
    demo = catalog.build(Settings())["demo"].models["demo"]
    assert isinstance(demo.transport, BuiltIn)
    assert "not an AI" in demo.name


def test_the_last_matching_policy_decides_which_providers_exist() -> None:
    result = catalog.build(
        configured(
            {
                "experimental": {
                    "policies": [
                        {"effect": "deny", "action": "provider.use", "resource": "*"},
                        {"effect": "allow", "action": "provider.use", "resource": "fake"},
                        {"effect": "deny", "action": "something.else", "resource": "fake"},
                    ]
                },
                "providers": {"fake": {"models": {"m": {}}}, "other": {"models": {"m": {}}}},
            }
        )
    )
    assert list(result) == ["fake"]


BASE = ModelCost(input=1, output=10, cache=CacheCost(read=0.1, write=2))
LARGE = ModelCost(
    input=2, output=20, cache=CacheCost(read=0.2, write=4), tier=CostTier(type="context", size=1000)
)


@pytest.mark.parametrize(
    ("used", "dollars"),
    [
        (Usage(), 0),
        (Usage(input=500, output=10), 500 + 100),
        (
            Usage(input=500, output=10, reasoning=5, cache_read=100, cache_write=50),
            500 + 150 + 10 + 100,
        ),
        (Usage(input=1000), 1000),
        (Usage(input=900, output=1, cache_read=100, cache_write=1), 1800 + 20 + 20 + 4),
        # An hour in the cache costs twice the input, or what every write costs if that is more.
        (Usage(cache_write=50, cache_write_hour=50), 50 * 2),
        (Usage(input=1000, cache_write=10, cache_write_hour=4), 2000 + 40),
    ],
)
def test_a_call_costs_what_its_tier_says(used: Usage, dollars: float) -> None:
    assert catalog.cost_of((LARGE, BASE), used) == pytest.approx(dollars / 1_000_000)


def test_an_hour_in_the_cache_costs_twice_the_input() -> None:
    claude = ModelCost(input=3, output=15, cache=CacheCost(read=0.3, write=3.75))
    used = Usage(cache_write=1_000_000, cache_write_hour=400_000)
    assert catalog.cost_of((claude,), used) == pytest.approx(0.6 * 3.75 + 0.4 * 6)


def test_a_model_without_prices_costs_nothing() -> None:
    used = Usage(input=5, output=5, reasoning=5, cache_read=5, cache_write=5)
    assert catalog.cost_of((), used) == 0


@pytest.mark.parametrize(
    ("cost", "cache"),
    [
        ({"input": 3, "output": 15}, CacheCost(read=3, write=3)),
        ({"input": 3, "output": 15, "cache": {"read": 0.3}}, CacheCost(read=0.3, write=3)),
        ({"input": 3, "output": 15, "cache": {"read": 0, "write": 0}}, CacheCost(0, 0)),
        ({"output": 15}, CacheCost(read=0, write=0)),
    ],
)
def test_a_cache_without_a_price_costs_what_the_input_does(
    cost: JsonObject, cache: CacheCost
) -> None:
    entry = {"fake": {"models": {"m": {"cost": cost}}}}
    (priced,) = catalog.build(configured({"providers": entry}))["fake"].models["m"].cost
    assert priced.cache == cache


def lookup(
    names: tuple[str, ...], url: str, user: JsonObject | None = None, **variables: str
) -> keys.KeyLookup:
    own = configured({"providers": user or {}}).user_providers
    return keys.find_key(
        api_key=None,
        api_settings={},
        names=names,
        url=url,
        variables=variables,
        origins={**KNOWN, **keys.user_origins(own)},
    )


KNOWN = {"OPENAI_API_KEY": frozenset({"https://api.openai.com"})}


def test_a_well_known_key_goes_to_its_own_service() -> None:
    found = lookup(("OPENAI_API_KEY",), "https://api.openai.com/v1", OPENAI_API_KEY="k")
    assert found == Key("k")


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/v1",
        "http://api.openai.com/v1",
        "https://api.openai.com:8443/v1",
        "https://api.openai.com.evil.example/",
        "https://api.openai.com@evil.example/",
        "https://evil.example/https://api.openai.com",
    ],
)
def test_a_key_of_the_environment_goes_nowhere_else(url: str) -> None:
    found = lookup(("OPENAI_API_KEY", "OTHER"), url, OPENAI_API_KEY="k-secret", OTHER="o-secret")
    assert isinstance(found, KeyMissing)
    assert "secret" not in found.reason
    assert "OPENAI_API_KEY" in found.reason


def test_the_user_may_pair_a_variable_with_an_address_of_their_own() -> None:
    mine = {"p": {"env": ["MY_KEY"], "api": {"url": "https://mine.example/v1"}}}
    assert lookup(("MY_KEY",), "https://mine.example/v2", mine, MY_KEY="k") == Key("k")
    assert isinstance(lookup(("MY_KEY",), "https://evil.example", mine, MY_KEY="k"), KeyMissing)


def test_a_key_that_is_not_set_is_named() -> None:
    found = lookup(("A_KEY", "B_KEY"), "https://x.example")
    assert found == KeyMissing("no key: set A_KEY or B_KEY")
    assert lookup((), "https://x.example") == NoKeyNeeded()
