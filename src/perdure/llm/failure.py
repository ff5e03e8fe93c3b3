"""A provider's refusal, from status, headers and body to one LLMError.

Pure. What comes out may be stored for good and shown to everyone who reads the Session, so it is
bounded and secrets are taken out before anything is cut. The kind of a failure is decided in
llm.classification.

Invariant: no credential of the route and nothing that looks like one is in a message.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from perdure.llm.classification import ErrorDetail
from perdure.llm.error import LLMError
from perdure.schema import codec, redaction
from perdure.schema.codec import JsonValue

BODY_BYTES_MAX: Final = 16 * 1024
MESSAGE_CHARS_MAX: Final = 500
RETRY_AFTER_MILLIS_MAX: Final = 24 * 60 * 60 * 1000

_HTML_TITLE: Final = re.compile(r"<title[^>]{0,200}>([^<]{1,300})", re.IGNORECASE)

_TOLD: Final = re.compile(
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
    text = clean(detail.text, secrets)
    wait = _retry_after_millis(headers, now_millis)
    if wait is None:
        wait = _told_millis(body)
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


def clean(text: str, secrets: Iterable[str]) -> str:
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


def _told_millis(body: bytes) -> int | None:
    """When to come back, where only the body says so."""
    told = _TOLD.search(body.decode(errors="replace"))
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
