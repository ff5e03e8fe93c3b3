"""A provider's refusal, from status, headers and body to one LLMError.

Pure. What comes out may be stored for good and shown to everyone who reads the Session, so it is
bounded and secrets are taken out before anything is cut. Deciding to try again is done elsewhere.

Invariant: no credential of the route and nothing that looks like one is in a message.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from perdure.llm.error import LLMError, Reason
from perdure.schema import codec
from perdure.schema.codec import JsonValue
from perdure.schema.value import Value

BODY_BYTES_MAX: Final = 16 * 1024
MESSAGE_CHARS_MAX: Final = 500
RETRY_AFTER_MILLIS_MAX: Final = 24 * 60 * 60 * 1000
_SECRET_CHARS_MIN: Final = 4
_REDACTED: Final = "[redacted]"


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
    r"rate[ _-]?limit", r"too many requests", r"per (minute|second|day)", r"\btpm\b", r"throttl"
)
_QUOTA: Final = _any_of(
    r"insufficient[ _](quota|balance|funds|credits?)",
    r"(exceeded|over) your (current )?quota",
    r"quota[ _]exceeded",
    r"credit balance",
    r"out of credits?",
    r"billing",
    r"payment required",
)
_POLICY: Final = _any_of(
    r"content[ _-]?(policy|filter|management)", r"safety", r"moderation", r"responsible[ _]?ai"
)
_TRANSIENT: Final = _any_of(
    r"server_error", r"internal", r"overloaded", r"unavailable", r"timed? ?out", r"\b(429|5\d\d)\b"
)
_HTML_TITLE: Final = re.compile(r"<title[^>]{0,200}>([^<]{1,300})", re.IGNORECASE)

_SECRET_FIELD: Final = (
    r"(?:proxy-)?authorization|(?:x-)?api[-_]?key|x-goog-api-key|access[-_]?token|refresh[-_]?token"
    r"|auth[-_]?token|client[-_]?secret|secret|password|passwd|cookie|credential|token|key|signature"
)
_SECRET_NAME: Final = re.compile(rf"(?:[a-z0-9]+[-_])*(?:{_SECRET_FIELD})", re.IGNORECASE)
_SECRET_SHAPES: Final = (
    # "field": "value", in plain and in escaped JSON, before anything can break the quotes.
    re.compile(rf'((?:{_SECRET_FIELD})\\?"\s{{0,4}}:\s{{0,4}}\\?")[^"\\]+', re.IGNORECASE),
    re.compile(r"\b((?:Bearer|Basic)\s{1,4})[^\s\"',;]+", re.IGNORECASE),
    re.compile(rf"\b((?:{_SECRET_FIELD})\s{{0,4}}[=:]\s{{0,4}})[^\s\"'&,;\[]+", re.IGNORECASE),
    re.compile(r"(://)[^\s/@]{1,400}(?=@)"),
    re.compile(r"()\b(?:sk|pk|rk|gsk|xai|hf|ghp|gho|ghs|glpat|xox[abprs])[-_][\w*.-]{6,}"),
    re.compile(r"()\b(?:AKIA|ASIA|AIza)[\w-]{10,}"),
    re.compile(r"()\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"),
)


class ErrorDetail(Value):
    """What an error object says: text for a person, and the provider's own code and type."""

    text: str
    code: str = ""

    @property
    def overflow(self) -> bool:
        said = f"{self.code} {self.text}"
        return _OVERFLOW.search(said) is not None and _RATE_LIMIT.search(said) is None

    @property
    def retryable(self) -> bool:
        said = f"{self.code} {self.text}"
        if self.overflow or _QUOTA.search(said):
            return False
        return _RATE_LIMIT.search(said) is not None or _TRANSIENT.search(said) is not None


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
    said = f"{detail.code} {detail.text}"
    reason = _reason(status, said)
    text = clean(detail.text, secrets)
    return LLMError(
        reason,
        f"The provider answered HTTP {status}: {text}"
        if text
        else f"The provider answered HTTP {status}",
        status=status,
        overflow=reason == "invalid-request" and _is_overflow(status, detail),
        retry_after_ms=_retry_after_millis(headers, now_millis),
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


def clean(text: str, secrets: Iterable[str]) -> str:
    """One bounded line of `text` without secrets."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    line = redact(line, secrets)
    return line if len(line) <= MESSAGE_CHARS_MAX else f"{line[: MESSAGE_CHARS_MAX - 1]}…"


def redact(text: str, secrets: Iterable[str]) -> str:
    """Take out the given secrets and whatever has the shape of one."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SECRET_CHARS_MIN:
            text = text.replace(secret, _REDACTED)
    for shape in _SECRET_SHAPES:
        text = shape.sub(rf"\1{_REDACTED}", text)
    return text


def carries_secret(header: str) -> bool:
    """Whether a header of this name is expected to hold a credential."""
    return _SECRET_NAME.fullmatch(header) is not None


def _reason(status: int, said: str) -> Reason:
    if status == 401:
        return "authentication"
    if status == 402:
        return "quota-exceeded"
    if status == 429:
        return "quota-exceeded" if _QUOTA.search(said) else "rate-limit"
    if status == 408 or status >= 500:
        return "provider-internal"
    if status >= 400 and _POLICY.search(said):
        return "content-policy"
    if status == 403:
        return "authentication"
    return "invalid-request" if status >= 400 else "unknown"


def _is_overflow(status: int, detail: ErrorDetail) -> bool:
    # A proxy's own size limit answers 413 with a page of text; a model's says nothing or says why.
    return detail.overflow or (status == 413 and not detail.text)


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
