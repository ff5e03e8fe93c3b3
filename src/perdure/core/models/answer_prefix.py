"""Which models go on with an answer that they are sent the beginning of, and in which form.

The beginning is the last message of the request, as the model's own. Some providers want it marked.
With others, and with models that are not listed, an answer that broke off is asked for once more
from the start. Each line names the page of the provider's documentation.
"""

import re
from collections.abc import Mapping
from typing import Final

from perdure.core.models.transport import Api
from perdure.lazy_pattern import lazy_pattern
from perdure.schema.codec import JsonObject

_PLAIN: Final[JsonObject] = {}
_BY_PACKAGE: Final[Mapping[str, tuple[re.Pattern[str], JsonObject]]] = {
    # Claude, "Prefill Claude's response": not from version 4.6 on.
    "@ai-sdk/anthropic": (
        lazy_pattern(r"claude-(?:3|(?:opus|sonnet|haiku)-4(?:-[0-5])?(?:-\d{8}|-latest)?$)"),
        _PLAIN,
    ),
    # Groq, "Assistant message prefilling".
    "@ai-sdk/groq": (lazy_pattern(r"."), _PLAIN),
    # Mistral, "Prefix: use cases".
    "@ai-sdk/mistral": (lazy_pattern(r"."), {"prefix": True}),
    # OpenRouter, "API overview: assistant prefill"; the newest Claude models refuse it.
    "@openrouter/ai-sdk-provider": (lazy_pattern(r"(?!anthropic/|openai/|google/)"), _PLAIN),
}
_BY_PROVIDER: Final[Mapping[str, JsonObject]] = {
    # Moonshot, "Partial mode".
    "moonshotai": {"partial": True},
    "moonshotai-cn": {"partial": True},
    # Model Studio, "Partial mode".
    "alibaba": {"partial": True},
    "alibaba-cn": {"partial": True},
}


def prefix_form(provider_id: str, api: Api, wire_name: str) -> JsonObject | None:
    """The fields that mark the beginning of an answer; None if the model cannot go on with one."""
    by_provider = _BY_PROVIDER.get(provider_id)
    if by_provider is not None:
        return by_provider
    models, form = _BY_PACKAGE.get(api.package or "", (None, _PLAIN))
    return form if models is not None and models.match(wire_name) else None
