"""The error of an unsuccessful response: its reason, its message, and when to retry.

The message is bounded and free of secrets. What went wrong is found by error_body and classified by
error_kind; when to retry, by reset_time.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from perdure.llm.error import LLMError
from perdure.llm.http import reset_time
from perdure.llm.http.error_body import BODY_BYTES_MAX, detail_of_body
from perdure.schema import redaction

MESSAGE_CHARS_MAX: Final = 500
_SOON_MILLIS_MAX: Final = 10 * 60 * 1000


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
    wait = reset_time.find_wait(headers, body, now_millis=now_millis)
    return LLMError(
        detail.reason(status, soon=wait is not None and wait <= _SOON_MILLIS_MAX),
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
