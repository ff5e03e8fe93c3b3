"""Taking secrets out of text that will be stored, shown or logged.

What is known to be a secret goes by its value, and the rest by its shape: fields that are named
like one, bearer tokens, addresses with a password, keys of the well-known forms. It errs towards
taking out too much. Linear in the text: what is looked at may be hostile.
"""

import re
from collections.abc import Iterable
from typing import Final

_SECRET_CHARS_MIN: Final = 4
_REDACTED: Final = "[redacted]"

_SECRET_FIELD: Final = (
    r"(?:proxy-)?authorization|(?:x-)?api[-_]?key|x-goog-api-key|access[-_]?token|refresh[-_]?token"
    r"|auth[-_]?token|client[-_]?secret|secret|password|passwd|cookie|credential|token|key|signature"
)
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


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Take out the given secrets and whatever has the shape of one."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SECRET_CHARS_MIN:
            text = text.replace(secret, _REDACTED)
    for shape in _SECRET_SHAPES:
        text = shape.sub(rf"\1{_REDACTED}", text)
    return text
