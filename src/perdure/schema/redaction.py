"""Removes secrets from text that will be stored, shown or logged.

Known secrets are removed by value, others by their form: fields with telling names, bearer tokens,
URLs with a password, keys of well-known forms. It rather removes too much. Linear in the text,
which may be hostile.
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
    # "field": "value", in plain and in escaped JSON, before other patterns can break the quotes.
    re.compile(rf'((?:{_SECRET_FIELD})\\?"\s{{0,4}}:\s{{0,4}}\\?")[^"\\]+', re.IGNORECASE),
    re.compile(r"\b((?:Bearer|Basic)\s{1,4})[^\s\"',;]+", re.IGNORECASE),
    re.compile(rf"\b((?:{_SECRET_FIELD})\s{{0,4}}[=:]\s{{0,4}})[^\s\"'&,;\[]+", re.IGNORECASE),
    re.compile(r"(://)[^\s/@]{1,400}(?=@)"),
    re.compile(r"()\b(?:sk|pk|rk|gsk|xai|hf|ghp|gho|ghs|glpat|xox[abprs])[-_][\w*.-]{6,}"),
    re.compile(r"()\b(?:AKIA|ASIA|AIza)[\w-]{10,}"),
    re.compile(r"()(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"),
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Remove the given secrets and everything that looks like one."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SECRET_CHARS_MIN:
            text = text.replace(secret, _REDACTED)
    for shape in _SECRET_SHAPES:
        text = shape.sub(rf"\1{_REDACTED}", text)
    return text
