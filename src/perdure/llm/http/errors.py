"""The error of an unsuccessful response: its reason, its message, and when to retry.

The message is bounded and free of secrets. What went wrong is found by error_body and classified by
error_kind.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from perdure.llm.error import LLMError
from perdure.llm.http.error_body import BODY_BYTES_MAX, detail_of_body
from perdure.schema import redaction

MESSAGE_CHARS_MAX: Final = 500
RETRY_AFTER_MILLIS_MAX: Final = 24 * 60 * 60 * 1000

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
# Error messages often quote the values of these.
_PLAIN_HEADER: Final = re.compile(r".*[-_](?:beta|title|version)", re.IGNORECASE)


def from_response(
    *,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    secrets: Iterable[str],
    now_millis: int,
) -> LLMError:
    """The error of an unsuccessful response. Header names are in lower case."""
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


def clean_message(text: str, secrets: Iterable[str]) -> str:
    """`text` as one line of limited length, without secrets."""
    text = text[:BODY_BYTES_MAX]
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    line = redaction.redact(line, secrets)
    return line if len(line) <= MESSAGE_CHARS_MAX else f"{line[: MESSAGE_CHARS_MAX - 1]}…"


def may_carry_secret(header: str) -> bool:
    """Whether a header of this name may hold a credential: any but those that never do.

    Gateways authenticate with headers of many names.
    """
    name = header.lower()
    return name not in _PLAIN_HEADERS and _PLAIN_HEADER.fullmatch(name) is None


def _retry_after_millis(headers: Mapping[str, str], now_millis: int) -> int | None:
    millis = _number(headers.get("retry-after-ms", ""))
    if millis is None:
        value = headers.get("retry-after", "").strip()
        seconds = _number(value)
        millis = _until(value, now_millis) if seconds is None else seconds * 1000
    return None if millis is None else int(max(0, min(millis, RETRY_AFTER_MILLIS_MAX)))


def _body_delay_millis(body: bytes) -> int | None:
    """The retry delay named in the body, if any."""
    delay = _RETRY_DELAY.search(body.decode(errors="replace"))
    # A daily limit gives no delay, whatever else the body says.
    if delay is None or _DAILY.search(body):
        return None
    seconds = float(delay.group(1)) * _UNITS[delay.group(2).lower()]
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
