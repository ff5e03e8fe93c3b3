"""When a provider that refuses a request says it may be sent again.

A Retry-After is the provider's own answer and comes first. Then the body decides, which names one
limit, and last the headers that describe every limit: there only the limits that are used up count.
A moment may be given as a duration, a date, seconds or milliseconds since 1970.

Invariant: a wait is never negative and never longer than WAIT_MILLIS_MAX.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

WAIT_MILLIS_MAX: Final = 31 * 24 * 60 * 60 * 1000
"""A month: plans of providers are renewed at least that often."""
_DAY_MILLIS: Final = 24 * 60 * 60 * 1000
_EPOCH_SECONDS_MIN: Final = 1_000_000_000
_EPOCH_MILLIS_MIN: Final = 100_000_000_000
_TEXT_CHARS_MAX: Final = 16 * 1024

_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": _DAY_MILLIS}
_PIECE: Final = (
    r"[0-9]{1,9}(?:\.[0-9]{1,9})? ?"
    r"(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])"
)
_PIECES: Final = re.compile(
    r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(ms|mil|s|m|h|d)[a-z]{0,10}", re.IGNORECASE | re.ASCII
)
_DURATION: Final = re.compile(rf"(?:{_PIECE} ?){{1,5}}", re.IGNORECASE | re.ASCII)
_DATE: Final = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?"
    r"(?: ?(?:Z|UTC|[+-][0-9]{2}:?[0-9]{2})\b)?"
)

# OpenAI, Groq: "Please try again in 7m26.4s". Azure OpenAI: "Please retry after 26 seconds".
_IN: Final = re.compile(
    rf"\b(?:try again|retry|resets?|available) (?:again )?(?:in|after) "
    rf"(?:about )?((?:{_PIECE}(?: and|,)? ?){{1,5}})",
    re.IGNORECASE | re.ASCII,
)
# Z.ai, in English and in Chinese (error codes 1308 and following).
_AT: Final = re.compile(rf"(?:\bresets? (?:at|on) |将在 ?)({_DATE})", re.IGNORECASE)
_BEIJING: Final = timezone(timedelta(hours=8))
"""What Z.ai means by a date without a zone."""
# Claude subscriptions: "... usage limit reached|1749924000".
_REACHED: Final = re.compile(r"limit reached\|([0-9]{10})(?![0-9])")

_FIELD: Final = re.compile(
    r"\b(retryDelay"  # google.rpc.RetryInfo
    r"|resets_in_seconds|resets_at"  # ChatGPT plans: usage_limit_reached
    r"|retry_after_seconds|retry_after_ms|retry_after"
    r"|x-ratelimit-reset"  # OpenRouter repeats headers in `metadata.headers`
    r")[\\\"' ]{1,8}:[\\\"' ]{0,8}([0-9][0-9A-Za-z:.+-]{0,39})",
    re.IGNORECASE | re.ASCII,
)
# Gemini API, rate limits: quotas for a day are renewed at midnight Pacific time. The `retryDelay`
# that comes with such a refusal is that of the limit for a minute.
_GOOGLE_DAY: Final = re.compile(r"quotaId[\\\"' ]{1,8}:[\\\"' ]{0,8}[A-Za-z]{1,80}PerDay")
_PACIFIC_MIDNIGHT_HOUR: Final = 8
"""In UTC, in winter; in summer it is an hour earlier, so this is never too early."""

_MILLIS_HEADERS: Final = ("retry-after-ms", "x-ms-retry-after-ms")  # OpenAI; Azure OpenAI
_RESET: Final = re.compile(
    r"(?:x-)?ratelimit(?:bysize)?-reset(-[a-z0-9_-]{1,40})?"  # OpenAI, Groq, Cerebras, Mistral
    r"|anthropic-ratelimit-(?:[a-z0-9]{1,20}-){0,3}reset"  # Anthropic, API and subscriptions
    r"|x-codex-(?:primary|secondary)-reset-after-seconds"  # ChatGPT plans
)


def find_wait(headers: Mapping[str, str], body: bytes, *, now_millis: int) -> int | None:
    """How long an unsuccessful response asks to wait, in milliseconds. Header names are lower case.

    None if it does not say.
    """
    found = _retry_after(headers, now_millis)
    if found is None:
        found = _in_body(body.decode(errors="replace"), now_millis)
    if found is None:
        used_up = [wait for wait in _resets(headers, now_millis) if wait is not None]
        found = max(used_up, default=None)
    return _bounded(found)


def find_wait_in_text(text: str, *, now_millis: int) -> int | None:
    """How long the message of an error asks to wait, in milliseconds; None if it does not say."""
    return _bounded(_in_text(text[:_TEXT_CHARS_MAX], now_millis))


def _bounded(millis: float | None) -> int | None:
    return None if millis is None else round(max(0, min(millis, WAIT_MILLIS_MAX)))


def _retry_after(headers: Mapping[str, str], now: int) -> float | None:
    for name in _MILLIS_HEADERS:
        millis = _number(headers.get(name, ""))
        if millis is not None:
            return millis
    return _moment(headers.get("retry-after", ""), now)


def _in_body(text: str, now: int) -> float | None:
    if _GOOGLE_DAY.search(text):
        return _until_pacific_midnight(now)
    for field in _FIELD.finditer(text):
        name, value = field.group(1).lower(), field.group(2)
        millis = _number(value) if name == "retry_after_ms" else _moment(value, now)
        if millis is not None:
            return millis
    return _in_text(text, now)


def _in_text(text: str, now: int) -> float | None:
    if said := _IN.search(text):
        return _duration(said.group(1))
    if said := _AT.search(text):
        return _until_date(said.group(1), now, zone=_BEIJING)
    if said := _REACHED.search(text):
        return float(said.group(1)) * 1000 - now
    return None


def _resets(headers: Mapping[str, str], now: int) -> Iterator[float | None]:
    """The waits of the limits that are used up."""
    for name, value in headers.items():
        if _RESET.fullmatch(name) and _is_used_up(name, headers):
            yield _moment(value, now)


def _is_used_up(reset: str, headers: Mapping[str, str]) -> bool:
    if reset.startswith("x-codex-"):
        percent = reset.replace("-reset-after-seconds", "-used-percent")
        return (_number(headers.get(percent, "")) or 0) >= 100
    if reset.startswith("anthropic-ratelimit-unified-"):
        return headers.get(reset.removesuffix("-reset") + "-status", "") == "rejected"
    remaining = headers.get(reset.replace("-reset", "-remaining", 1))
    return remaining is None or _number(remaining) == 0


def _moment(value: str, now: int) -> float | None:
    """Milliseconds until a moment: a number, a duration, or a date."""
    number = _number(value)
    if number is None:
        found = _duration(value) if _DURATION.fullmatch(value.strip()) else None
        return found if found is not None else _until_date(value.strip(), now, zone=UTC)
    if number >= _EPOCH_MILLIS_MIN:
        return number - now
    return number * 1000 - now if number >= _EPOCH_SECONDS_MIN else number * 1000


def _duration(text: str) -> float:
    return sum(
        float(number) * (1 if unit.lower() == "mil" else _UNITS[unit.lower()])
        for number, unit in _PIECES.findall(text)
    )


def _until_date(text: str, now: int, *, zone: timezone) -> float | None:
    try:
        moment = datetime.fromisoformat(text.upper().replace(" UTC", "Z"))
    except ValueError:
        try:
            moment = datetime.strptime(text, "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)
        except ValueError:
            return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    return moment.timestamp() * 1000 - now


def _until_pacific_midnight(now: int) -> float:
    midnight = _PACIFIC_MIDNIGHT_HOUR * 3_600_000
    return (midnight - now % _DAY_MILLIS) % _DAY_MILLIS


def _number(text: str) -> float | None:
    # Not float(): that accepts "nan", "infinity" and underscores.
    if re.fullmatch(r"[0-9]{1,16}(\.[0-9]{0,9})?", text.strip(), re.ASCII) is None:
        return None
    return float(text)
