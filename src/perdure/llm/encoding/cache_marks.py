"""Cache marks: where a request tells its provider what to keep for the next one.

Providers keep the whole request up to a mark, and read it from there if a later request begins in
the same way. So the end of each request is marked, which in a loop of tools is the last result.
The end of the request before is marked too: providers look for an earlier mark only some blocks
back (Anthropic: 20), and one answer may have more calls than that.

Invariant: two marks in a conversation; a mark is not part of what is compared.
"""

from collections.abc import Callable
from typing import Final

from perdure.llm.error import LLMError
from perdure.schema.codec import JsonObject

OPTION: Final = "cacheTtl"
"""The Model Request Option that sets how long providers keep what is marked: 5m or 1h."""
TAIL_SEGMENTS: Final = 3
"""Segments at the end of a conversation that may hold marks: a prompt, the answer before it, and
what that answered."""

Marker = Callable[[JsonObject], JsonObject]
"""Marks an item of the conversation at its end."""

_MARKED_ROLES: Final = ("tool", "user")


def lifetime(options: JsonObject) -> JsonObject:
    """The field that asks for a longer lifetime than the provider's default, if configured."""
    match options.get(OPTION):
        case None | "5m":
            return {}
        case "1h":
            return {"ttl": "1h"}
        case _:
            raise LLMError("invalid-request", f'The `{OPTION}` option must be "5m" or "1h"')


def cache_control(options: JsonObject) -> JsonObject:
    """The mark of Anthropic and of those that pass it on."""
    return {"cache_control": {"type": "ephemeral"} | lifetime(options)}


def mark_ends(items: list[JsonObject], mark: Marker) -> list[JsonObject]:
    """The last items of a conversation, with marks at the ends of this request and the last."""
    marked = list(items)
    for at in _ends(items):
        marked[at] = mark(marked[at])
    return marked


def _ends(items: list[JsonObject]) -> list[int]:
    """Where this request ends, and where the one ended that the last answer is for."""
    ends: list[int] = []
    searching = True
    for at in range(len(items) - 1, -1, -1):
        role = items[at]["role"]
        if role == "assistant":
            searching = True
        elif searching and role in _MARKED_ROLES:
            ends.append(at)
            searching = False
    return ends[:2]
