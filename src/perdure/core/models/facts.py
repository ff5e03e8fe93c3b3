"""Shared facts about providers and models, in the shape that models.dev publishes.

They become configuration entries, and the configuration of a Location is merged over them field by
field. Unused fields are dropped. location.models.facts_cache fetches facts, and
core.models.facts_archive stores them.

Invariant: every fact, however odd, makes an entry from which the catalog can build a model.
"""

import datetime
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import UNSET, UnsetType, field

from perdure.core.config_file.entries import (
    ApiEntry,
    CacheCostEntry,
    CapabilitiesEntry,
    CostEntry,
    LimitEntry,
    ModelEntry,
    ProviderEntry,
    RequestEntry,
    Status,
    TierEntry,
    TimeEntry,
    VariantEntry,
)
from perdure.core.credentials import keys as credential
from perdure.core.models import transport, variants
from perdure.core.models.facts_source import is_true
from perdure.core.models.variants import Thinking
from perdure.lazy_pattern import lazy_pattern
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

Number = int | float

EXPERIMENTAL: Final = "OPENCODE_ENABLE_EXPERIMENTAL_MODELS"
"""If this variable is 1 or true, alpha models are offered too."""

_COMPATIBLE: Final = "@ai-sdk/openai-compatible"
_RESPONSES: Final = "@ai-sdk/openai"
_LARGE_CONTEXT: Final = 200_000
_COUNT_MAX: Final = 2**53
_ADDRESSES: Final[Mapping[str, str]] = {
    "azure": "https://${AZURE_RESOURCE_NAME}.openai.azure.com/openai",
    "azure-cognitive-services": (
        "https://${AZURE_COGNITIVE_SERVICES_RESOURCE_NAME}.cognitiveservices.azure.com/openai"
    ),
}
"""Provider -> its address, if the facts leave it to the package."""
_VARIABLE: Final = lazy_pattern(r"\$\{(\w+)\}")
_TWO_SCHEMES: Final = lazy_pattern(r"^https?://(?=https?://)")
_ENABLING: Final = frozenset(
    {"AWS_ACCESS_KEY_ID", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_VERTEX_PROJECT"}
)
"""Variables that make a provider usable but are never sent as its key; see core.models.access."""
_HOLDS_PART: Final = lazy_pattern(
    r".*_(?:NAME|HOST|URL|ENDPOINT|ACCOUNT|PROJECT|LOCATION|REGION"
    r"|(?:ACCOUNT|GATEWAY|PRODUCT|PROJECT)_ID)"
)
_HOLDS_KEY: Final = lazy_pattern(r"(?!AWS_SECRET).*_(?:API)?(?:KEY|TOKEN|PAT)(?:_BEDROCK)?")


class Fact(Value, omit_defaults=True):
    """Part of the published facts, with the published field names."""


class Price(Fact, kw_only=True):
    input: Number = 0
    output: Number = 0
    cache_read: Number | None = None
    cache_write: Number | None = None


class TierSize(Fact, kw_only=True):
    size: Number
    type: str = "context"


class TierPrice(Price, kw_only=True):
    tier: TierSize


class Prices(Price, kw_only=True):
    tiers: tuple[TierPrice, ...] = ()
    context_over_200k: Price | None = None


class Limits(Fact, kw_only=True):
    context: Number = 0
    output: Number = 0
    input: Number = 0


class Modalities(Fact, kw_only=True):
    input: tuple[str, ...] = ("text",)
    output: tuple[str, ...] = ("text",)


class ReasoningOption(Fact, kw_only=True):
    type: str
    values: tuple[str | None, ...] = ()
    min: Number = 0
    max: Number = 0


class Route(Fact, kw_only=True):
    npm: str | None = None
    api: str | None = None
    shape: str | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: JsonObject = field(default_factory=dict[str, object])


class Mode(Fact, kw_only=True):
    cost: Prices | None = None
    provider: Route | None = None


class Experimental(Fact):
    modes: dict[str, Mode] = field(default_factory=dict[str, Mode])


class KnownModel(Fact, kw_only=True):
    name: str = ""
    family: str = ""
    release_date: str = ""
    tool_call: bool = False
    modalities: Modalities | None = None
    limit: Limits | None = None
    cost: Prices | None = None
    status: str = ""
    provider: Route | None = None
    reasoning_options: tuple[ReasoningOption, ...] = ()
    experimental: Experimental | None = None


class KnownProvider(Fact, kw_only=True):
    """A provider without its models."""

    id: str
    name: str = ""
    env: tuple[str, ...] = ()
    npm: str = ""
    api: str | None = None
    further: tuple[str, ...] = ()
    """Other addresses of some of its models."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The variables that hold a key."""
        return tuple(name for name in self.env if _HOLDS_KEY.fullmatch(name))

    @property
    def parts(self) -> tuple[str, ...]:
        """The variables that are part of an address and hold no secret."""
        return tuple(name for name in self.env if _HOLDS_PART.fullmatch(name))

    @property
    def url(self) -> str | None:
        return self.api or _ADDRESSES.get(self.id)


def origins(provider: KnownProvider, variables: Mapping[str, str]) -> frozenset[str]:
    """The origins of a provider's models, as far as the variables complete the addresses."""
    protocol = transport.PACKAGES.get(provider.npm)
    urls = (provider.url or (protocol.url if protocol else None), *provider.further)
    found = (credential.origin_of(substitute_variables(url, variables)) for url in urls if url)
    return frozenset(origin for origin in found if origin is not None and "${" not in origin)


def entry(
    provider: KnownProvider, models: Mapping[str, KnownModel], variables: Mapping[str, str]
) -> ProviderEntry:
    """The facts as a configuration entry."""
    api = ApiEntry(type="aisdk", package=provider.npm, url=_address(provider.url, variables))
    opening = _ENABLING.union(provider.keys)
    return ProviderEntry(
        name=provider.name or UNSET,
        env=tuple(name for name in provider.env if name in opening),
        api=api,
        models={
            name: model
            for base, known in models.items()
            for name, model in _models(base, known, api, variables)
        },
    )


def substitute_variables(url: str, variables: Mapping[str, str]) -> str:
    """An address with its variables substituted; unset ones stay as they are."""
    text = _VARIABLE.sub(lambda found: variables.get(found[1], "").rstrip("/") or found[0], url)
    return _TWO_SCHEMES.sub("", text)


def _address(url: str | None, variables: Mapping[str, str]) -> str | UnsetType:
    return substitute_variables(url, variables) if url else UNSET


def _models(
    id: str, known: KnownModel, inherited: ApiEntry, variables: Mapping[str, str]
) -> Iterator[tuple[str, ModelEntry]]:
    """A model, and one more for each of its modes."""
    place = (inherited, variables)
    yield id, _model(id, known, place, Mode())
    for name, mode in known.experimental.modes.items() if known.experimental else ():
        yield f"{id}-{name}", _model(id, known, place, mode, title=name.capitalize())


def _model(
    id: str,
    known: KnownModel,
    place: tuple[ApiEntry, Mapping[str, str]],
    mode: Mode,
    *,
    title: str = "",
) -> ModelEntry:
    inherited, variables = place
    modalities, limit = known.modalities or Modalities(), known.limit or Limits()
    route, added = known.provider or Route(), (mode if title else known).provider or Route()
    package = _package(route, inherited)
    own = package != inherited.package
    api = ApiEntry(
        # Only differences, so that configuring the provider also applies to these models.
        type="aisdk" if own else UNSET,
        package=package if own else UNSET,
        id=id if title else UNSET,
        url=_address(route.api, variables),
    )
    return ModelEntry(
        name=" ".join(filter(None, (known.name or id, title))),
        family=known.family or UNSET,
        api=api,
        capabilities=CapabilitiesEntry(
            tools=known.tool_call, input=modalities.input, output=modalities.output
        ),
        request=RequestEntry(headers=added.headers or UNSET, body=added.body or UNSET),
        variants=_variants(known, package),
        cost=_costs(known.cost, mode.cost),
        limit=LimitEntry(
            context=_count(limit.context),
            output=_count(limit.output),
            input=_count(limit.input) or UNSET,
        ),
        status=_status(known.status),
        disabled=True if _is_withheld(known.status, variables) else UNSET,
        time=TimeEntry(released=_released(known.release_date)),
    )


def _package(route: Route, inherited: ApiEntry) -> str:
    provided = inherited.package or ""
    # A package's default address is its vendor's, where this provider's key is not valid.
    is_placed = bool(route.api or inherited.url) or (
        _is_vertex(provided) and _is_vertex(route.npm or "")
    )
    package = route.npm if route.npm and is_placed else provided
    if route.shape == "completions":
        return _COMPATIBLE
    return _RESPONSES if route.shape == "responses" and package == _COMPATIBLE else package


def _is_vertex(package: str) -> bool:
    protocol = transport.PACKAGES.get(package)
    return protocol is not None and protocol.vertex is not None


def _variants(known: KnownModel, package: str) -> tuple[VariantEntry, ...]:
    protocol = transport.PACKAGES.get(package)
    if protocol is None or not known.reasoning_options:
        return ()
    by_type = {option.type: option for option in known.reasoning_options}
    budget, effort = by_type.get("budget_tokens"), by_type.get("effort")
    thinking = Thinking(
        efforts=tuple(filter(None, effort.values)) if effort else (),
        budget=budget is not None,
        budget_min=_count(budget.min) if budget else 0,
        budget_max=_count(budget.max) if budget else 0,
        switch="toggle" in by_type,
        output_limit=_count(known.limit.output) if known.limit else 0,
        family=known.family,
    )
    return variants.variants(protocol.dialect, thinking)


def _costs(base: Prices | None, mode: Prices | None) -> tuple[CostEntry, ...] | UnsetType:
    """The price, and those of larger contexts. A mode may have its own price."""
    price = mode or base
    if price is None:
        return UNSET
    large = (TierSize(size=_LARGE_CONTEXT), price.context_over_200k)
    tiers = [(tier.tier, tier) for tier in price.tiers if tier.tier.type == "context"] or [large]
    return (
        _cost(price, price),
        *(_cost(above, price, size) for size, above in tiers if above is not None),
    )


def _cost(price: Price, base: Price, size: TierSize | None = None) -> CostEntry:
    read = base.cache_read if price.cache_read is None else price.cache_read
    write = base.cache_write if price.cache_write is None else price.cache_write
    return CostEntry(
        input=max(price.input, 0),
        output=max(price.output, 0),
        cache=CacheCostEntry(
            read=UNSET if read is None else max(read, 0),
            write=UNSET if write is None else max(write, 0),
        ),
        tier=TierEntry(size=_count(size.size)) if size else UNSET,
    )


def _status(status: str) -> Status | UnsetType:
    match status:
        case "alpha" | "beta" | "deprecated":
            return status
        case _:
            return UNSET


def _is_withheld(status: str, variables: Mapping[str, str]) -> bool:
    early = status == "alpha" and not is_true(variables.get(EXPERIMENTAL))
    return early or status == "deprecated"


def _count(number: Number) -> int:
    """A number of tokens; 0 (unknown) if it is out of range."""
    return int(number) if 0 < number < _COUNT_MAX else 0


def _released(text: str) -> int:
    """The first millisecond (UTC) of a date, which may lack its day; 0 if invalid."""
    try:
        day = datetime.date.fromisoformat(text if text.count("-") == 2 else f"{text}-01")
    except ValueError:
        return 0
    return (day - datetime.date(1970, 1, 1)).days * 86_400_000
