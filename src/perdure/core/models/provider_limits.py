"""Limits of a provider: how much all Sessions of one store together may ask of it.

The configuration sets them, because few providers tell. store.tables.provider_request_table counts
the requests, runtime.ops.provider_slots waits for a slot.

Invariant: a request that is larger than the limit by itself is sent when no other counts.
"""

from collections.abc import Sequence
from typing import Final

from perdure.core import limits
from perdure.schema.value import Value

WINDOW_MILLIS: Final = 60_000


class ProviderLimits(Value, kw_only=True):
    concurrent: int | None = None
    """Requests at once."""
    requests: int | None = None
    """Requests that begin in a minute."""
    tokens: int | None = None
    """Tokens of requests and answers in a minute."""


NO_LIMITS: Final = ProviderLimits()


class ProviderUse(Value, kw_only=True):
    """A request that is in progress, or ended in the last minute."""

    begun: int
    ended: int | None
    """None while it is in progress."""
    tokens: int


def wait_millis(
    uses: Sequence[ProviderUse], allowed: ProviderLimits, *, tokens: int, now: int
) -> int:
    """How long a request of so many tokens has to wait; 0 if it may be sent now.

    A request in progress may end at any time, so it is looked at again soon.
    """
    running = sum(use.ended is None for use in uses)
    waits = [0]
    if allowed.concurrent is not None and running >= allowed.concurrent:
        waits.append(round(limits.SLOT_LOOK_SECONDS * 1000))
    if allowed.requests is not None:
        begun = sorted(use.begun for use in uses if use.begun > now - WINDOW_MILLIS)
        if len(begun) >= allowed.requests:
            waits.append(begun[-allowed.requests] + WINDOW_MILLIS - now)
    if allowed.tokens is not None:
        waits.append(_tokens_wait(uses, allowed.tokens, tokens=tokens, now=now))
    return max(waits)


def _tokens_wait(uses: Sequence[ProviderUse], most: int, *, tokens: int, now: int) -> int:
    counted = [(_leaves(use, now), use.tokens) for use in uses]
    used = sum(count for leaves, count in counted if leaves > now)
    for leaves, count in sorted(counted):
        if used == 0 or used + tokens <= most:
            break
        if leaves > now:
            used -= count
            if used == 0 or used + tokens <= most:
                return leaves - now
    return 0


def _leaves(use: ProviderUse, now: int) -> int:
    """When its tokens no longer count: a minute after its end, or at the earliest from now."""
    return (now if use.ended is None else use.ended) + WINDOW_MILLIS
