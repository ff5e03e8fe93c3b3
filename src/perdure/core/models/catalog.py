"""The catalog: providers and models, from shared facts and configuration.

The configuration is merged over the shared facts. Catalog values contain addresses and secrets;
clients get only what core.models.public returns. Finding keys is core.credentials.keys, wire
protocols are core.models.transport, making calls is location.models.catalog.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from msgspec import UNSET, UnsetType, field

from perdure.core import limits
from perdure.core.config_file import entries
from perdure.core.config_file.entries import (
    ApiEntry,
    CacheCostEntry,
    CostEntry,
    ModelEntry,
    Policy,
    ProviderEntry,
    ProviderLimitsEntry,
    RequestEntry,
    Status,
    TimeoutEntry,
    VariantEntry,
)
from perdure.core.credentials import keys
from perdure.core.models import chat_dialects, options
from perdure.core.models.options import Overrides
from perdure.core.models.provider_limits import NO_LIMITS, ProviderLimits
from perdure.core.models.transport import (
    NATIVE,
    Api,
    BuiltIn,
    HostProvided,
    HttpProtocol,
    ModelTransport,
    transport_of,
)
from perdure.core.settings.settings import Settings
from perdure.core.text import wildcard
from perdure.llm.encoding.chat_dialect import DEFAULT_DIALECT, ChatDialect
from perdure.llm.event import Usage
from perdure.llm.model_call import ModelCall
from perdure.schema.models.model import (
    CacheCost,
    CostTier,
    ModelCapabilities,
    ModelCost,
    ModelLimit,
)
from perdure.schema.value import Confidential, Value

_DEMO: Final = BuiltIn("perdure.llm.demo.model:demo_call")
DEMO_ID: Final = "demo"
_DEMO_TITLE: Final = "Demo (scripted, not an AI)"


class CatalogModel(Confidential, kw_only=True):
    id: str
    provider_id: str
    name: str
    wire_name: str
    api: Api
    transport: ModelTransport
    capabilities: ModelCapabilities
    limit: ModelLimit
    """A context of 0 is unknown."""
    takes: frozenset[str] | None = None
    """The kinds of input it accepts; None if unknown."""
    family: str | None = None
    dialect: ChatDialect = DEFAULT_DIALECT
    request: Overrides = field(default_factory=Overrides)
    default_variant: str | None = None
    variants: Mapping[str, Overrides] = field(default_factory=dict[str, Overrides])
    released: int = 0
    cost: tuple[ModelCost, ...] = ()
    status: Status = "active"
    enabled: bool = True


class Timeouts(Value, kw_only=True):
    """Timeouts of a provider in seconds; 0 means none."""

    connect: float = limits.PROVIDER_CONNECT_SECONDS_MAX
    first_byte: float = limits.PROVIDER_FIRST_BYTE_SECONDS_MAX
    idle: float = limits.PROVIDER_IDLE_SECONDS_MAX
    total: float = limits.PROVIDER_TOTAL_SECONDS_MAX


class CatalogProvider(Confidential, kw_only=True):
    id: str
    name: str
    api: Api
    models: Mapping[str, CatalogModel]
    env: tuple[str, ...] = ()
    """Variables that may hold its key."""
    key_optional: bool = False
    """Whether no key is needed although `env` names variables."""
    request: Overrides = field(default_factory=Overrides)
    disabled: bool = False
    configured: bool = True
    """Whether this Location or the host program configures it."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    limits: ProviderLimits = NO_LIMITS


class Known(Protocol):
    """Shared facts about providers; see core.models.known_providers."""

    @property
    def providers(self) -> Mapping[str, CatalogProvider]:
        """Each provider without any configuration."""
        ...

    def entry(self, provider_id: str) -> ProviderEntry | None:
        """The facts that a configuration is merged over."""
        ...


def build(
    settings: Settings, host: tuple[CatalogProvider, ...] = (), known: Known | None = None
) -> dict[str, CatalogProvider]:
    """Every provider that the policies allow, by id.

    Order: configured providers, those of the host, the demo, then the known ones.
    """
    providers = {
        name: merge_provider(name, entry, None if known is None else known.entry(name))
        for name, entry in settings.providers.items()
    }
    for each in (*host, _demo_provider(), *(known.providers.values() if known else ())):
        providers.setdefault(each.id, each)
    return {name: providers[name] for name in providers if may_use(settings, name)}


def merge_provider(
    id: str, entry: ProviderEntry, facts: ProviderEntry | None = None
) -> CatalogProvider:
    """The provider of `entry`, completed by the facts."""
    whole = entry if facts is None else entries.merge_entries(facts, entry)
    elsewhere = facts is not None and keys.own_address(entry) is not None
    return make_provider(id, whole, key_optional=elsewhere and entry.env is UNSET)


def make_provider(
    id: str, entry: ProviderEntry, *, key_optional: bool = False, configured: bool = True
) -> CatalogProvider:
    """The provider of one entry. Its models are built on first access."""
    request = _overrides(entry.request)
    api = _with_address(_api(entry.api, Api()), entry.request)

    def models() -> dict[str, CatalogModel]:
        return {
            model_id: _model(model_id, model, provider=entry, inherited=(id, api), below=request)
            for model_id, model in (entry.models or {}).items()
        }

    return CatalogProvider(
        id=id,
        name=entry.name or id,
        api=api,
        env=entry.env or (),
        key_optional=key_optional,
        request=request,
        disabled=entry.disabled or False,
        configured=configured,
        timeouts=_timeouts(entry.timeout),
        limits=_limits(entry.limits),
        models=LazyModels(models),
    )


class LazyModels(Mapping[str, CatalogModel]):
    """Models of a provider, built together on first access."""

    def __init__(self, make: Callable[[], dict[str, CatalogModel]]) -> None:
        self._make = make
        self._models: dict[str, CatalogModel] | None = None

    def __getitem__(self, id: str) -> CatalogModel:
        return self._made()[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made())

    def __len__(self) -> int:
        return len(self._made())

    def _made(self) -> dict[str, CatalogModel]:
        if self._models is None:
            self._models = self._make()
        return self._models


def host_provider(name: str, calls: Mapping[str, ModelCall]) -> CatalogProvider:
    """A provider whose models the embedding program implements, by model name."""
    models = {
        model: _plain_model(name, model, HostProvided(call), Api()) for model, call in calls.items()
    }
    return CatalogProvider(id=name, name=name, api=Api(), models=models)


def local_provider(name: str, url: str, contexts: Mapping[str, int]) -> CatalogProvider:
    """A server found on this machine; `contexts`: model -> context size, 0 if unknown."""
    api = Api(url=url)
    models = {
        model: _plain_model(name, model, NATIVE, api, context=context)
        for model, context in contexts.items()
    }
    return CatalogProvider(id=name, name=name, api=api, models=models)


def may_use(settings: Settings, provider_id: str) -> bool:
    """Whether the policies of every layer allow a provider; the last that matches decides."""
    return all(_allows(policies, provider_id) for policies in settings.policies)


def _allows(policies: tuple[Policy, ...], provider_id: str) -> bool:
    for policy in reversed(policies):
        if policy.action == "provider.use" and wildcard.matches(policy.resource, provider_id):
            return policy.effect == "allow"
    return True


def cost_of(tiers: tuple[ModelCost, ...], used: Usage) -> float:
    """US dollars for what was used, at the highest tier that its context exceeds.

    Reasoning is priced as output. What is kept in a cache for an hour costs twice the input
    (Anthropic, prompt caching). Without a price the result is 0.
    """
    context = used.input + used.cache_read + used.cache_write
    sizes = [(tier.tier.size if tier.tier else -1, tier) for tier in tiers]
    applying = [(size, tier) for size, tier in sizes if context > size]
    if not applying:
        return 0.0
    price = max(applying, key=lambda sized: sized[0])[1]
    millionths = (
        used.input * price.input
        + (used.output + used.reasoning) * price.output
        + used.cache_read * price.cache.read
        + used.cache_write * price.cache.write
        + used.cache_write_hour * max(0.0, 2 * price.input - price.cache.write)
    )
    return millionths / 1_000_000


def _model(
    id: str,
    entry: ModelEntry,
    *,
    provider: ProviderEntry,
    inherited: tuple[str, Api],
    below: Overrides,
) -> CatalogModel:
    own = _overrides(entry.request)
    provider_id, provider_api = inherited
    api = _with_address(_api(entry.api, provider_api), entry.request)
    capabilities, limit = entry.capabilities, entry.limit
    wire_name = (entry.api.id if entry.api else UNSET) or id
    transport = transport_of(api)
    return CatalogModel(
        id=id,
        provider_id=provider_id,
        name=entry.name or id,
        wire_name=wire_name,
        api=api,
        transport=transport,
        capabilities=ModelCapabilities(
            tools=capabilities.tools if capabilities and capabilities.tools is not UNSET else True,
            input=(capabilities.input if capabilities else UNSET) or ("text",),
            output=(capabilities.output if capabilities else UNSET) or ("text",),
        ),
        takes=frozenset(capabilities.input) if capabilities and capabilities.input else None,
        limit=ModelLimit(
            context=(limit.context if limit else UNSET) or 0,
            output=(limit.output if limit else UNSET) or 0,
            input=(limit.input if limit else UNSET) or UNSET,
        ),
        family=entry.family or None,
        dialect=chat_dialects.choose_dialect(
            wire_name,
            url=api.url or (transport.url if isinstance(transport, HttpProtocol) else None),
            names=(provider_id, api.package or ""),
            entries=(provider.dialect, entry.dialect),
        ),
        request=own.merge_over(below),
        default_variant=(entry.request.variant if entry.request else UNSET) or None,
        variants={
            variant.id: _variant(variant)
            for variant in entry.variants or ()
            if variant.disabled is not True
        },
        released=(entry.time.released if entry.time else UNSET) or 0,
        cost=_prices(entry),
        status=entry.status or "active",
        enabled=not entry.disabled and _is_listed(id, provider),
    )


def _is_listed(model_id: str, provider: ProviderEntry) -> bool:
    white, black = provider.whitelist, provider.blacklist
    return (white is UNSET or model_id in white) and (black is UNSET or model_id not in black)


def _variant(entry: VariantEntry) -> Overrides:
    return options.read_overrides(entry.headers or {}, entry.body or {})


def _api(entry: ApiEntry | UnsetType, inherited: Api) -> Api:
    if entry is UNSET:
        return inherited
    return Api(
        type=entry.type or inherited.type,
        package=entry.package or inherited.package,
        url=entry.url or inherited.url,
        settings={**inherited.settings, **(entry.settings or {})},
    )


def _with_address(api: Api, request: RequestEntry | UnsetType) -> Api:
    body = (request.body or {}) if request else {}
    url = keys.address(body=body, url=api.url, api_settings=api.settings)
    return Api(type=api.type, package=api.package, url=url, settings=api.settings)


def _overrides(entry: RequestEntry | UnsetType) -> Overrides:
    return options.read_overrides(entry.headers or {}, entry.body or {}) if entry else Overrides()


def _timeouts(entry: TimeoutEntry | UnsetType) -> Timeouts:
    usual = Timeouts()
    if entry is UNSET:
        return usual
    return Timeouts(
        connect=usual.connect if entry.connect is UNSET else entry.connect,
        first_byte=usual.first_byte if entry.first_byte is UNSET else entry.first_byte,
        idle=usual.idle if entry.idle is UNSET else entry.idle,
        total=usual.total if entry.total is UNSET else entry.total,
    )


def _limits(entry: ProviderLimitsEntry | UnsetType) -> ProviderLimits:
    if entry is UNSET:
        return NO_LIMITS
    return ProviderLimits(
        concurrent=entry.concurrent or None,
        requests=entry.requests_per_minute or None,
        tokens=entry.tokens_per_minute or None,
    )


def _prices(entry: ModelEntry) -> tuple[ModelCost, ...]:
    costs = (entry.cost,) if isinstance(entry.cost, CostEntry) else entry.cost or ()
    return tuple(_price(cost) for cost in costs)


def _price(cost: CostEntry) -> ModelCost:
    # Without a price of its own, what goes through the cache is input like any other.
    cache = cost.cache or CacheCostEntry()
    read = cost.input if cache.read is UNSET else cache.read
    write = cost.input if cache.write is UNSET else cache.write
    return ModelCost(
        input=cost.input,
        output=cost.output,
        cache=CacheCost(read=read, write=write),
        tier=CostTier(type="context", size=cost.tier.size) if cost.tier else UNSET,
    )


def _demo_provider() -> CatalogProvider:
    demo = _plain_model(DEMO_ID, DEMO_ID, _DEMO, Api(), title=_DEMO_TITLE)
    return CatalogProvider(id=DEMO_ID, name=_DEMO_TITLE, api=Api(), models={DEMO_ID: demo})


def _plain_model(
    provider_id: str,
    id: str,
    transport: ModelTransport,
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
        transport=transport,
        capabilities=ModelCapabilities(tools=True, input=("text",), output=("text",)),
        dialect=chat_dialects.choose_dialect(id, url=api.url, names=(provider_id,)),
        limit=ModelLimit(context=context, output=32_000),
    )
