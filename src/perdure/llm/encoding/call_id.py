"""Ids of tool calls. Providers restart them in each answer, repeat them or omit them.

Each wire protocol knows which ids are its provider's own. Stored ids are never changed; ids made
for a request are deterministic, so the next request has the same ones.

Invariant: call ids are unique within an answer, and within a conversation if the provider needs it.
"""

import re
from collections.abc import Collection
from hashlib import blake2b

from perdure.llm.encoding import provider_json
from perdure.llm.message import Segment
from perdure.schema import codec


def free_id(given: str | None, taken: Collection[str], number: int, *, prefix: str = "call") -> str:
    """The given id if it is free, else a counted one, starting with `number`."""
    provider_json.require_few(taken, "calls")
    if given and given not in taken:
        return given
    while (counted := f"{prefix}_{number}") in taken:
        number += 1
    return counted


def unique_ids(segment: Segment, own: re.Pattern[str]) -> dict[str, str]:
    """Ids of executed calls in an answer -> ids that are unique in the whole conversation.

    Ids that match `own` already are. Other models often restart theirs in each answer, so new ones
    are derived from the content of the segment.
    """
    calls = [call.id for call in segment.calls()]
    foreign = [call for call in calls if not own.fullmatch(call)]
    seed = blake2b(codec.encode(segment)).digest() if foreign else b""
    made = {call: _derive_id(seed, call) for call in foreign}
    return {call: made.get(call, call) for call in calls}


def _derive_id(seed: bytes, call: str) -> str:
    return f"call_{blake2b(seed + codec.encode(call), digest_size=12).hexdigest()}"
