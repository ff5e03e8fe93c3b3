"""The reason of a provider's error, from its words and its HTTP status.

The words decide where providers share a status: an exhausted quota comes as 429, a low balance as
400, an overflow as anything. Without a status (an error inside a stream) they decide alone. Exact
wordings of an overflow count with every status; a sentence that only looks like one counts if
nothing speaks against it. core.session.retry decides what is retried.

Invariant: every pair of status and words has exactly one reason.
"""

import re
from typing import Final

from perdure.llm.error import Reason


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_OVERFLOW: Final = _any_of(
    r"prompt[ _](is[ _]|was[ _])?too[ _]long",
    r"prompt 超长",
    r"prompt exceeds max",
    r"(input|inputs|conversation) (is|was|are) too long",
    r"context[ _]?(length|window|size|limit)[ _]?(is |was |has been )?exceed",
    r"exceed[^.]{0,60}context[ _]?(length|window|size|limit)",
    r"(exceed_|exceeds? |larger than |longer than |greater than )[^.]{0,30}context",
    r"max(imum)?[ _](model[ _])?(context|prompt|input|sequence)[ _](length|size|window) (is|of)",
    r"maximum (context|prompt) length",
    r"max_prompt_tokens|prompt_tokens_exceeded|tokens_limit_reached|max_seq_len",
    r"(the )?context the overflows|context overflow",
    r"range of input length should be",
    r"tokens in request more than max",
    r"exceeded model token limit|exceed max message tokens",
    r"inputs?`? (tokens \+|must have less than)",
    r"input tokens (exceed|[0-9 ]{1,12}cannot exceed)|prompt (cannot exceed|exceeds the max)",
    r"(prompt|input) token(s| count)[^.]{0,40}(exceeds?|only supports)",
    r"input length [0-9]{1,9} exceeds",
    r"reduce the length of (the |your )?(messages|prompt|input|either)",
    r"reduce (your prompt|the input token)",
    r"too large for model with [0-9]{1,9}",
)
"""Wordings that mean nothing else."""
_TOO_LARGE: Final = _any_of(
    r"(exceeds?|exceeded|over|beyond)( the)?( maximum)?( number of| allowed)?( input)? tokens?",
    r"context[ _](length|window|size|limit)",
    r"too many (input |prompt )?tokens",
    r"token (count|limit)[^.]{0,60}exceed",
    r"exceed[^.]{0,60}token limit",
    r"request_too_large",
    r"(request|payload)( body| entity| payload)? (is )?too large",
    r"'(messages|input)': array too long",
)
"""Wordings that may also be about a rate."""
_SENTENCE: Final = re.compile(r"[.;\n]")
_SUBJECT: Final = _any_of(r"\b(prompts?|inputs?|context|messages|conversation|sequence)\b")
_MEASURE: Final = _any_of(r"tokens?\b", r"\blength\b", r"\bsize\b", r"characters?\b", r"\blong\b")
_EXCESS: Final = _any_of(
    r"exceed",
    r"too (long|large|many)",
    r"(longer|greater|larger|more) than",
    r"cannot be over",
    r"must be (<|less|at most|below|under|no more)",
    r"only (supports|accepts) up to",
)
_OTHER_SUBJECT: Final = _any_of(
    r"\b(image|file|pdf|document|audio|video|name|description|url|uri|key|metadata|schema)",
    r"\b(output|completion|max_tokens|max_output|max_completion|budget_tokens|stop|tools?|ids?)\b",
)
_OVERSIZE: Final = re.compile(
    r"limit:? {0,2}([0-9]{1,12})[^.0-9]{0,20}requested:? {0,2}([0-9]{1,12})",
    re.IGNORECASE | re.ASCII,
)
"""A limit per minute and what one request asks for, of which nothing was used before."""
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
    r"credit balance",
    r"out of credits?|used all available credits|included credits",
    r"(usage|spending) limit",
    r"payment required",
    r"arrearage|overdue",
    r"/ ?month\b|per month",
)
_QUOTA_UNLESS_RATE: Final = _any_of(r"quota[ _]exceeded", r"billing")
"""Also said of limits that pass in a minute, which are named as such."""
_POLICY: Final = _any_of(
    r"content[ _-]?(policy|filter|management)",
    r"safety",
    r"moderation",
    r"responsible[ _]?ai",
    r"data_?inspection",
)
_OVERLOAD: Final = _any_of(
    r"overloaded",
    r"unavailable",
    r"(at|over|insufficient) capacity",
    r"high (demand|traffic)",
    r"too busy",
    r"not ready",
)
_KEY: Final = _any_of(
    r"(invalid|incorrect|missing|expired|no)[ _](x-)?api[ _-]?key",
    r"api[ _]key not (valid|found)",
    r"authentication",
    r"unauthori[sz]ed",
    r"permission[ _](denied|error)",
    r"(security|access|session) token[^.]{0,60}(invalid|expired)",
    r"(invalid|expired) (bearer|access|session) token",
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


def classify(words: str, status: int | None, *, soon: bool = False) -> Reason:
    """The reason. `soon`: the provider says when to retry."""
    return _by_words(words, status, soon) or _by_status(words, status)


def _by_words(words: str, status: int | None, soon: bool) -> Reason | None:
    """The reason, if the words decide over the status."""
    if status in (401, 402):
        return None
    is_rate = _RATE_LIMIT.search(words) is not None
    if _never_fits(words) or (not is_rate and _OVERFLOW.search(words)):
        return "overflow"
    if _QUOTA.search(words) or (not is_rate and _QUOTA_UNLESS_RATE.search(words)):
        # One provider also calls a limit per minute a quota, and says when to retry.
        return "rate-limit" if soon else "quota-exceeded"
    if not is_rate and _looks_too_large(words, status):
        return "overflow"
    if status in (None, 400, 404, 422) and _NATIVE.search(words):
        return "native-part"
    if (status is None or 400 <= status < 500) and status != 429 and _POLICY.search(words):
        return "content-policy"
    if status == 400 and _KEY.search(words):
        return "authentication"
    return None


def _never_fits(words: str) -> bool:
    """Whether one request asks for more than a limit per minute: waiting does not help."""
    said = _OVERSIZE.search(words)
    return said is not None and int(said.group(2)) > int(said.group(1))


def _looks_too_large(words: str, status: int | None) -> bool:
    if status == 429 or (status is not None and status < 400):
        return False
    if status == 413 and not words.strip():
        # A size limit of a proxy has a text body; that of a model has none or a reason.
        return True
    if _TOO_LARGE.search(words):
        return True
    if status not in (400, 413, 422):
        return False
    return any(map(_tells_excess, _SENTENCE.split(words)))


def _tells_excess(sentence: str) -> bool:
    """Whether a sentence says that the conversation has too many tokens, in any wording."""
    told = (pattern.search(sentence) for pattern in (_SUBJECT, _MEASURE, _EXCESS))
    return all(told) and _OTHER_SUBJECT.search(sentence) is None


def _by_status(words: str, status: int | None) -> Reason:
    match status:
        case None:
            return _by_words_alone(words)
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
            return "overload" if _OVERLOAD.search(words) else "provider-internal"
        case _ if status >= 400:
            return "rate-limit" if _RATE_LIMIT.search(words) else "invalid-request"
        case _:
            return "unknown"


def _by_words_alone(words: str) -> Reason:
    for pattern, reason in _KINDS:
        if pattern.search(words):
            return reason
    return "unknown"
