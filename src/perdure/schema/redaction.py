"""Removes secrets from text that will be stored, shown or logged.

Known secrets are removed by value, others by their form: fields with telling names, credentials
of HTTP, URLs with a password, private keys, tokens of well-known services (`secret_forms`). It
rather removes too much. One pass, linear in the text, which may be hostile.
"""

import re
from collections.abc import Iterable
from typing import Final

from perdure.schema import secret_forms

_SECRET_CHARS_MIN: Final = 4
_REDACTED: Final = "[redacted]"

_SUSPECT: Final = re.compile(
    # Everything up to the end of the key, or of a text that was cut before it.
    r"(?P<key>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)"
    r"(?:-----END [A-Z0-9 ]{0,40}-----|\Z))"
    r"|(?P<url>(?<=://)[^\s/@]{1,400}(?=@))"
    r"|(?P<hook>(?<=hooks\.slack\.com/services/)[\w/-]++"
    r"|(?<=discord\.com/api/webhooks/)[\w/-]++)"
    r"|(?P<scheme>(?<![\w-])(?i:bearer|basic|digest|negotiate|apikey|aws4-hmac-sha256)\s{1,4}"
    r"(?=[^\s\"',;]{8}))"
    # A name, and what stands between it and its value: `=`, `": "`, `>`, a blank after `--name`.
    r"|(?P<field>(?<![\w.-])(?:(?P<flag>--)?(?P<name>[A-Za-z][\w.-]{0,99}+)"
    r"(?:(?:\\?[\"'])?\s{0,4}(?:=>|:=|=|:|>)\s{0,4}|(?(flag)\s{1,4}|(?!))))(?=\S))"
    rf"|(?P<token>{secret_forms.TOKEN})"
)
_VALUE: Final = re.compile(
    r"\\\"(?:[^\"\\]++|\\(?!\"))*+"  # in JSON inside of JSON
    r"|\"(?:[^\"\\]++|\\.)*+"
    r"|'(?:[^'\\]++|\\.)*+"
    r"|(?:(?i:bearer|basic|digest|token|negotiate|apikey|aws4-hmac-sha256)\s{1,4})?"
    r"[^\s\"'&,;<>\[\](){}]++",
    re.DOTALL,
)
_LINE: Final = re.compile(r"[^\r\n\"']++")
_OPENING: Final = re.compile(r"\\?[\"']?")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Remove the given secrets and everything that looks like one."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SECRET_CHARS_MIN:
            text = text.replace(secret, _REDACTED)
    pieces: list[str] = []
    done = at = 0
    while (found := _SUSPECT.search(text, at)) is not None:
        start, at = _secret_span(text, found)
        if start < at:
            pieces += (text[done:start], _REDACTED)
            done = at
    return "".join((*pieces, text[done:])) if pieces else text


def _secret_span(text: str, found: re.Match[str]) -> tuple[int, int]:
    """Where the secret is; an empty span at the place to go on if there is none."""
    match found.lastgroup:
        case "scheme":
            return _value_span(_VALUE, text, found.end())
        case "field":
            name = found["name"]
            if not secret_forms.is_secret_name(name):
                return found.end(), found.end()
            # A cookie has several values, up to the end of its line.
            is_cookie = name.lower().endswith("cookie")
            return _value_span(_LINE if is_cookie else _VALUE, text, found.end())
        case _:
            return found.span()


def _value_span(pattern: re.Pattern[str], text: str, at: int) -> tuple[int, int]:
    value = pattern.match(text, at)
    if value is None or text.startswith(_REDACTED, at):
        return at, at
    opening = _OPENING.match(value[0])
    assert opening is not None
    return value.start() + opening.end(), value.end()
