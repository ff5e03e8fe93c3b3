"""What kind of failure a provider tells of, by HTTP status and by its own words.

The words decide where providers share a status: a spent quota comes as 429, a balance that is too
low as 400, an overflow as anything. Without a status (an error inside a stream) they decide alone.
Pure. What is done about a kind is decided in core.retry.

Invariant: every pair of status and words has exactly one kind.
"""

import re
from typing import Final

from perdure.llm.error import Reason
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
