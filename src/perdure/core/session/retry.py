"""Whether a request that failed is sent again, and when.

Only while nothing of its answer was published, and only for kinds of failure that pass by
themselves. What a provider asks for is honoured, never shortened; one that asks for more than a
person would wait is not waited for. Otherwise waits double, spread so that many Sessions do not
come back together. Waiting is runtime.turn.retries.

Invariant: every kind has an end; nothing is sent again for ever.
"""

from collections.abc import Mapping
from typing import Final

from perdure.core import limits
from perdure.llm.error import LLMError, Reason
from perdure.schema.value import Value


class Retry(Value, kw_only=True):
    """A turn that waits to be sent again."""

    failed: int
    """Attempts so far."""
    due: int
    """Not before this time, in milliseconds since the epoch."""
    delay: int
    """How long the whole wait is, in milliseconds."""
    step: int
    message: str
    """Why the last attempt failed."""


class RetryLimits(Value):
    attempts_max: int
    first_seconds: float


_OVERLOADED: Final = RetryLimits(
    limits.RETRY_CROWDED_ATTEMPTS_MAX, limits.RETRY_CROWDED_SECONDS_FIRST
)
_BROKEN: Final = RetryLimits(limits.RETRY_ATTEMPTS_MAX, limits.RETRY_SECONDS_FIRST)
RETRY_LIMITS: Final[Mapping[Reason, RetryLimits]] = {
    "rate-limit": _OVERLOADED,
    "overload": _OVERLOADED,
    "provider-internal": _BROKEN,
    "transport": _BROKEN,
}
"""By kind of failure. What is not here does not pass by itself."""


def remaining_seconds(retry: Retry, *, now: int) -> float:
    """How long to wait still. A clock that was set back must not make it wait for years."""
    return min(max(retry.due - now, 0), retry.delay) / 1000


def delay_seconds(error: LLMError, *, failed: int, chance: float) -> float | None:
    """How long to wait after the `failed`-th attempt; None: it was the last.

    `chance` is drawn from [0, 1).
    """
    patience = RETRY_LIMITS.get(error.reason)
    if patience is None or failed >= patience.attempts_max:
        return None
    if error.retry_after_ms is not None:
        told = error.retry_after_ms / 1000
        return told if told <= limits.RETRY_TOLD_SECONDS_MAX else None
    doubled = patience.first_seconds * 2 ** (failed - 1)
    spread = 1 + limits.RETRY_SPREAD * (2 * chance - 1)
    return min(doubled, limits.RETRY_SECONDS_MAX) * spread


def failure_message(error: LLMError) -> str:
    """What a step that failed for good says, with the wait that was too long for us."""
    told = (error.retry_after_ms or 0) / 1000
    if error.reason not in RETRY_LIMITS or told <= limits.RETRY_TOLD_SECONDS_MAX:
        return error.message
    return f"{error.message} (it asks to come back in {_format_wait(told)})"


def _format_wait(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
