"""Model transports: how a model is called, by its package and URL.

A new wire protocol is one line in `PACKAGES`, and so is a provider that uses a known one. A URL may
contain `${NAME}`, a variable of the user's environment; only URLs of this table and of
core.models.facts may, never configured ones. Making calls is location.models.catalog.

Invariant: a model that cannot be called has a reason that a person can read.
"""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import field

from perdure.core.credentials import keys
from perdure.llm.model_call import ModelCall
from perdure.llm.request import Dialect
from perdure.schema.codec import JsonObject
from perdure.schema.value import Confidential, Value


class HttpProtocol(Value):
    """A model called over HTTP. `protocol` is `module:name`, imported at the first call."""

    protocol: str
    scheme: Literal["bearer", "x-api-key", "api-key", "x-goog-api-key"] = "bearer"
    url: str | None = None
    """The default URL, if the configuration sets none."""
    system_role: frozenset[str] = frozenset()
    """Wire names of models that accept system messages inside the conversation."""
    dialect: Dialect = "openai_compatible"
    aws: bool = False
    """Whether URL and keys are those of AWS; see core.models.aws."""
    vertex: str | None = None
    """The publisher of the models on Vertex AI; see core.models.vertex."""

    def has_system_role(self, model: str) -> bool:
        return model in self.system_role


class BuiltIn(Value):
    """A model that is part of this program. `call` is `module:name` of a ModelCall."""

    call: str


class HostProvided(Value):
    """A model implemented by the embedding program."""

    call: ModelCall


class Unreachable(Value):
    reason: str


ModelTransport = HttpProtocol | BuiltIn | HostProvided | Unreachable


class Api(Confidential, kw_only=True):
    type: Literal["aisdk", "native"] = "native"
    package: str | None = None
    url: str | None = None
    settings: JsonObject = field(default_factory=dict[str, object])


def _compatible(url: str | None = None) -> HttpProtocol:
    return HttpProtocol("perdure.llm.protocols.openai_chat.request:OPENAI_CHAT", url=url)


_ANTHROPIC: Final = HttpProtocol(
    "perdure.llm.protocols.anthropic.request:ANTHROPIC_MESSAGES",
    "x-api-key",
    "https://api.anthropic.com/v1",
    frozenset({"claude-opus-4-8"}),
    "anthropic",
)
_RESPONSES: Final = "perdure.llm.protocols.openai_responses.request:OPENAI_RESPONSES"
_AZURE: Final = "perdure.llm.protocols.openai_responses.request:AZURE_RESPONSES"
_BEDROCK: Final = HttpProtocol(
    "perdure.llm.protocols.bedrock.request:BEDROCK_CONVERSE",
    url="https://bedrock-runtime.us-east-1.amazonaws.com",
    dialect="bedrock",
    aws=True,
)
_GEMINI: Final = "perdure.llm.protocols.gemini.request:GEMINI"
_GOOGLE: Final = "https://generativelanguage.googleapis.com/v1beta"
_CLAUDE_AT_VERTEX: Final = "perdure.llm.protocols.anthropic.request:VERTEX_MESSAGES"
_VERTEX: Final = "https://aiplatform.googleapis.com"

PACKAGES: Final[Mapping[str, HttpProtocol]] = {
    "@ai-sdk/amazon-bedrock": _BEDROCK,
    "@ai-sdk/amazon-bedrock/mantle": HttpProtocol(_RESPONSES, dialect="openai"),
    "@ai-sdk/anthropic": _ANTHROPIC,
    "@ai-sdk/azure": HttpProtocol(_AZURE, "api-key", dialect="openai"),
    "@ai-sdk/cerebras": _compatible("https://api.cerebras.ai/v1"),
    "@ai-sdk/cohere": _compatible("https://api.cohere.ai/compatibility/v1"),
    "@ai-sdk/deepinfra": _compatible("https://api.deepinfra.com/v1/openai"),
    "@ai-sdk/deepseek": _compatible("https://api.deepseek.com"),
    "@ai-sdk/fireworks": _compatible("https://api.fireworks.ai/inference/v1"),
    "@ai-sdk/gateway": _compatible("https://ai-gateway.vercel.sh/v1"),
    "@ai-sdk/google": HttpProtocol(_GEMINI, "x-goog-api-key", _GOOGLE, dialect="google"),
    "@ai-sdk/google-vertex": HttpProtocol(_GEMINI, url=_VERTEX, dialect="google", vertex="google"),
    "@ai-sdk/google-vertex/anthropic": HttpProtocol(
        _CLAUDE_AT_VERTEX, url=_VERTEX, dialect="anthropic", vertex="anthropic"
    ),
    "@ai-sdk/groq": _compatible("https://api.groq.com/openai/v1"),
    "@ai-sdk/mistral": _compatible("https://api.mistral.ai/v1"),
    "@ai-sdk/openai": HttpProtocol(_RESPONSES, url="https://api.openai.com/v1", dialect="openai"),
    "@ai-sdk/openai-compatible": _compatible(),
    "@ai-sdk/perplexity": _compatible("https://api.perplexity.ai"),
    "@ai-sdk/togetherai": _compatible("https://api.together.xyz/v1"),
    "@ai-sdk/vercel": _compatible("https://api.v0.dev/v1"),
    "@ai-sdk/xai": _compatible("https://api.x.ai/v1"),
    "@aihubmix/ai-sdk-provider": _compatible("https://aihubmix.com/v1"),
    "@openrouter/ai-sdk-provider": _compatible("https://openrouter.ai/api/v1"),
    "venice-ai-sdk-provider": _compatible("https://api.venice.ai/api/v1"),
}
"""Package of an `aisdk` provider -> its wire protocol."""

NATIVE: Final = _compatible()
"""The protocol of a `native` provider, which all common self-hosted servers support."""


def transport_of(api: Api) -> HttpProtocol | Unreachable:
    """The transport of a model with this api, or why it cannot be called."""
    protocol = NATIVE if api.type == "native" else PACKAGES.get(api.package or "")
    if protocol is None:
        return Unreachable(f"the package {api.package!r} is not supported here")
    url = api.url or protocol.url
    if url is None:
        return Unreachable("its `api.url` is not set")
    if "${" in url:
        name = url.partition("${")[2].partition("}")[0]
        return Unreachable(f"its address needs the environment variable {name}, which is not set")
    if keys.origin_of(url) is None:
        return Unreachable("its `api.url` is not an http or https address")
    return protocol
