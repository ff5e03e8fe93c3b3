"""The catalog: providers and models as configured, with what it takes to reach them.

Values inside hold addresses and secrets. `public_provider` and `public_model` are the only way
out to a client, and they name every field that may leave. Finding keys is core.credential,
making calls is location.catalog.

A new wire protocol is one line in `PACKAGES`.
"""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import UNSET, UnsetType, field

from perdure.core import credential, wildcard
from perdure.core.config_entry import ApiEntry, CostEntry, ModelEntry, ProviderEntry, RequestEntry
from perdure.core.model_request import Overrides
from perdure.core.settings import Settings
from perdure.llm.model_call import ModelCall
from perdure.schema.codec import JsonObject
from perdure.schema.model import (
    ApiInfo,
    CacheCost,
    CostTier,
    ModelCapabilities,
    ModelCost,
    ModelInfo,
    ModelLimit,
    ModelTime,
    ProviderInfo,
    RequestInfo,
    TokenUsage,
    VariantInfo,
)
from perdure.schema.value import Confidential, Value


class Wire(Value):
    """Reached over HTTP. `protocol` is `module:name`, imported when a model is first called."""

    protocol: str
    scheme: Literal["bearer", "x-api-key", "api-key", "x-goog-api-key"] = "bearer"
    url: str | None = None
    """The provider's own address, where the configuration names none."""
    system_role: frozenset[str] = frozenset()
    """Models that take a system message inside the conversation, by their wire names."""

    def has_system_role(self, model: str) -> bool:
        return model in self.system_role


class BuiltIn(Value):
    """Part of this program. `call` is `module:name` of a ModelCall."""

    call: str


class Supplied(Value):
    """Brought by the embedding program."""

    call: ModelCall


class Unreachable(Value):
    reason: str


Reach = Wire | BuiltIn | Supplied | Unreachable

_OPENAI_CHAT: Final = Wire("perdure.llm.protocols.openai_chat:OPENAI_CHAT")
_ANTHROPIC: Final = Wire(
    "perdure.llm.protocols.anthropic_messages:ANTHROPIC_MESSAGES",
    "x-api-key",
    "https://api.anthropic.com/v1",
    frozenset({"claude-opus-4-8"}),
)
_OPENAI_RESPONSES: Final = Wire(
    "perdure.llm.protocols.openai_responses:OPENAI_RESPONSES", url="https://api.openai.com/v1"
)
_AZURE: Final = Wire("perdure.llm.protocols.openai_responses:AZURE_RESPONSES", "api-key")
_DEMO: Final = BuiltIn("perdure.llm.demo:demo_call")

PACKAGES: Final[Mapping[str, Wire]] = {
    "@ai-sdk/anthropic": _ANTHROPIC,
    "@ai-sdk/azure": _AZURE,
    "@ai-sdk/openai": _OPENAI_RESPONSES,
    "@ai-sdk/openai-compatible": _OPENAI_CHAT,
}
"""Package of an `aisdk` provider -> the wire protocol that it stands for."""

NATIVE: Final = _OPENAI_CHAT
"""What a `native` provider speaks: the servers that people run themselves all answer to it."""

DEMO_ID: Final = "demo"
_DEMO_TITLE: Final = "Demo (scripted, not an AI)"


class Api(Confidential, kw_only=True):
    type: Literal["aisdk", "native"] = "native"
    package: str | None = None
    url: str | None = None
    settings: JsonObject = field(default_factory=dict[str, object])


class CatalogModel(Confidential, kw_only=True):
    id: str
    provider_id: str
    name: str
    wire_name: str
    api: Api
    reach: Reach
    capabilities: ModelCapabilities
    limit: ModelLimit
    """A context of 0 is unknown."""
    family: str | None = None
    request: Overrides = field(default_factory=Overrides)
    default_variant: str | None = None
    variants: Mapping[str, Overrides] = field(default_factory=dict[str, Overrides])
    released: int = 0
    cost: tuple[ModelCost, ...] = ()
    status: Literal["alpha", "beta", "deprecated", "active"] = "active"
    enabled: bool = True


class CatalogProvider(Confidential, kw_only=True):
    id: str
    name: str
    api: Api
    models: Mapping[str, CatalogModel]
    env: tuple[str, ...] = ()
    request: Overrides = field(default_factory=Overrides)
    disabled: bool = False


def build(settings: Settings, host: tuple[CatalogProvider, ...] = ()) -> dict[str, CatalogProvider]:
    """Every provider that the policies leave, by id: configured, brought by the host, the demo."""
    providers = {name: _provider(name, entry) for name, entry in settings.providers.items()}
    for provider in (*host, _demo_provider()):
        providers.setdefault(provider.id, provider)
    return {name: providers[name] for name in providers if may_use(settings, name)}


def supplied_provider(name: str, calls: Mapping[str, ModelCall]) -> CatalogProvider:
    """A provider whose models the embedding program answers for, by model name."""
    models = {
        model: _plain_model(name, model, Supplied(call), Api()) for model, call in calls.items()
    }
    return CatalogProvider(id=name, name=name, api=Api(), models=models)


def local_provider(name: str, url: str, contexts: Mapping[str, int]) -> CatalogProvider:
    """A server found on this machine; `contexts` are its models with their context, 0 unknown."""
    api = Api(url=url)
    models = {
        model: _plain_model(name, model, NATIVE, api, context=context)
        for model, context in contexts.items()
    }
    return CatalogProvider(id=name, name=name, api=api, models=models)


def may_use(settings: Settings, provider_id: str) -> bool:
    """What the last matching `provider.use` policy says; without one, yes."""
    for policy in reversed(settings.policies):
        if policy.action == "provider.use" and wildcard.matches(policy.resource, provider_id):
            return policy.effect == "allow"
    return True


def reach_of(api: Api) -> Reach:
    """How a model with this api is called, or why it cannot be."""
    known = NATIVE if api.type == "native" else PACKAGES.get(api.package or "")
    if known is None:
        supported = ", ".join(PACKAGES)
        return Unreachable(f"the package {api.package!r} is not supported here (only {supported})")
    url = api.url or known.url
    if url is None:
        return Unreachable("its `api.url` is not set")
    if credential.origin_of(url) is None:
        return Unreachable("its `api.url` is not an http or https address")
    return known


def cost_of(tiers: tuple[ModelCost, ...], usage: TokenUsage) -> float:
    """US dollars for `usage`, at the highest tier that its context exceeds.

    Reasoning costs what output costs. Without a price the answer is 0.
    """
    context = usage.input + usage.cache.read + usage.cache.write
    sizes = [(tier.tier.size if tier.tier else -1, tier) for tier in tiers]
    applying = [(size, tier) for size, tier in sizes if context > size]
    if not applying:
        return 0.0
    price = max(applying, key=lambda sized: sized[0])[1]
    millionths = (
        usage.input * price.input
        + (usage.output + usage.reasoning) * price.output
        + usage.cache.read * price.cache.read
        + usage.cache.write * price.cache.write
    )
    return millionths / 1_000_000


def public_provider(provider: CatalogProvider) -> ProviderInfo:
    return ProviderInfo(
        id=provider.id,
        name=provider.name,
        api=_public_api(provider.api),
        request=RequestInfo(headers={}, body={}),
        disabled=True if provider.disabled else UNSET,
    )


def public_model(model: CatalogModel) -> ModelInfo:
    return ModelInfo(
        id=model.id,
        provider_id=model.provider_id,
        name=model.name,
        api=_public_api(model.api, id=model.wire_name),
        capabilities=model.capabilities,
        request=RequestInfo(headers={}, body={}),
        variants=tuple(VariantInfo(id=name, headers={}, body={}) for name in model.variants),
        time=ModelTime(released=model.released),
        cost=model.cost,
        status=model.status,
        enabled=model.enabled,
        limit=model.limit,
        family=model.family or UNSET,
    )


def _public_api(api: Api, *, id: str | None = None) -> ApiInfo:
    return ApiInfo(
        type=api.type,
        package=api.package or UNSET,
        url=credential.public_url(api.url) or UNSET,
        id=id or UNSET,
        settings={} if api.type == "native" else UNSET,
    )


def _provider(id: str, entry: ProviderEntry) -> CatalogProvider:
    request = _overrides(entry.request)
    api = _addressed(_api(entry.api, Api()), request)
    return CatalogProvider(
        id=id,
        name=entry.name or id,
        api=api,
        env=entry.env or (),
        request=request,
        disabled=entry.disabled or False,
        models={
            model_id: _model(model_id, model, provider_id=id, inherited=api, below=request)
            for model_id, model in (entry.models or {}).items()
        },
    )


def _model(
    id: str, entry: ModelEntry, *, provider_id: str, inherited: Api, below: Overrides
) -> CatalogModel:
    own = _overrides(entry.request)
    api = _addressed(_api(entry.api, inherited), own)
    capabilities, limit = entry.capabilities, entry.limit
    return CatalogModel(
        id=id,
        provider_id=provider_id,
        name=entry.name or id,
        wire_name=(entry.api.id if entry.api else UNSET) or id,
        api=api,
        reach=reach_of(api),
        capabilities=ModelCapabilities(
            tools=capabilities.tools if capabilities and capabilities.tools is not UNSET else True,
            input=(capabilities.input if capabilities else UNSET) or ("text",),
            output=(capabilities.output if capabilities else UNSET) or ("text",),
        ),
        limit=ModelLimit(
            context=(limit.context if limit else UNSET) or 0,
            output=(limit.output if limit else UNSET) or 0,
            input=(limit.input if limit else UNSET) or UNSET,
        ),
        family=entry.family or None,
        request=own.over(below),
        default_variant=(entry.request.variant if entry.request else UNSET) or None,
        variants={
            variant.id: Overrides(headers=variant.headers or {}, body=variant.body or {})
            for variant in entry.variants or ()
        },
        released=(entry.time.released if entry.time else UNSET) or 0,
        cost=_prices(entry),
        status=entry.status or "active",
        enabled=not entry.disabled,
    )


def _api(entry: ApiEntry | UnsetType, inherited: Api) -> Api:
    if entry is UNSET:
        return inherited
    return Api(
        type=entry.type or inherited.type,
        package=entry.package or inherited.package,
        url=entry.url or inherited.url,
        settings={**inherited.settings, **(entry.settings or {})},
    )


def _addressed(api: Api, request: Overrides) -> Api:
    url = credential.address(body=request.body, url=api.url, api_settings=api.settings)
    return Api(type=api.type, package=api.package, url=url, settings=api.settings)


def _overrides(entry: RequestEntry | UnsetType) -> Overrides:
    if entry is UNSET:
        return Overrides()
    return Overrides(headers=entry.headers or {}, body=entry.body or {})


def _prices(entry: ModelEntry) -> tuple[ModelCost, ...]:
    costs = (entry.cost,) if isinstance(entry.cost, CostEntry) else entry.cost or ()
    return tuple(_price(cost) for cost in costs)


def _price(cost: CostEntry) -> ModelCost:
    cache = cost.cache
    return ModelCost(
        input=cost.input,
        output=cost.output,
        cache=CacheCost(read=cache.read, write=cache.write) if cache else CacheCost(0, 0),
        tier=CostTier(type="context", size=cost.tier.size) if cost.tier else UNSET,
    )


def _demo_provider() -> CatalogProvider:
    demo = _plain_model(DEMO_ID, DEMO_ID, _DEMO, Api(), title=_DEMO_TITLE)
    return CatalogProvider(id=DEMO_ID, name=_DEMO_TITLE, api=Api(), models={DEMO_ID: demo})


def _plain_model(
    provider_id: str,
    id: str,
    reach: Reach,
    api: Api,
    *,
    title: str | None = None,
    context: int = 1_000_000,
) -> CatalogModel:
    return CatalogModel(
        id=id,
        provider_id=provider_id,
        name=title or id,
        wire_name=id,
        api=api,
        reach=reach,
        capabilities=ModelCapabilities(tools=True, input=("text",), output=("text",)),
        limit=ModelLimit(context=context, output=32_000),
    )
