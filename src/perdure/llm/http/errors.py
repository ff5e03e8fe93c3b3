"""Classifies provider errors by HTTP status and message.

The message decides if providers share a status: an exhausted quota comes as 429, a low balance as
400, an overflow as anything. Without a status (an error inside a stream) it decides alone.
core.session.retry decides what is retried; llm.http.reset_time finds when.

Invariant: every pair of status and message has exactly one reason.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from perdure.llm.error import LLMError, Reason
from perdure.llm.http import reset_time
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
# Parts that only their maker can check, and that it may refuse later: signatures and encrypted
# reasoning (Anthropic, Bedrock, Gemini, OpenAI), items that the provider no longer has (OpenAI),
# and fields of reasoning that a server does not take back (Groq, Cerebras, Mistral).
_NATIVE: Final = _any_of(
    r"invalid [`'\"]?(thought[ _]?)?signature",
    r"(corrupted|missing)[^.]{0,20} thought[ _]?signature",
    r"signature[`'\"]? (is |was )?(not valid|invalid|corrupted|expired|missing)",
    r"signature: field required",
    r"thinking[`'\"]? blocks?[^.]{0,60} cannot be modified",
    r"invalid [`'\"]?(data|encrypted_content)[`'\"]? in",
    r"invalid[_ ]encrypted[_ ]content",
    r"encrypted content[^.]{0,120} could not be (verified|decrypted|parsed)",
    r"item with id [`'\"]?\w{2,80}[`'\"]? (was )?not found",
    r"provided without its required",
    r"expected an id that begins with",
    r"reasoning(_content|_details)?[`'\")\]]{0,3} (is |are )?"
    r"(unsupported|not (supported|permitted|allowed))",
    r"(unsupported|not permitted|unknown|unrecognized|unexpected).{0,60}[`'\".]reasoning"
    r"(_content|_details)?\b",
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
    """An error object: text for a person, and the provider's code and type."""

    text: str
    code: str = ""

    @property
    def full_text(self) -> str:
        return f"{self.code} {self.text}"

    def reason(self, status: int | None = None, *, soon: bool = False) -> Reason:
        """The kind of failure. `soon`: the provider says when to retry."""
        if status is None:
            status = _status_in(self.code)
        return _by_words(self.full_text, status, soon) or _by_status(self.full_text, status)


def _by_words(message: str, status: int | None, soon: bool) -> Reason | None:
    """The reason, if the message decides over the status."""
    if status in (401, 402):
        return None
    if _QUOTA.search(message):
        # One provider also calls a limit per minute a quota, and says when to retry.
        return "rate-limit" if soon else "quota-exceeded"
    if _is_overflow(message, status):
        return "overflow"
    if status in (None, 400, 404, 422) and _NATIVE.search(message):
        return "native-part"
    if (status is None or 400 <= status < 500) and status != 429 and _POLICY.search(message):
        return "content-policy"
    if status == 400 and _KEY.search(message):
        return "authentication"
    return None


def _is_overflow(message: str, status: int | None) -> bool:
    if status == 413 and not message.strip():
        # A size limit of a proxy has a text body; that of a model has none or a reason.
        return True
    named = _OVERFLOW.search(message) is not None and _RATE_LIMIT.search(message) is None
    return named and (status is None or status >= 400) and status != 429


def _by_status(message: str, status: int | None) -> Reason:
    match status:
        case None:
            return _by_words_alone(message)
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
            return "overload" if _OVERLOAD.search(message) else "provider-internal"
        case _ if status >= 400:
            return "rate-limit" if _RATE_LIMIT.search(message) else "invalid-request"
        case _:
            return "unknown"


def _by_words_alone(message: str) -> Reason:
    for words, reason in _KINDS:
        if words.search(message):
            return reason
    return "unknown"


def _status_in(code: str) -> int | None:
    """The HTTP status in an error code inside a stream, if it names one."""
    named = _STATUS.search(code)
    return None if named is None else int(named.group())


BODY_BYTES_MAX: Final = 16 * 1024
_NESTING_MAX: Final = 16
"""How deep a message may be inside an error object."""
MESSAGE_CHARS_MAX: Final = 500
_SOON_MILLIS_MAX: Final = 10 * 60 * 1000

_HTML_TITLE: Final = re.compile(r"<title[^>]{0,200}>([^<]{1,300})", re.IGNORECASE)

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


def detail_of(value: JsonValue) -> ErrorDetail:
    """Find the message in an error object of any common shape."""
    for _ in range(_NESTING_MAX):
        match value:
            case [first, *_] | {"errors": [first, *_]} | {"detail": [first, *_]}:
                value = first
            case {"error": inner} if inner:
                value = inner
            case _:
                break
    match value:
        case str():
            return _short_detail(value)
        case {"message": str() as text} | {"msg": str() as text} | {"detail": str() as text}:
            return _short_detail(text + _place(value), _code(value))
        case _:
            return _short_detail(codec.encode(value)[:BODY_BYTES_MAX].decode(errors="replace"))


def _place(value: Mapping[str, JsonValue]) -> str:
    """Where in the request the fault is, as validators say it: `["body", "messages", 1]`."""
    match value.get("loc"):
        case [*steps] if steps and all(isinstance(step, str | int) for step in steps):
            return f": {'.'.join(map(str, steps))}"
        case _:
            return ""


def _short_detail(text: str, code: str = "") -> ErrorDetail:
    """The beginning of it, which is all that is shown: an error inside a stream may be large."""
    return ErrorDetail(text[:BODY_BYTES_MAX], code[:MESSAGE_CHARS_MAX])


def detail_of_body(body: bytes) -> ErrorDetail:
    """Find the message in a body, which may not be JSON."""
    try:
        return detail_of(codec.decode_any(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = body.decode(errors="replace").strip()
    if text.startswith("<"):
        title = _HTML_TITLE.search(text)
        return ErrorDetail(title.group(1) if title else "a page of HTML")
    return ErrorDetail(text)


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


def _code(value: Mapping[str, JsonValue]) -> str:
    named = (value.get("code"), value.get("type"), value.get("status"))
    return " ".join(str(item) for item in named if isinstance(item, str | int))
