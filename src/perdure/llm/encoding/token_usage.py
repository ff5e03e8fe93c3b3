"""Token counts in the spellings of OpenAI and of the servers that resemble it.

Names differ, and so does what a count includes: with most servers the completion includes the
reasoning and the prompt the cache, with some neither does. The total tells which. Sources: OpenAI
(`*_details`, `cache_write_tokens`), DeepSeek (`prompt_cache_hit_tokens`), Moonshot
(`cached_tokens`), xAI (reasoning beside the completion), LiteLLM and Model Studio
(`cache_creation_input_tokens`); their API references.

Invariant: the parts of a Usage do not overlap, and each reported token is in one of them.
"""

from typing import Final

import msgspec

from perdure.llm.encoding import shared
from perdure.llm.event import Usage
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue

TOKENS_MAX: Final = 2**53

_PROMPT: Final = ("prompt_tokens", "input_tokens")
_COMPLETION: Final = ("completion_tokens", "output_tokens")
_PROMPT_DETAILS: Final = ("prompt_tokens_details", "input_tokens_details")
_COMPLETION_DETAILS: Final = ("completion_tokens_details", "output_tokens_details")
_CACHE_READ: Final = (
    "cached_tokens",
    "prompt_cache_hit_tokens",
    "cache_read_tokens",
    "cache_read_input_tokens",
)
_CACHE_WRITE: Final = (
    "cache_write_tokens",
    "cache_creation_tokens",
    "cache_creation_input_tokens",
    "cache_write_input_tokens",
)
_REASONING: Final = ("reasoning_tokens",)


def read(raw: bytes) -> Usage | None:
    """The usage in a JSON object of counts; None if there is none, because it must not fail a turn.

    Without a total, counts that do not fit into another are cut down to it, except reasoning, which
    then stands beside the completion.
    """
    try:
        counts = codec.decode_any(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not shared.is_object(counts):
        return None
    prompt, completion = _find(_PROMPT, counts), _find(_COMPLETION, counts)
    if prompt is None and completion is None:
        return None
    prompt_details = _objects(_PROMPT_DETAILS, counts)
    return _split(
        prompt or 0,
        completion or 0,
        total=_find(("total_tokens",), counts),
        reasoning=_find(_REASONING, *_objects(_COMPLETION_DETAILS, counts), counts) or 0,
        cache_read=_find(_CACHE_READ, *prompt_details, counts) or 0,
        cache_write=_find(_CACHE_WRITE, *prompt_details, counts) or 0,
    )


def merge(before: Usage | None, after: Usage | None) -> Usage | None:
    """The later counts, which are totals; counts of nothing do not replace what was counted."""
    return before if after is None or (before is not None and after == Usage()) else after


def _split(
    prompt: int,
    completion: int,
    *,
    total: int | None,
    reasoning: int,
    cache_read: int,
    cache_write: int,
) -> Usage:
    # Tokens of the total that are neither in the prompt nor in the completion.
    apart = 0 if total is None else max(0, total - prompt - completion)
    cached = cache_read + cache_write
    if cached and apart in (cached, cached + reasoning):
        prompt += cached
        apart -= cached
    if total is None and reasoning > completion:
        apart = reasoning
    # What is still apart was thought, also where it is not counted as reasoning.
    inside = min(max(0, reasoning - apart), completion)
    cache_read = min(cache_read, prompt)
    cache_write = min(cache_write, prompt - cache_read)
    return Usage(
        input=prompt - cache_read - cache_write,
        output=completion - inside,
        reasoning=inside + apart,
        cache_read=cache_read,
        cache_write=cache_write,
    )


def _objects(names: tuple[str, ...], counts: JsonObject) -> list[JsonObject]:
    found = (counts.get(name) for name in names)
    return [value for value in found if shared.is_object(value)]


def _find(names: tuple[str, ...], *places: JsonObject) -> int | None:
    """The largest count of any of these names; they are spellings of one count."""
    values = [place[name] for place in places for name in names if name in place]
    if not values:
        return None
    return max((count for count in map(_count, values) if count is not None), default=None)


def _count(value: JsonValue) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(max(0, min(value, TOKENS_MAX)))
