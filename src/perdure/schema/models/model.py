"""Models and providers as clients see them, without secrets."""

from typing import Literal, Self

from msgspec import UNSET, UnsetType

from perdure.schema.codec import JsonObject, Record

DEFAULT_VARIANT = "default"


class ModelRef(Record):
    """A reference to a provider's model and one of its variants."""

    id: str
    provider_id: str
    variant: str | UnsetType = UNSET

    @classmethod
    def parse(cls, name: str) -> Self:
        """The model that "provider/model" or "provider/model#variant" names.

        Only the first slash divides: a model's own id may hold more. Raises ValueError.
        """
        model, mark, variant = name.partition("#")
        provider_id, _, model_id = model.partition("/")
        if not (provider_id and model_id) or bool(mark) != bool(variant):
            raise ValueError(
                f"{name!r} is not the name of a model; write provider/model or"
                " provider/model#variant, such as 'anthropic/claude-opus-4-5'"
            )
        return cls(id=model_id, provider_id=provider_id, variant=variant or UNSET)

    def same_model(self, other: "ModelRef") -> bool:
        """Whether provider metadata of one may be replayed to the other."""
        return self.id == other.id and self.provider_id == other.provider_id

    def same_selection(self, other: "ModelRef") -> bool:
        """Whether switching to `other` would change nothing."""
        return self.same_model(other) and self.variant_name == other.variant_name

    @property
    def variant_name(self) -> str:
        return DEFAULT_VARIANT if self.variant is UNSET else self.variant


class StepRoute(Record):
    """The way of a request to its model, beside the provider and the model that were chosen."""

    origin: str | UnsetType = UNSET
    """Scheme, host and port of the provider's address."""
    model: str | UnsetType = UNSET
    """The model's name on the provider's wire."""
    plain: bool | UnsetType = UNSET
    """Whether the answers before were sent without their native parts, and are from then on."""

    def same_way(self, other: "StepRoute") -> bool:
        """Whether both lead to the same model; what is not known of one does not differ."""
        known = ((self.origin, other.origin), (self.model, other.model))
        return all(UNSET in pair or pair[0] == pair[1] for pair in known)


class TokenCache(Record):
    read: int
    write: int


class TokenUsage(Record):
    """Non-overlapping counts: `input` excludes cache, `output` excludes reasoning."""

    input: int
    output: int
    reasoning: int
    cache: TokenCache

    def plus(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(
            input=self.input + other.input,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
            cache=TokenCache(
                read=self.cache.read + other.cache.read,
                write=self.cache.write + other.cache.write,
            ),
        )


NO_TOKENS = TokenUsage(input=0, output=0, reasoning=0, cache=TokenCache(read=0, write=0))


class ApiInfo(Record):
    """The API of a provider. Settings are always empty here, because they may hold keys."""

    type: Literal["aisdk", "native"]
    package: str | UnsetType = UNSET
    url: str | UnsetType = UNSET
    id: str | UnsetType = UNSET
    settings: JsonObject | UnsetType = UNSET


class RequestInfo(Record):
    """Request overrides. Always empty for clients."""

    headers: dict[str, str]
    body: JsonObject


class VariantInfo(Record):
    id: str
    headers: dict[str, str]
    body: JsonObject


class ModelCapabilities(Record):
    tools: bool
    input: tuple[str, ...]
    output: tuple[str, ...]


class CacheCost(Record):
    read: float
    write: float


class CostTier(Record):
    type: Literal["context"]
    size: int


class ModelCost(Record):
    """US dollars for a million tokens; a tier applies above its context size."""

    input: float
    output: float
    cache: CacheCost
    tier: CostTier | UnsetType = UNSET


class ModelLimit(Record):
    context: int
    output: int
    input: int | UnsetType = UNSET


class ModelTime(Record):
    released: int


class ModelInfo(Record):
    """One model of the catalog, as clients see it."""

    id: str
    provider_id: str
    name: str
    api: ApiInfo
    capabilities: ModelCapabilities
    request: RequestInfo
    variants: tuple[VariantInfo, ...]
    time: ModelTime
    cost: tuple[ModelCost, ...]
    status: Literal["alpha", "beta", "deprecated", "active"]
    enabled: bool
    limit: ModelLimit
    family: str | UnsetType = UNSET


class ProviderInfo(Record):
    """One provider of the catalog, as clients see it."""

    id: str
    name: str
    api: ApiInfo
    request: RequestInfo
    integration_id: str | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET


class DefaultModel(Record):
    """The model that a Session of a Location uses if none was chosen; not set if there is none."""

    model: ModelRef | UnsetType = UNSET
