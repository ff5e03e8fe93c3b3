"""What kind of failure a provider tells of, by HTTP status and by its own words.

The words decide where providers share a status: a spent quota comes as 429, a balance that is too
low as 400, an overflow as anything. Without a status (an error inside a stream) they decide alone.
Pure. What is done about a kind is decided in core.session.retry.

Invariant: every pair of status and words has exactly one kind.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from perdure.llm.error import LLMError, Reason
from perdure.schema import codec, redaction
from perdure.schema.codec import JsonValue
from perdure.schema.value import Value


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_OVERFLOW: Final = _any_of(
    r"prompt[ _]is[ _]too[ _]long",
    r"prompt_too_long",
    r"input is too long",
    r"context[ _](length|window|size|limit)",
    r"maximum (context|prompt) length",
    r"(exceeds?|exceeded|over|beyond)( the)?( maximum)?( number of| allowed)?( input)? tokens?",
    r"too many (input |prompt )?tokens",
    r"token (count|limit)[^.]{0,60}exceed",
    r"exceed[^.]{0,60}token limit",
    r"reduce the length of the (messages|prompt|input)",
    r"request_too_large",
    r"request (entity |payload )?(is )?too large",
)
_RATE_LIMIT: Final = _any_of(
    r"rate[ _-]?limit",
    r"too many requests",
    r"per[ -]?(minute|second|day)",
    r"\btpm\b",
    r"throttl",
    r"resource[ _]?exhausted",
)
_QUOTA: Final = _any_of(
    r"insufficient[ _](quota|balance|funds|credits?)",
    r"(exceeded|over) your (current )?quota",
    r"quota[ _]exceeded",
    r"credit balance",
    r"out of credits?",
    r"usage limit",
    r"billing",
    r"payment required",
)
_POLICY: Final = _any_of(
    r"content[ _-]?(policy|filter|management)", r"safety", r"moderation", r"responsible[ _]?ai"
)
_OVERLOAD: Final = _any_of(
    r"overloaded", r"unavailable", r"(at|over|insufficient) capacity", r"high demand", r"too busy"
)
_KEY: Final = _any_of(
    r"(invalid|incorrect|missing|expired|no)[ _](x-)?api[ _-]?key",
    r"api[ _]key not (valid|found)",
    r"authentication",
    r"unauthori[sz]ed",
    r"permission[ _](denied|error)",
    r"(security|access) token[^.]{0,60}(invalid|expired)",
    r"invalid (bearer|access) token",
)
_INTERNAL: Final = _any_of(r"server_error", r"internal", r"api_error", r"timed? ?_?out|timeout")
_INVALID: Final = _any_of(
    r"invalid[ _](request|argument)", r"not[ _]found", r"validationexception", r"bad request"
)
_KINDS: Final[tuple[tuple[re.Pattern[str], Reason], ...]] = (
    (_RATE_LIMIT, "rate-limit"),
    (_OVERLOAD, "overload"),
    (_KEY, "authentication"),
    (_INTERNAL, "provider-internal"),
    (_INVALID, "invalid-request"),
)
_STATUS: Final = re.compile(r"\b(4\d\d|5\d\d)\b")


class ErrorDetail(Value):
    """What an error object says: text for a person, and the provider's own code and type."""

    text: str
    code: str = ""

    @property
    def said(self) -> str:
        return f"{self.code} {self.text}"

    def reason(self, status: int | None = None, *, soon: bool = False) -> Reason:
        """The kind of the failure. `soon`: the provider says when to come back."""
        if status is None:
            status = _status_in(self.code)
        return _by_words(self.said, status, soon) or _by_status(self.said, status)


def _by_words(said: str, status: int | None, soon: bool) -> Reason | None:
    """Where the words count for more than the status."""
    if status in (401, 402):
        return None
    if _QUOTA.search(said):
        # One provider calls what passes within a minute a quota too, and says when it has passed.
        return "rate-limit" if soon else "quota-exceeded"
    if _is_overflow(said, status):
        return "overflow"
    if (status is None or 400 <= status < 500) and status != 429 and _POLICY.search(said):
        return "content-policy"
    if status == 400 and _KEY.search(said):
        return "authentication"
    return None


def _is_overflow(said: str, status: int | None) -> bool:
    if status == 413 and not said.strip():
        # A proxy's own size limit answers with a page of text; a model's says nothing or says why.
        return True
    named = _OVERFLOW.search(said) is not None and _RATE_LIMIT.search(said) is None
    return named and (status is None or status >= 400) and status != 429


def _by_status(said: str, status: int | None) -> Reason:
    match status:
        case None:
            return _by_words_alone(said)
        case 401 | 403:
            return "authentication"
        case 402:
            return "quota-exceeded"
        case 429:
            return "rate-limit"
        case 503 | 529:
            return "overload"
        case 408:
            return "provider-internal"
        case _ if status >= 500:
            return "overload" if _OVERLOAD.search(said) else "provider-internal"
        case _ if status >= 400:
            return "rate-limit" if _RATE_LIMIT.search(said) else "invalid-request"
        case _:
            return "unknown"


def _by_words_alone(said: str) -> Reason:
    for words, reason in _KINDS:
        if words.search(said):
            return reason
    return "unknown"


def _status_in(code: str) -> int | None:
    """An error inside a stream often names the status that it would have had."""
    named = _STATUS.search(code)
    return None if named is None else int(named.group())


BODY_BYTES_MAX: Final = 16 * 1024
MESSAGE_CHARS_MAX: Final = 500
RETRY_AFTER_MILLIS_MAX: Final = 24 * 60 * 60 * 1000

_HTML_TITLE: Final = re.compile(r"<title[^>]{0,200}>([^<]{1,300})", re.IGNORECASE)

_RETRY_DELAY: Final = re.compile(
    r"(?:retryDelay\W{1,6}|(?:retry|try again) (?:in|after) )"
    r"([0-9]{1,6}(?:\.[0-9]{1,9})?) ?(ms|s|m)\b",
    re.IGNORECASE | re.ASCII,
)
_UNITS: Final = {"ms": 0.001, "s": 1, "m": 60}
_DAILY: Final = re.compile(rb"per[ -]?day", re.IGNORECASE)

_PLAIN_HEADERS: Final = frozenset(
    {"accept", "accept-language", "content-type", "http-referer", "origin", "referer", "user-agent"}
)
# What these switch on is often what an answer complains about.
_PLAIN_HEADER: Final = re.compile(r".*[-_](?:beta|title|version)", re.IGNORECASE)


def from_response(
    *,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    secrets: Iterable[str],
    now_millis: int,
) -> LLMError:
    """The error that a response without success stands for. Header names are in lower case."""
    detail = detail_of_body(body)
    text = clean_message(detail.text, secrets)
    wait = _retry_after_millis(headers, now_millis)
    if wait is None:
        wait = _body_delay_millis(body)
    return LLMError(
        detail.reason(status, soon=wait is not None),
        f"The provider answered HTTP {status}: {text}"
        if text
        else f"The provider answered HTTP {status}",
        status=status,
        retry_after_ms=wait,
    )


def detail_of(value: JsonValue) -> ErrorDetail:
    """Find the message in an error object, whichever of the usual shapes it has."""
    match value:
        case str():
            return ErrorDetail(value)
        case [first, *_] | {"errors": [first, *_]} | {"detail": [first, *_]}:
            return detail_of(first)
        case {"error": inner} if inner:
            return detail_of(inner)
        case {"message": str() as text} | {"msg": str() as text} | {"detail": str() as text}:
            return ErrorDetail(text, _code(value))
        case _:
            return ErrorDetail(codec.encode(value).decode())


def detail_of_body(body: bytes) -> ErrorDetail:
    """The same for a whole body, which may not be JSON at all."""
    try:
        return detail_of(codec.decode_any(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = body.decode(errors="replace").strip()
    if text.startswith("<"):
        title = _HTML_TITLE.search(text)
        return ErrorDetail(title.group(1) if title else "a page of HTML")
    return ErrorDetail(text)


def clean_message(text: str, secrets: Iterable[str]) -> str:
    """One bounded line of `text` without secrets."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    line = redaction.redact(line, secrets)
    return line if len(line) <= MESSAGE_CHARS_MAX else f"{line[: MESSAGE_CHARS_MAX - 1]}…"


def may_carry_secret(header: str) -> bool:
    """Whether a header of this name may hold a credential: any, but those that never do.

    People authenticate with gateways by headers of every name.
    """
    name = header.lower()
    return name not in _PLAIN_HEADERS and _PLAIN_HEADER.fullmatch(name) is None


def _code(value: Mapping[str, JsonValue]) -> str:
    named = (value.get("code"), value.get("type"), value.get("status"))
    return " ".join(str(item) for item in named if isinstance(item, str | int))


def _retry_after_millis(headers: Mapping[str, str], now_millis: int) -> int | None:
    millis = _number(headers.get("retry-after-ms", ""))
    if millis is None:
        value = headers.get("retry-after", "").strip()
        seconds = _number(value)
        millis = _until(value, now_millis) if seconds is None else seconds * 1000
    return None if millis is None else int(max(0, min(millis, RETRY_AFTER_MILLIS_MAX)))


def _body_delay_millis(body: bytes) -> int | None:
    """When to come back, where only the body says so."""
    told = _RETRY_DELAY.search(body.decode(errors="replace"))
    # What is said to pass within a day is no wait, whatever else the body names.
    if told is None or _DAILY.search(body):
        return None
    seconds = float(told.group(1)) * _UNITS[told.group(2).lower()]
    return int(min(seconds * 1000, RETRY_AFTER_MILLIS_MAX))


def _number(text: str) -> float | None:
    # Not float(): that accepts "nan", "infinity" and underscores.
    if re.fullmatch(r"[0-9]{1,12}(\.[0-9]{0,9})?", text.strip(), re.ASCII) is None:
        return None
    return float(text)


def _until(date: str, now_millis: int) -> float | None:
    try:
        moment = datetime.strptime(date, "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)
    except ValueError:
        return None
    return moment.timestamp() * 1000 - now_millis
