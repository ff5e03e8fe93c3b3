"""Reads shell text in which every word is literal: what it shows is all that a shell will do.

The language is a small one that bash, dash, ksh and zsh read alike: simple commands of literal
words, joined by `;`, `&`, `|`, `&&`, `||` and new lines, with redirections to named files. There is
a rule for each thing that is understood, and none for the rest. Expansions, patterns, compound
commands, functions and here-documents are therefore refused, and so is what is yet to be invented.

Invariant: text that is read starts exactly the commands in its items, with exactly these words.
"""

import re
from typing import Final

from msgspec import field

from perdure.core.shell.command import Assignment, Redirection, Script, SimpleCommand
from perdure.core.shell.word import Word
from perdure.lazy_pattern import lazy_pattern
from perdure.schema.value import State

_BLANKS: Final = " \t"
# Control characters are refused everywhere: some are blanks to one shell and letters to another,
# and shells use some internally. Outside of quotes only ASCII is read, because which other
# characters are blanks depends on the locale.
_CONTROLS: Final = r"\x00-\x08\x0b-\x1f\x7f\ud800-\udfff"
_PIECE: Final = lazy_pattern(
    r"(?P<plain>(?:[A-Za-z0-9_@%+:,./=!-]|(?<=[A-Za-z0-9^~])[~^])+)"
    rf"|'(?P<raw>[^'{_CONTROLS}]*)'"
    # In some locales a backslash is the second byte of the character before it.
    rf'|"(?P<string>(?:[^"\\$`{_CONTROLS}]|(?<=[\x00-\x7f])\\[ -~])*)"'
    r"|\\(?P<escaped>[ -~])"
)
_ALONE: Final = lazy_pattern(r"(?:\{\}|\[(?=[ \t])|\])(?=[ \t\n;|&]|$)")
"""Words of characters that mean something else in a longer word."""
_WORD_END: Final = lazy_pattern(r"[ \t\n;|&]|$")
_ESCAPED_IN_STRING: Final = lazy_pattern(r'\\(["\\$`])')
_REDIRECTION: Final = lazy_pattern(r"[0-9]?(>>|>\||>|<)(?![<>&|(])[ \t]*")
_DUPLICATION: Final = lazy_pattern(r"[0-9]?[<>]&(?:[0-9]|-)(?=[ \t\n;|&]|$)")
_OPERATOR: Final = lazy_pattern(r"&&(?!&)|\|\|(?![|&])|;(?![;&])|\|(?![|&])|&(?![&>])|\n")
_COMMENT: Final = lazy_pattern(rf"#[^\n\\{_CONTROLS}]*(?=\n|$)")
_CONTINUATION: Final = lazy_pattern(r"\\\n(?![#\\])")
_ASSIGNMENT: Final = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_ENDS: Final = frozenset({";", "&", "\n"})
_RESERVED_TEXT: Final = """
    ! { } [[ ]] always case coproc do done elif else end esac fi for foreach function if in
    namespace nocorrect noglob repeat select then until while
"""
_RESERVED: Final = frozenset(_RESERVED_TEXT.split())


def read(text: str) -> Script:
    """The items of a text; it is unclear, with a reason, if any of it is not literal."""
    reading = _Reading(text)
    try:
        _read(reading)
    except _NotLiteralError as error:
        return Script(unclear=str(error))
    return Script(tuple(reading.items))


class _NotLiteralError(Exception):
    pass


class _Reading(State):
    text: str
    at: int = 0
    items: list[SimpleCommand | Assignment | Redirection] = field(
        default_factory=list[SimpleCommand | Assignment | Redirection]
    )
    words: list[Word] = field(default_factory=list[Word])
    settings: list[Assignment] = field(default_factory=list[Assignment])
    files: list[Redirection] = field(default_factory=list[Redirection])
    begun: bool = False
    """Whether the current command has any text."""
    awaited: str | None = None
    """The operator after which a command must follow."""


def _read(reading: _Reading) -> None:
    text = reading.text
    while reading.at < len(text):
        if text[reading.at] in _BLANKS:
            reading.at += 1
        elif not (_skip(reading) or _operator(reading) or _redirection(reading)):
            _add_word(reading, _word(reading))
    _end_command(reading)
    if reading.awaited is not None:
        raise _NotLiteralError(f"no command follows {reading.awaited}")


def _skip(reading: _Reading) -> bool:
    """Skip a comment, or the end of a line that is continued."""
    text, at = reading.text, reading.at
    before = text[at - 1] if at else "\n"
    found = None
    if before in f"{_BLANKS}\n":
        found = _COMMENT.match(text, at)
    if before in _BLANKS:
        found = found or _CONTINUATION.match(text, at)
    if found is not None:
        reading.at = found.end()
    return found is not None


def _operator(reading: _Reading) -> bool:
    found = _OPERATOR.match(reading.text, reading.at)
    if found is None:
        return False
    operator = found[0]
    if not reading.begun and operator != "\n":
        raise _NotLiteralError(f"no command precedes {operator}")
    _end_command(reading)
    if operator not in _ENDS:
        reading.awaited = operator
    reading.at = found.end()
    return True


def _redirection(reading: _Reading) -> bool:
    if found := _DUPLICATION.match(reading.text, reading.at):
        reading.begun, reading.at = True, found.end()
        return True
    found = _REDIRECTION.match(reading.text, reading.at)
    if found is None:
        return False
    reading.at = found.end()
    reading.begun = True
    reading.files.append(Redirection(found[1], _word(reading)))
    return True


def _word(reading: _Reading) -> Word:
    text, start = reading.text, reading.at
    if alone := _ALONE.match(text, start):
        reading.at = alone.end()
        return Word(alone[0], alone[0])
    value = ""
    while found := _PIECE.match(text, reading.at):
        value += _value(found)
        reading.at = found.end()
    if _WORD_END.match(text, reading.at) is None or reading.at == start:
        raise _NotLiteralError(_reason(text, reading.at))
    if text[start] == "=" and value != "=":
        raise _NotLiteralError("a word that begins with = means something else to some shells")
    return Word(text[start : reading.at], value)


def _value(piece: re.Match[str]) -> str:
    if piece["string"] is not None:
        return _ESCAPED_IN_STRING.sub(r"\1", piece["string"])
    return piece["plain"] or piece["raw"] or piece["escaped"] or ""


def _reason(text: str, at: int) -> str:
    char = text[at : at + 1]
    if char in ("$", "`") or (char == '"' and re.search(r"[$`]", text[at:])):
        return f"a word is only known when it runs: {text[at : at + 20]}"
    return f"the meaning of {text[at : at + 20]!r} is only known when it runs"


def _add_word(reading: _Reading, word: Word) -> None:
    reading.begun = True
    if not reading.words:
        if _ASSIGNMENT.match(word.source):
            reading.settings.append(Assignment(word.source))
            return
        if word.literal in _RESERVED:
            raise _NotLiteralError(f"commands after {word.literal} are not looked into")
    reading.words.append(word)


def _end_command(reading: _Reading) -> None:
    words = reading.words
    if words:
        brackets = [at for at, word in enumerate(words) if word.source in ("[", "]")]
        if brackets and (words[0].source != "[" or brackets != [0, len(words) - 1]):
            raise _NotLiteralError("brackets are only read around a test")
        reading.items.append(SimpleCommand(tuple(words)))
    if reading.begun:
        reading.awaited = None
    reading.items.extend((*reading.settings, *reading.files))
    reading.words, reading.settings, reading.files, reading.begun = [], [], [], False
