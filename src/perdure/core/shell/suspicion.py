"""What a command may run besides what its words show, so that rules about that are not passed by.

A program that is not known may run any of its arguments: `docker run x rm y`, `strange --with=rm`.
Options before a verb hide the verb: `git -C x push`. A rule that denies one of these commands, or
asks about it, makes the whole command ask. They allow nothing.

Invariant: the number of commands grows no faster than the number of words.
"""

import posixpath
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from perdure.core.shell.harmless_program import harmless_name
from perdure.core.shell.word import Word, render_words
from perdure.core.shell.wrapper import WRAPPER_NAMES
from perdure.lazy_pattern import lazy_pattern

_WORDS_MAX: Final = 6
"""As many words of a suspected command are compared with rules."""
_ENDS: Final = lazy_pattern(r"[;|&\n(){}`$'\"]")
_VALUED: Final = lazy_pattern(r"--[^=]+=")
_ATTACHED: Final = lazy_pattern(r"-[^-]")
_SETTING: Final = lazy_pattern(r"[A-Za-z_]\w*\+?=")
_OPTIONS: Final = ("-", "+")
_RUN_NO_ARGUMENT_TEXT: Final = "chgrp chmod chown cp curl git ln mkdir mv printf rm rmdir tee touch"
_RUN_NO_ARGUMENT: Final = frozenset(_RUN_NO_ARGUMENT_TEXT.split())
"""Programs that are not harmless and still run none of their arguments, except by options and
verbs that core.shell.program_code knows."""

_WRITE_NO_COPY: Final = frozenset(
    {"cc", "chmod", "clang", "clang++", "g++", "gcc", "go", "javac", "make", "rustc", "tsc"}
)
"""Programs that write none of their input as it is: compilers, and those that write no file."""


def other_names(words: Sequence[Word]) -> Iterator[str]:
    """The command with the other names of its program: without its path, and in small letters."""
    name = words[0].literal or ""
    rest = render_words(words).removeprefix(render_words(words[:1]))
    short = posixpath.basename(name)
    for other in (short, short.lower()):
        if other != name:
            yield f"{render_words((Word(other, other),))}{rest}"


def suspected_commands(words: Sequence[Word]) -> tuple[str, ...]:
    """The commands that these words may stand for or run."""
    values = [word.literal for word in words if word.literal is not None]
    if len(values) < len(words) or harmless_name(values) is not None:
        return ()
    name = posixpath.basename(values[0])
    found: dict[str, None] = {}
    verbs = list(takewhile(lambda value: not value.startswith(_OPTIONS), values[1:]))
    for at in range(len(verbs) + 2, len(values)):
        found[_render([name, *verbs, *values[at : at + _WORDS_MAX]])] = None
    for at, value in enumerate(values[1:], start=1):
        if name not in _RUN_NO_ARGUMENT or _VALUED.match(value):
            found.update((form, None) for form in _run_from(values[at : at + _WORDS_MAX]))
    return tuple(found)


def named_files(words: Sequence[Word]) -> frozenset[str]:
    """The last parts of the names of all files that a command may write."""
    values = [word.literal or "" for word in words]
    if values[0] in _WRITE_NO_COPY or harmless_name(values) is not None:
        return frozenset()
    texts = (text for word in values[1:] for text in (word, word.rpartition("=")[2]))
    return frozenset(posixpath.basename(text) for text in texts if text)


def _run_from(values: Sequence[str]) -> Iterator[str]:
    """What a program may run that takes its first value for a program, or for the text of some."""
    given = values[0]
    attached = given[2:] if _ATTACHED.match(given) else ""
    for text in (given, given.partition("=")[2], attached):
        pieces = [words for piece in _ENDS.split(text) if (words := piece.split())]
        for words in pieces:
            rest = values[1:] if len(pieces) == len(words) == 1 else ()
            for command in _started_by(words):
                yield _render([posixpath.basename(command[0]).lower(), *command[1:], *rest])


def _started_by(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """A command in a text, and what it starts if variables or a wrapper precede that."""
    for at, word in enumerate(words):
        yield words[at : at + _WORDS_MAX]
        if not _SETTING.match(word) and words[0] not in WRAPPER_NAMES:
            return


def _render(values: Sequence[str]) -> str:
    return render_words([Word(value, value) for value in values[:_WORDS_MAX]])
