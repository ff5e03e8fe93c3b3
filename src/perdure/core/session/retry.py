"""Whether and when a failed request is retried.

A request is retried only while nothing of its answer was published, or as
core.request.dropped_answer says, and only for failures that can pass by themselves. A Retry-After
of the provider is never shortened; if it is too long, the request fails. Otherwise delays double,
with jitter, so that many Sessions do not retry together. Waiting is runtime.turn.retries.

Invariant: every kind of failure has a maximum number of attempts.
"""

from collections.abc import Mapping
from typing import Final

from perdure.core import limits
from perdure.llm.error import LLMError, Reason
from perdure.schema.value import Value


class Retry(Value, kw_only=True):
    """A turn that waits to be retried."""

    failed: int
    """Attempts so far."""
    due: int
    """Earliest time of the next attempt, in milliseconds since the epoch."""
    delay: int
    """How long the whole wait is, in milliseconds."""
    step: int
    message: str
    """Why the last attempt failed."""


class RetryLimits(Value):
    attempts_max: int
    first_seconds: float


_OVERLOADED: Final = RetryLimits(
    limits.RETRY_OVERLOAD_ATTEMPTS_MAX, limits.RETRY_OVERLOAD_SECONDS_FIRST
)
_BROKEN: Final = RetryLimits(limits.RETRY_ATTEMPTS_MAX, limits.RETRY_SECONDS_FIRST)
RETRY_LIMITS: Final[Mapping[Reason, RetryLimits]] = {
    "rate-limit": _OVERLOADED,
    "overload": _OVERLOADED,
    "provider-internal": _BROKEN,
    "transport": _BROKEN,
}
"""By kind of failure. Other kinds are not retried."""


def remaining_seconds(retry: Retry, *, now: int) -> float:
    """The remaining wait, bounded by the delay in case the clock was set back."""
    return min(max(retry.due - now, 0), retry.delay) / 1000


def delay_seconds(error: LLMError, *, failed: int, chance: float) -> float | None:
    """The delay after the `failed`-th attempt; None if it was the last.

    `chance` is a random number from [0, 1).
    """
    retry_limits = RETRY_LIMITS.get(error.reason)
    if retry_limits is None or failed >= retry_limits.attempts_max:
        return None
    if error.retry_after_ms is not None:
        seconds = error.retry_after_ms / 1000
        return seconds if seconds <= limits.RETRY_AFTER_SECONDS_MAX else None
    doubled = retry_limits.first_seconds * 2 ** (failed - 1)
    spread = 1 + limits.RETRY_SPREAD * (2 * chance - 1)
    return min(doubled, limits.RETRY_SECONDS_MAX) * spread


def failure_message(error: LLMError) -> str:
    """The error text of a step that failed for good, with a Retry-After that was too long."""
    seconds = (error.retry_after_ms or 0) / 1000
    if error.reason not in RETRY_LIMITS or seconds <= limits.RETRY_AFTER_SECONDS_MAX:
        return error.message
    return f"{error.message} (it asks to come back in {_format_wait(seconds)})"


def _format_wait(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
