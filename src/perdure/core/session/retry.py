"""Whether and when a failed request is retried.

A request is retried only while nothing of its answer was published, or as
core.request.dropped_answer says, and only for failures that can pass by themselves. A time that the
provider names is never shortened; if it is longer than the patience of the Session, the request
fails. Otherwise delays double, with jitter, so that many Sessions do not retry together. Waiting is
runtime.turn.retries.

Invariant: the waits of one request are together no longer than the patience, and without a
configured patience every kind of failure has a maximum number of attempts.
"""

from collections.abc import Mapping
from typing import Final

from perdure.core import limits
from perdure.llm.error import RENEWED, LLMError, Reason
from perdure.schema.value import Value


class Patience(Value, kw_only=True):
    """How long a request may wait in all, over all its attempts."""

    seconds: float = limits.RETRY_PATIENCE_SECONDS
    configured: bool = False
    """Whether a person chose it: then only time bounds the attempts, and not their number."""


USUAL_PATIENCE: Final = Patience()


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
    waited: int = 0
    """All waits of the request up to `due`, in milliseconds."""


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
"""By kind of failure. Other kinds are not retried, except for a quota whose renewal is known."""

_DOUBLINGS_MAX: Final = 16


def configured_patience(value: bool | float | None) -> Patience:
    """The patience that `experimental.patience` asks for: `true` means a day, else seconds."""
    if value is None or value is False:
        return USUAL_PATIENCE
    seconds = limits.RETRY_PATIENCE_LONG_SECONDS if value is True else value
    return Patience(seconds=seconds, configured=True)


def remaining_seconds(retry: Retry, *, now: int) -> float:
    """The remaining wait, bounded by the delay in case the clock was set back."""
    return min(max(retry.due - now, 0), retry.delay) / 1000


def delay_seconds(
    error: LLMError,
    *,
    failed: int,
    chance: float,
    waited: float = 0.0,
    patience: Patience = USUAL_PATIENCE,
) -> float | None:
    """The delay after the `failed`-th attempt; None if it was the last.

    `chance` is a random number from [0, 1), `waited` how long the request has waited, in seconds.
    """
    retry_limits = _limits_for(error)
    if retry_limits is None:
        return None
    tried_often = failed >= retry_limits.attempts_max
    if tried_often and not patience.configured:
        return None
    if error.retry_after_ms is not None:
        seconds = error.retry_after_ms / 1000
        # A provider that says "now" again and again would be asked without a pause.
        delay = max(seconds, limits.RETRY_SECONDS_MAX) if tried_often else seconds
    else:
        longest = limits.RETRY_LATER_SECONDS_MAX if tried_often else limits.RETRY_SECONDS_MAX
        doubled = retry_limits.first_seconds * 2 ** min(failed - 1, _DOUBLINGS_MAX)
        delay = min(doubled, longest) * (1 + limits.RETRY_SPREAD * (2 * chance - 1))
    return delay if waited + delay <= patience.seconds else None


def failure_message(error: LLMError, patience: Patience = USUAL_PATIENCE) -> str:
    """The error text of a step that failed for good, with a wait that was too long."""
    seconds = (error.retry_after_ms or 0) / 1000
    if _limits_for(error) is None or seconds <= patience.seconds:
        return error.message
    return (
        f"{error.message} (it asks to come back in {_format_wait(seconds)}, later than"
        " `experimental.patience` allows)"
    )


def _limits_for(error: LLMError) -> RetryLimits | None:
    if error.reason == RENEWED and error.retry_after_ms is not None:
        return _OVERLOADED
    return RETRY_LIMITS.get(error.reason)


def _format_wait(seconds: float) -> str:
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    if minutes < 120:
        return f"{minutes} min"
    return f"{hours} h" if hours < 72 else f"{round(hours / 24)} days"
