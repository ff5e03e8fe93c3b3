"""The dialects of Chat Completions providers, as data; the source of each fact stands beside it.

A provider is known by the host of its address; at an address that is not known, by its id or its
package, because it is then a proxy of that provider. `dialect` in the configuration is merged over
the table. What a dialect says is llm.encoding.chat_dialect; Chat Completions encodes by it.

Invariant: a provider that is not listed gets the smallest set of fields, which all take.
"""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from perdure.core.config_file.entries import DialectEntry
from perdure.core.credentials import keys
from perdure.lazy_pattern import lazy_pattern
from perdure.llm.encoding.chat_dialect import DEFAULT_DIALECT, ChatDialect
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value


class KnownDialect(Value, kw_only=True):
    """A provider, its dialect, and where some of its models differ."""

    ids: tuple[str, ...]
    """Ids and packages in the catalog."""
    hosts: tuple[str, ...]
    """Hosts of its addresses, which end with one of these."""
    dialect: ChatDialect
    families: tuple[tuple[re.Pattern[str], JsonObject], ...] = ()
    """Patterns of models' wire names, and the fields of the dialect that differ for them."""


_CLAUDE: Final = lazy_pattern(r"~?anthropic/claude")
_REASONING_GROK: Final = lazy_pattern(r"grok-(?:3-mini|4(?!.*non-reasoning)|[5-9]|code|build)")

# The field `stream_options` is sent where nothing is known: without it most servers count nothing,
# and those that do not know it skip it.
_COUNTED: Final = frozenset({"stream_options"})
_KEYED: Final = _COUNTED | {"prompt_cache_key"}
# OpenAI's own fields that providers with a closed request schema name as unknown.
_OPENAI_ONLY: Final = frozenset(
    {
        "logit_bias",
        "logprobs",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "store",
        "top_logprobs",
        "verbosity",
    }
)

KNOWN: Final = (
    # OpenAI, API reference "Create chat completion": prompt_cache_key, max_completion_tokens in
    # place of max_tokens, no top_k. Guide "File inputs": PDFs as file parts. The API has no field
    # for earlier reasoning.
    KnownDialect(
        ids=("openai", "azure", "azure-cognitive-services"),
        hosts=("api.openai.com", ".openai.azure.com"),
        dialect=ChatDialect(
            accepts=_KEYED,
            refuses=frozenset({"top_k"}),
            renames=(("max_tokens", "max_completion_tokens"),),
            reasoning="none",
            documents=True,
        ),
    ),
    # OpenRouter, guides "Reasoning tokens" (reasoning_details are returned whole and in order),
    # "Prompt caching" (cache_control in content parts for Claude), "PDF inputs" (file parts).
    KnownDialect(
        ids=("openrouter", "@openrouter/ai-sdk-provider"),
        hosts=("openrouter.ai",),
        dialect=ChatDialect(reasoning="reasoning_details", documents=True),
        families=((_CLAUDE, {"cache_control": True}),),
    ),
    # Groq, "OpenAI compatibility": logprobs, logit_bias and top_logprobs are answered with 400. Its
    # refusals name prompt_cache_key, top_k and both fields of reasoning as unsupported.
    KnownDialect(
        ids=("groq", "@ai-sdk/groq"),
        hosts=("api.groq.com",),
        dialect=ChatDialect(refuses=_OPENAI_ONLY | {"top_k"}, reasoning="think_text"),
    ),
    # Cerebras, API reference "Chat completions" (max_completion_tokens), "OpenAI compatibility"
    # (penalties and logit_bias are refused) and "Reasoning" (the field `reasoning` goes back). Its
    # refusals name reasoning_content and prompt_cache_key.
    KnownDialect(
        ids=("cerebras", "@ai-sdk/cerebras"),
        hosts=("api.cerebras.ai",),
        dialect=ChatDialect(
            refuses=_OPENAI_ONLY | {"frequency_penalty", "presence_penalty", "top_k"},
            renames=(("max_tokens", "max_completion_tokens"),),
            reasoning="reasoning",
        ),
    ),
    # Mistral, API reference "Chat completion": random_seed, no stream_options (the last chunk has
    # the counts anyway), unknown fields are refused as extra_forbidden. "Reasoning": thinking
    # parts. Its refusals want call ids of nine letters and digits.
    KnownDialect(
        ids=("mistral", "@ai-sdk/mistral"),
        hosts=("api.mistral.ai",),
        dialect=ChatDialect(
            accepts=frozenset(),
            refuses=_OPENAI_ONLY | {"service_tier", "stream_options", "top_k", "user"},
            renames=(("seed", "random_seed"),),
            reasoning="thinking_parts",
            short_call_ids=True,
        ),
    ),
    # DeepSeek, guide "Thinking mode": reasoning_content of every earlier answer goes back.
    KnownDialect(
        ids=("deepseek", "@ai-sdk/deepseek"),
        hosts=("api.deepseek.com",),
        dialect=ChatDialect(reasoning="reasoning_content", empty_reasoning=True),
    ),
    # Z.ai, guide "Thinking mode", preserved thinking: reasoning_content goes back unmodified.
    KnownDialect(
        ids=("zai", "zai-coding-plan", "zhipuai", "zhipuai-coding-plan"),
        hosts=("api.z.ai", "open.bigmodel.cn"),
        dialect=ChatDialect(reasoning="reasoning_content", empty_reasoning=True),
    ),
    # Moonshot, API reference "Chat": prompt_cache_key; guide "Thinking models": reasoning_content.
    KnownDialect(
        ids=("moonshotai", "moonshotai-cn"),
        hosts=("api.moonshot.ai", "api.moonshot.cn"),
        dialect=ChatDialect(accepts=_KEYED, reasoning="reasoning_content"),
    ),
    # xAI, guide "Reasoning": models that reason refuse penalties and stop.
    KnownDialect(
        ids=("xai", "@ai-sdk/xai"),
        hosts=("api.x.ai",),
        dialect=ChatDialect(),
        families=(
            (
                _REASONING_GROK,
                {"refuses": frozenset({"frequency_penalty", "presence_penalty", "stop"})},
            ),
        ),
    ),
    # NVIDIA NIM: its refusals name prompt_cache_key and other unknown fields.
    KnownDialect(
        ids=("nvidia",),
        hosts=("integrate.api.nvidia.com",),
        dialect=ChatDialect(refuses=_OPENAI_ONLY - {"logprobs", "top_logprobs"}),
    ),
    # Ollama, "OpenAI compatibility" and "Thinking": the field is `reasoning` in both directions.
    KnownDialect(
        ids=("ollama", "ollama-cloud"),
        hosts=("ollama.com",),
        dialect=ChatDialect(reasoning="reasoning"),
    ),
    # Crusoe, "Managed inference": the field is `reasoning`.
    KnownDialect(
        ids=("crusoe",),
        hosts=("api.inference.crusoecloud.com",),
        dialect=ChatDialect(reasoning="reasoning"),
    ),
)


def choose_dialect(
    model: str,
    *,
    url: str | None,
    names: Iterable[str],
    entries: Iterable[DialectEntry | UnsetType] = (),
) -> ChatDialect:
    """The dialect in which a model is asked.

    `names`: the id and the package of its provider. Later `entries` override earlier ones.
    """
    known = _find(url, frozenset(names))
    dialect = DEFAULT_DIALECT if known is None else _of_family(known, model)
    for entry in entries:
        dialect = dialect if entry is UNSET else _configured(dialect, entry)
    return dialect


def _find(url: str | None, names: frozenset[str]) -> KnownDialect | None:
    origin = keys.origin_of(url) if url else None
    host = f".{urlsplit(origin).hostname}" if origin else "."
    for known in KNOWN:
        if any(host.endswith(f".{each.lstrip('.')}") for each in known.hosts):
            return known
    return next((known for known in KNOWN if not names.isdisjoint(known.ids)), None)


def _of_family(known: KnownDialect, model: str) -> ChatDialect:
    changes: JsonObject = {}
    for pattern, differs in known.families:
        if pattern.match(model):
            changes |= differs
    return replace(known.dialect, **changes)


def _configured(dialect: ChatDialect, entry: DialectEntry) -> ChatDialect:
    """The dialect with what a configuration says; null is the default's value."""
    changes: JsonObject = {}
    for name in ("reasoning", "empty_reasoning", "documents", "cache_control", "short_call_ids"):
        value = getattr(entry, name)
        if value is not UNSET:
            changes[name] = getattr(DEFAULT_DIALECT, name) if value is None else value
    return replace(dialect, **changes).with_fields(entry.fields or {})
