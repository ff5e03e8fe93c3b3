"""Providers, models and the configuration in V1."""

from typing import Final, Literal

from msgspec import UNSET, UnsetType, field

from perdure.protocol.v1.endpoint import declare
from perdure.schema.codec import JsonObject, Record
from perdure.schema.models.model import CacheCost, ModelLimit


class V1Api(Record):
    id: str
    url: str
    npm: str


class V1Media(Record):
    text: bool
    audio: bool
    image: bool
    video: bool
    pdf: bool


class V1Capabilities(Record):
    temperature: bool
    reasoning: bool
    attachment: bool
    toolcall: bool
    input: V1Media
    output: V1Media
    interleaved: bool


class V1Cost(Record):
    input: float
    output: float
    cache: CacheCost


class V1Model(Record):
    id: str
    provider_id: str
    name: str
    api: V1Api
    capabilities: V1Capabilities
    cost: V1Cost
    limit: ModelLimit
    status: Literal["alpha", "beta", "deprecated", "active"]
    options: JsonObject
    headers: dict[str, str]
    variants: dict[str, JsonObject]
    release_date: str = field(name="release_date")
    family: str | UnsetType = UNSET


V1ProviderSource = Literal["env", "config", "custom", "api"]
"""Where a provider is from: a variable, the configuration, a stored key, or what is known."""


class V1Provider(Record):
    id: str
    name: str
    source: V1ProviderSource
    env: tuple[str, ...]
    options: JsonObject
    models: dict[str, V1Model]


class V1ProviderList(Record):
    all: tuple[V1Provider, ...]
    default: dict[str, str]
    connected: tuple[str, ...]


class V1ConfigProviders(Record):
    providers: tuple[V1Provider, ...]
    default: dict[str, str]


class V1AuthMethod(Record):
    type: Literal["oauth", "api"]
    label: str


CONFIG: Final = declare("GET", "/config", "config.get", JsonObject)
GLOBAL_CONFIG: Final = declare("GET", "/global/config", "global.config.get", JsonObject)
CONFIG_PROVIDERS: Final = declare("GET", "/config/providers", "config.providers", V1ConfigProviders)
PROVIDERS: Final = declare("GET", "/provider", "provider.list", V1ProviderList)
AUTH_METHODS: Final = declare(
    "GET", "/provider/auth", "provider.auth", dict[str, tuple[V1AuthMethod, ...]]
)

ENDPOINTS: Final = (CONFIG, GLOBAL_CONFIG, CONFIG_PROVIDERS, PROVIDERS, AUTH_METHODS)
