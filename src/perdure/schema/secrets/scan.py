"""The scan of `schema.redaction`: one expression finds what may be a secret or stand before one.

What it finds decides how to go on: a token is removed as a whole, for a field its value is looked
for. Each pass goes through the text once. A text in which something was found is scanned again
until nothing more is.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import quote

from perdure.schema.secrets import assignments, commands, names, phrases, tokens
from perdure.schema.secrets.values import REDACTED, Span

_SECRET_CHARS_MIN: Final = 4
_PASSES_MAX: Final = 8
"""A secret beside a removed one may show only when that is gone; each pass removes something."""

_SUSPECT: Final = re.compile(
    rf"(?P<key>{tokens.KEY_BLOCK})"
    r"|(?P<userinfo>(?<=//)(?:[^\s/?#@\"'<>:]{0,200}:(?![0-9]{1,5}/)[^\s\"'<>]{1,400}"
    r"|[^\s/?#\"'<>]{1,400})(?=@)|(?<=:thin:)[^\s/@]{1,80}/[^\s@]{1,200}(?=@))"
    rf"|(?P<hook>{tokens.HOOK})"
    r"|(?P<scheme>(?<![\w-])(?i:bearer|basic|digest|negotiate|apikey|ssws|aws4-hmac-sha256)"
    r"\s{1,4}(?=[^\s\"',;]{8}))"
    rf"|(?P<token>{tokens.TOKEN})"
    rf"|(?P<phrase>{phrases.PHRASE})"
    rf"|(?P<program>{commands.PROGRAM})"
    r"|(?P<option>(?<![\w.-])--?(?=[A-Za-z/]))"
    rf"|(?P<field>{assignments.FIELD})"
    rf"|(?P<element>{assignments.ELEMENT})"
)
_PLAIN_USER: Final = re.compile(r"[a-z][a-z._-]{0,19}", re.IGNORECASE)
_PLAIN_SCHEME_VALUE: Final = re.compile(r"[a-z]++(?:[-_.][a-z]++)*+[.,:;]?|[A-Z][a-z]++|\w+=")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Remove the given secrets and everything that looks like one."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SECRET_CHARS_MIN:
            text = text.replace(secret, REDACTED).replace(quote(secret, safe=""), REDACTED)
    for _ in range(_PASSES_MAX):
        before, text = text, _redact_once(text)
        if text == before:
            break
    return text


def redact_words(words: Sequence[str]) -> tuple[str, ...]:
    """Remove secrets from the words of a command, where an option and its value are two words."""
    program = commands.find_program(words[0]) if words else commands.Program()
    shown: list[str] = []
    before = ""
    for word in words:
        name, separator, secret = word.partition(program.separator)
        if word.startswith("-") or not word:
            shown.append(redact(word))
        elif before in program.options or names.is_secret_name(before):
            shown.append(REDACTED)
        elif before in program.pairs and secret:
            shown.append(f"{name}{separator}{REDACTED}")
        else:
            shown.append(redact(word))
        before = word if word.startswith("-") and "=" not in word else ""
    return tuple(shown)


def _redact_once(text: str) -> str:
    pieces: list[str] = []
    done = at = 0
    command = commands.Command(text)
    while (found := _SUSPECT.search(text, at)) is not None:
        start, end = _find_secret(text, found, command)
        if start < end:
            pieces += (text[done:start], REDACTED)
            done = end
        # An alternative that matches no characters would be found again.
        at = max(end, at + 1)
    return "".join((*pieces, text[done:])) if pieces else text


def _find_secret(text: str, found: re.Match[str], command: commands.Command) -> Span:
    """Where the secret is; an empty span at the place to go on if there is none."""
    match found.lastgroup:
        case "phrase":
            return phrases.find_after_phrase(text, found)
        case "program":
            return command.begin(found)
        case "option":
            return command.find_in_option(found.end())
        case "field":
            return assignments.find_in_field(text, found)
        case "element":
            return assignments.find_in_element(text, found)
        case "scheme":
            start, end = assignments.check(text, found.end(), "field")
            plain = _PLAIN_SCHEME_VALUE.fullmatch(text, start, end)
            return (start, end) if plain is None else (start, start)
        case "hook":
            return found.span("hooked")
        case "userinfo":
            plain = found[0].endswith(REDACTED) or _PLAIN_USER.fullmatch(found[0]) is not None
            return (found.end(), found.end()) if plain else found.span()
        case _:
            return found.span()
