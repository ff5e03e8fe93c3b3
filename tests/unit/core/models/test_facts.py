"""Facts as they are published, and the models that the catalog makes of them."""

from typing import Final

import pytest

from perdure.core.models import catalog, facts_archive
from perdure.core.models.catalog import CatalogModel, CatalogProvider
from perdure.core.models.facts_archive import ModelArchive
from perdure.core.models.known_providers import KnownProviders
from perdure.core.models.transport import PACKAGES, HttpProtocol, Unreachable
from perdure.core.settings.document import read
from perdure.core.settings.settings import merge
from perdure.llm.event import Usage
from perdure.location.models import facts_cache
from perdure.schema import codec
from perdure.schema.codec import JsonObject

DAY: Final = 86_400_000


def provider(
    models: JsonObject,
    config: JsonObject | None = None,
    variables: dict[str, str] | None = None,
    **more: object,
) -> CatalogProvider:
    """The provider `acme` as the catalog has it, where `config` says this about it."""
    facts: JsonObject = {"id": "acme", "npm": "@ai-sdk/openai", "models": models, **more}
    archive = ModelArchive(facts_archive.pack(codec.encode({"acme": facts})))
    configured: JsonObject = {} if config is None else {"providers": {"acme": config}}
    settings = merge((read("opencode.json", "user", configured),))
    assert settings.problems == ()
    known = KnownProviders(archive, variables or {}, bundled=archive)
    return catalog.build(settings, (), known)["acme"]


def model(
    facts: JsonObject,
    config: JsonObject | None = None,
    variables: dict[str, str] | None = None,
    **more: object,
) -> CatalogModel:
    return provider({"m": facts}, config, variables, **more).models["m"]


def test_a_model_has_what_is_published_about_it() -> None:
    made = model(
        {
            "name": "Acme One",
            "family": "acme",
            "release_date": "2026-01-02",
            "tool_call": True,
            "attachment": True,
            "modalities": {"input": ["text", "image", "pdf", "audio"], "output": ["text"]},
            "limit": {"context": 200_000.0, "output": 64_000, "input": 150_000},
            "status": "beta",
        }
    )
    assert (made.name, made.family, made.status, made.enabled) == ("Acme One", "acme", "beta", True)
    assert made.capabilities.input == ("text", "image", "pdf", "audio")
    assert (made.limit.context, made.limit.output, made.limit.input) == (200_000, 64_000, 150_000)
    assert made.released == 20_455 * DAY
    assert isinstance(made.transport, HttpProtocol)


@pytest.mark.parametrize(
    ("date", "days"), [("2026-01", 20_454), ("1970-01-02", 1), ("soon", 0), ("", 0), ("2026", 0)]
)
def test_a_date_may_lack_its_day(date: str, days: int) -> None:
    assert model({"release_date": date}).released == days * DAY


@pytest.mark.parametrize(
    ("cost", "tokens", "dollars"),
    [
        ({"input": 1, "output": 10}, 100_000, 0.1),
        ({"input": 1, "context_over_200k": {"input": 2}}, 200_000, 0.2),
        ({"input": 1, "context_over_200k": {"input": 2}}, 300_000, 0.6),
        (
            {
                "input": 1,
                "context_over_200k": {"input": 9},
                "tiers": [{"input": 2, "tier": {"type": "context", "size": 272_000}}],
            },
            250_000,
            0.25,
        ),
        ({"input": 1, "tiers": [{"input": 2, "tier": {"size": 272_000}}]}, 300_000, 0.6),
        ({"input": -5, "output": -5}, 300_000, 0),
    ],
)
def test_a_large_context_costs_what_its_tier_says(
    cost: JsonObject, tokens: int, dollars: float
) -> None:
    usage = Usage(input=tokens)
    assert catalog.cost_of(model({"cost": cost}).cost, usage) == pytest.approx(dollars)


def test_a_tier_without_cache_prices_has_those_of_the_model() -> None:
    cost = {"cache_read": 0.25, "context_over_200k": {"input": 5, "output": 22.5}}
    tiers = model({"cost": {"input": 2.5, **cost}}).cost
    assert [(tier.input, tier.cache.read) for tier in tiers] == [(2.5, 0.25), (5, 0.25)]


def test_a_mode_is_a_model_of_its_own_with_its_price_and_its_fields() -> None:
    fast = {"cost": {"input": 5}, "provider": {"body": {"service_tier": "priority", "speed": 1}}}
    pro = {"provider": {"headers": {"x-mode": "pro"}}}
    facts = {
        "name": "One",
        "cost": {"input": 1},
        "experimental": {"modes": {"fast": fast, "pro": pro}},
    }
    models = provider({"m": facts}).models
    assert [(m.id, m.name, m.wire_name, m.cost[0].input) for m in models.values()] == [
        ("m", "One", "m", 1),
        ("m-fast", "One Fast", "m", 5),
        ("m-pro", "One Pro", "m", 1),
    ]
    assert models["m-fast"].request.options == {"serviceTier": "priority"}
    assert models["m-fast"].request.body == {"speed": 1}
    assert models["m-pro"].request.headers == {"x-mode": "pro"}


@pytest.mark.parametrize(
    ("status", "variables", "enabled"),
    [
        ("deprecated", {}, False),
        ("alpha", {}, False),
        ("alpha", {"OPENCODE_ENABLE_EXPERIMENTAL_MODELS": "0"}, False),
        ("alpha", {"OPENCODE_ENABLE_EXPERIMENTAL_MODELS": "True"}, True),
        ("beta", {}, True),
        ("never heard of", {}, True),
    ],
)
def test_models_that_are_not_ready_or_no_longer_offered_are_withheld(
    status: str, variables: dict[str, str], *, enabled: bool
) -> None:
    assert model({"status": status}, variables=variables).enabled is enabled
    asked = {"models": {"m": {"disabled": False}}}
    assert model({"status": status}, asked, variables=variables).enabled


@pytest.mark.parametrize(
    ("package", "options", "variants"),
    [
        (
            "@ai-sdk/openai",
            [{"type": "effort", "values": ["none", "high", "max", None, "default"]}],
            {
                "none": {"reasoningEffort": "none"},
                "high": {"reasoningEffort": "high", "reasoningSummary": "auto"},
            },
        ),
        (
            "@ai-sdk/groq",
            [{"type": "effort", "values": ["max", "low"]}],
            {"low": {"reasoningEffort": "low"}, "max": {"reasoningEffort": "max"}},
        ),
        (
            "@ai-sdk/openai-compatible",
            [{"type": "toggle"}],
            {"none": {"thinking": {"type": "disabled"}}, "high": {"thinking": {"type": "enabled"}}},
        ),
        (
            "@ai-sdk/anthropic",
            [{"type": "effort", "values": ["low", "max"]}],
            {
                "low": {"effort": "low", "thinking": {"type": "adaptive"}},
                "max": {"effort": "max", "thinking": {"type": "adaptive"}},
            },
        ),
        (
            "@ai-sdk/anthropic",
            [{"type": "effort", "values": ["low"]}, {"type": "budget_tokens", "min": 1024}],
            {"low": {"effort": "low", "thinking": {"type": "enabled", "budgetTokens": 4096}}},
        ),
        (
            "@ai-sdk/anthropic",
            [{"type": "budget_tokens", "min": 1024, "max": 20_000}],
            {
                "high": {"thinking": {"type": "enabled", "budgetTokens": 16_000}},
                "max": {"thinking": {"type": "enabled", "budgetTokens": 20_000}},
            },
        ),
        ("@ai-sdk/openai", [], {}),
        ("never-heard-of", [{"type": "effort", "values": ["low"]}], {}),
    ],
)
def test_a_reasoning_model_has_a_variant_for_each_effort_it_offers(
    package: str, options: list[JsonObject], variants: JsonObject
) -> None:
    facts = {"family": "glm", "limit": {"output": 32_000}, "reasoning_options": options}
    made = model(facts, npm=package)
    assert {name: found.options for name, found in made.variants.items()} == variants


def test_a_budget_leaves_room_for_the_answer() -> None:
    facts = {"limit": {"output": 8_000}, "reasoning_options": [{"type": "budget_tokens"}]}
    made = model(facts, npm="@ai-sdk/anthropic")
    budgets = [found.options["thinking"]["budgetTokens"] for found in made.variants.values()]
    assert budgets == [7_999, 7_999]


def test_configured_variants_lie_over_the_known_ones_and_can_remove_them() -> None:
    facts = {"reasoning_options": [{"type": "effort", "values": ["low", "medium", "high"]}]}
    variants = [
        {"id": "low", "disabled": True},
        {"id": "high", "headers": {"x": "y"}, "body": {"reasoning_summary": "detailed"}},
        {"id": "own", "body": {"temperature": 0}},
    ]
    made = model(facts, {"models": {"m": {"variants": variants}}})
    assert list(made.variants) == ["medium", "high", "own"]
    assert made.variants["high"].headers == {"x": "y"}
    assert made.variants["high"].options["reasoningEffort"] == "high"


def test_the_configuration_lies_over_the_facts_field_by_field() -> None:
    facts = {"m": {"name": "Known", "limit": {"context": 9, "output": 5}, "cost": {"input": 1}}}
    made = provider(
        facts,
        {
            "name": "Mine",
            "request": {"headers": {"x-team": "a"}},
            "models": {"m": {"limit": {"output": 4}}, "new": {}},
        },
        name="Acme",
        env=["ACME_API_KEY"],
    )
    assert (made.name, made.env, list(made.models)) == ("Mine", ("ACME_API_KEY",), ["m", "new"])
    changed = made.models["m"]
    assert (changed.name, changed.limit.context, changed.limit.output) == ("Known", 9, 4)
    assert (changed.cost[0].input, changed.request.headers) == (1, {"x-team": "a"})
    assert isinstance(made.models["new"].transport, HttpProtocol)


def test_who_moves_a_known_provider_moves_its_models() -> None:
    api = {"type": "aisdk", "package": "@ai-sdk/openai-compatible", "url": "http://127.0.0.1:1/v1"}
    moved = model({}, {"api": api})
    assert (moved.api.url, moved.transport) == (api["url"], PACKAGES[api["package"]])


def test_only_models_that_are_on_the_list_can_be_used() -> None:
    facts: JsonObject = {"a": {}, "b": {}, "c": {}}
    listed = provider(facts, {"whitelist": ["a", "b"], "blacklist": ["b"]}).models.values()
    assert [made.id for made in listed if made.enabled] == ["a"]


@pytest.mark.parametrize(
    ("url", "variables", "reached"),
    [
        ("https://${ACME_HOST}/v1", {"ACME_HOST": "x.example"}, "https://x.example/v1"),
        ("https://${ACME_HOST}/v1", {"ACME_HOST": "https://x.example/"}, "https://x.example/v1"),
        ("${ACME_HOST}/v1", {"ACME_HOST": "http://x.example"}, "http://x.example/v1"),
        ("https://${ACME_HOST}/v1", {}, None),
        ("https://${ACME_HOST}/v1", {"ACME_HOST": ""}, None),
    ],
)
def test_variables_complete_an_address(
    url: str, variables: dict[str, str], reached: str | None
) -> None:
    made = model({}, variables=variables, api=url, env=["ACME_HOST"])
    if reached is None:
        assert isinstance(made.transport, Unreachable)
        assert "ACME_HOST" in made.transport.reason
    else:
        assert (made.api.url, isinstance(made.transport, HttpProtocol)) == (reached, True)


def test_variables_do_not_complete_a_configured_address() -> None:
    made = model(
        {}, {"api": {"url": "https://x.example/${SECRET}"}}, variables={"SECRET": "canary"}
    )
    assert "canary" not in (made.api.url or "")
    assert isinstance(made.transport, Unreachable)


@pytest.mark.parametrize("name", ["OTHER_API_KEY", "AWS_SECRET_ACCESS_KEY", "DATABASE_URL", "HOME"])
def test_fetched_facts_put_nothing_into_an_address_but_what_completes_known_ones(name: str) -> None:
    def archive(url: str, *env: str) -> ModelArchive:
        facts: JsonObject = {"id": "acme", "npm": "@ai-sdk/openai", "api": url, "env": env}
        published = {"acme": {**facts, "models": {"m": {"provider": {"api": url}}}}}
        return ModelArchive(facts_archive.pack(codec.encode(published)))

    ours = archive("https://ours.example", "ACME_API_KEY", "OTHER_API_KEY")
    theirs = archive(f"https://theirs.example/${{{name}}}", name)
    made = KnownProviders(theirs, {name: "canary"}, bundled=ours).providers["acme"]
    assert "canary" not in f"{made.api.url} {made.models['m'].api.url}"


def test_only_variables_that_hold_a_key_are_keys() -> None:
    names = ["ACME_RESOURCE_NAME", "ACME_API_KEY", "ACME_TOKEN", "AWS_SECRET_ACCESS_KEY"]
    assert provider({}, env=names).env == ("ACME_API_KEY", "ACME_TOKEN")


def test_a_key_that_signs_opens_a_provider_and_is_sent_nowhere() -> None:
    facts: JsonObject = {"id": "acme", "npm": "@ai-sdk/openai", "env": ["AWS_ACCESS_KEY_ID"]}
    archive = ModelArchive(facts_archive.pack(codec.encode({"acme": {**facts, "models": {}}})))
    known = KnownProviders(archive, {"AWS_ACCESS_KEY_ID": "id"}, bundled=archive)
    assert known.providers["acme"].env == ("AWS_ACCESS_KEY_ID",)
    assert known.origins == {}


def test_fetched_facts_do_not_send_a_known_key_elsewhere() -> None:
    def archive(url: str, *names: str) -> ModelArchive:
        facts: JsonObject = {"acme": {"id": "acme", "api": url, "env": names, "models": {}}}
        return ModelArchive(facts_archive.pack(codec.encode(facts)))

    ours = archive("https://ours.example", "ACME_API_KEY")
    fetched = archive("https://theirs.example", "ACME_API_KEY", "NEW_API_KEY")
    variables = {"ACME_API_KEY": "k", "NEW_API_KEY": "k"}
    assert KnownProviders(fetched, variables, bundled=ours).origins == {
        "ACME_API_KEY": frozenset({"https://ours.example"}),
        "NEW_API_KEY": frozenset({"https://theirs.example"}),
    }


def test_a_model_with_another_protocol_is_where_its_provider_is_or_nowhere() -> None:
    other: JsonObject = {"provider": {"npm": "@ai-sdk/anthropic"}}
    placed = model(other, api="https://acme.example/v1")
    assert (placed.api.url, placed.transport) == (
        "https://acme.example/v1",
        PACKAGES["@ai-sdk/anthropic"],
    )
    assert isinstance(model(other, npm="acme-package").transport, Unreachable)


def test_odd_facts_make_models_all_the_same() -> None:
    made = model(
        {
            "limit": {"context": -1, "output": 1e300},
            "modalities": {"input": [], "output": []},
            "cost": {"tiers": [{"tier": {"size": 1e300, "type": "moon"}}]},
            "reasoning_options": [{"type": "telepathy"}],
            "experimental": {"modes": {"": {}}},
            "provider": {"npm": "", "api": "ftp://x", "shape": "round"},
        }
    )
    assert (made.limit.context, made.limit.output) == (0, 0)
    assert isinstance(made.transport, Unreachable)


# ---- everything that comes with the program -----------------------------------------------------

BUNDLED = KnownProviders(facts_cache.load_bundled(), {}, bundled=facts_cache.load_bundled())


def test_every_provider_that_comes_with_the_program_can_be_read() -> None:
    assert len(BUNDLED.providers) >= 200
    assert sum(len(found.models) for found in BUNDLED.providers.values()) >= 8_000


@pytest.mark.parametrize(
    "id", ["anthropic", "openai", "openrouter", "groq", "mistral", "xai", "deepseek", "vercel"]
)
def test_the_providers_that_people_use_most_can_be_reached(id: str) -> None:
    models = BUNDLED.providers[id].models.values()
    assert models
    assert [model.id for model in models if not isinstance(model.transport, HttpProtocol)] == []


def test_what_cannot_be_reached_says_what_is_missing() -> None:
    reasons = {
        model.transport.reason
        for found in BUNDLED.providers.values()
        for model in found.models.values()
        if isinstance(model.transport, Unreachable)
    }
    assert reasons
    said = ("not supported here", "needs the environment variable", "`api.url` is not set")
    assert [reason for reason in reasons if not any(text in reason for text in said)] == []
