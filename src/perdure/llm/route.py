"""A route to a model: wire protocol, URL and credential."""

from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import field

from perdure.llm.encoding.wire_protocol import ModelFacts, WireProtocol
from perdure.llm.request import GenerationControls
from perdure.net.transport import HttpRequest
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

ToolCallMode = Literal["native", "printed", "constrained"]
"""How a model is offered tools, and how its calls are read; see core.models.tool_call_mode."""


class Credential(Value):
    """A secret and the kind of header that carries it. Its repr omits the secret."""

    value: str
    scheme: Literal["bearer", "x-api-key", "api-key", "x-goog-api-key"] = "bearer"

    def header(self) -> tuple[str, str]:
        if self.scheme == "bearer":
            return "authorization", f"Bearer {self.value}"
        return self.scheme, self.value

    def __repr__(self) -> str:
        return f"Credential(scheme={self.scheme!r})"


class Route(Value, kw_only=True):
    protocol: WireProtocol
    base_url: str
    model: ModelFacts
    credential: Credential | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: JsonObject = field(default_factory=dict[str, object])
    """Compatibility fields merged over the encoded body; never the protocol's own fields."""
    removed: frozenset[str] = frozenset()
    """Names of fields that the encoded body must not have, as `topP` or as `top_p`."""
    generation: GenerationControls = field(default_factory=GenerationControls)
    options: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Namespace -> Model Request Options; those of the request override them."""
    sign: Callable[[HttpRequest], HttpRequest] | None = None
    """Signs the request, for providers that need more than a credential header."""
    tool_calls: ToolCallMode = "native"
    """Modes other than native work only with Chat Completions."""
