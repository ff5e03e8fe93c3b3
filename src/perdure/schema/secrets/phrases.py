"""Secrets without a sign between name and value: password files, SQL, directives, sentences."""

import re
from typing import Final

from perdure.schema.secrets import assignments, names, values
from perdure.schema.secrets.values import Span

PHRASE: Final = (
    # host:port:database:user:password
    r"(?P<pgpass>(?<![^\s\"'(])[^\s:\"']{1,200}:(?:\*|[0-9]{1,5}):(?:\*|[A-Za-z_][\w-]{0,63}):"
    r"[^\s:]{1,63}:)(?=(?:[^\s:\\\"']|\\++.){1,400}(?:[\s\"')]|\Z))"
    r"|(?P<prose>(?<![\w-])(?i:password|passphrase|secret|token|key)\s"
    r"(?:is|was|provided|given|used):?\s{1,2})(?=[\"'`]?[^\s\"'`]{6})"
    # .netrc, the configurations of Redis and of routers: a name, a blank, a value.
    r"|(?:(?<![\w./-])|(?<=\\[nrt]))(?P<directive>"
    r"(?:password|passwd|passphrase|secret|requirepass|masterauth)[ \t]{1,8}(?:[0-9] )?)"
    r"(?=[^\s\\\"'=:])"
    r"|(?P<sql>(?i:(?<!\w)(?:identified\s(?:with\s\w{1,40}\s)?(?:by|as)(?:\spassword)?"
    r"|(?:with|encrypted|login)\spassword|password\sfor\s\S{1,80}\s?=))\s{1,4})(?=['\"])"
    r"|(?P<sql_word>(?<![\w-])PASSWORD[ \t]{1,4})(?=')"
    # A keyword of Lisp; a variable that a command sets; a key of npm.
    r"|(?P<keyword>(?<![\w:]:)(?<=:)(?P<keyword_name>[a-z][\w-]{0,60})[ \t]{1,4})(?=\\?\")"
    r"|(?P<variable>(?<![\w-])(?:ENV|SetEnv|setenv|setx|set\s-[gUx]{1,2}|CONFIG\sSET"
    r"|config(?:ure)?\sset)\s(?P<variable_name>[A-Za-z_][\w.-]{0,100})[ \t]{1,4})(?=[^\s=])"
    r"|(?P<npm>(?<=/:)(?P<npm_name>_\w{1,40})[ \t]{1,4})(?=\S)"
    # An account before a server without a scheme: `root:secret@tcp(...)`, `a:secret@10.0.0.1`.
    r"|(?P<account>(?<![\w/:.@-])[\w.-]{1,60}:)(?=[^\s@:/\"'<>]{3,200}@(?:(?:tcp|unix|udp)\("
    r"|localhost|(?:[0-9]{1,3}\.){3}[0-9]|[\w.-]{1,100}:[0-9]{2,5}(?![0-9.])))"
)
"""What stands before a secret that is told by the words before it."""

_BLANKS: Final = r"(?:\s|\\[nrt]){1,20}"
_NETRC_BEFORE: Final = re.compile(
    rf"(?:machine|login|account|user|username){_BLANKS}[^\s\\]{{1,80}}{_BLANKS}\Z"
)
_NETRC_CHARS: Final = 120
_ACCOUNT_SECRET: Final = re.compile(r"[^\s@:/\"'<>]+")
_ALWAYS: Final = frozenset({"requirepass", "masterauth"})
_NAMED: Final = ("keyword", "variable", "npm")
_HAS_DIGIT: Final = re.compile(r"(?=[^\d]*\d)(?=[^a-zA-Z]*[a-zA-Z])")


def find_after_phrase(text: str, found: re.Match[str]) -> Span:
    """The secret after the words; an empty span at the place to go on if there is none."""
    at = found.end()
    if found["account"] is not None:
        secret = _ACCOUNT_SECRET.match(text, at)
        assert secret is not None
        return secret.span() if assignments.is_secret(secret[0]) else (at, at)
    for kind in _NAMED:
        if found[kind] is not None and names.classify(found[f"{kind}_name"]) == "none":
            return at, at
    if found["directive"] is not None and not _is_directive(text, found):
        return at, at
    start, end = assignments.check(text, at, "word")
    if found["prose"] is not None and _HAS_DIGIT.match(text[start:end]) is None:
        return at, at
    return start, end


def _is_directive(text: str, found: re.Match[str]) -> bool:
    """Whether the two words are a setting: alone on their line, or among others like them."""
    words = found["directive"].split()
    if len(words) > 1 or words[0] in _ALWAYS:
        return True
    before = text[max(0, found.start() - _NETRC_CHARS) : found.start()]
    if _NETRC_BEFORE.search(before) is not None:
        return True
    is_first = not before[max(before.rfind("\n"), before.rfind("\r")) + 1 :].strip()
    if not is_first or (len(before) == _NETRC_CHARS and "\n" not in before):
        return False
    _, end = values.find_value(text, found.end(), "word", found.end() + 400)
    return not text[end : values.find_line_end(text, end, end + 9)].strip()
