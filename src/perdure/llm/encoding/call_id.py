"""Ids of tool calls. Providers count them anew in each answer, repeat them or leave them out.

Which ids are a provider's own is each wire protocol's knowledge. Ids that were stored are never
changed; what is made here for a request is made again, the same, for the next one.

Invariant: no two calls of an answer have one id, and no two of a conversation where that counts.
"""

import re
from collections.abc import Collection
from hashlib import blake2b

from perdure.llm.message import Segment
from perdure.schema import codec


def free_id(given: str | None, taken: Collection[str], number: int, *, prefix: str = "call") -> str:
    """The id that a call came with; or one that is counted, from `number` on."""
    if given and given not in taken:
        return given
    while (counted := f"{prefix}_{number}") in taken:
        number += 1
    return counted


def unique_ids(run: Segment, own: re.Pattern[str]) -> dict[str, str]:
    """Ids of our calls in an answer -> ids that are unique in the whole conversation.

    Those that match `own` are. Other models often count theirs anew in each answer, so theirs are
    made from all that the run holds.
    """
    calls = [call.id for call in run.calls()]
    foreign = [call for call in calls if not own.fullmatch(call)]
    seed = blake2b(codec.encode(run)).digest() if foreign else b""
    made = {call: _derive_id(seed, call) for call in foreign}
    return {call: made.get(call, call) for call in calls}


def _derive_id(seed: bytes, call: str) -> str:
    return f"call_{blake2b(seed + codec.encode(call), digest_size=12).hexdigest()}"
