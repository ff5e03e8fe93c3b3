"""Which built-in commands of shells do no more than their words say, and with which words.

Built-ins can evaluate a word again (`eval`, `test -v`, `printf -v`), or change what the shell makes
of all later words (`alias`, `hash`, `export`). There is a rule for each that is understood. What
arithmetic in ksh or zsh would evaluate is refused for bash too, so that the rules are the same.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from perdure.core.shell.word import Word
from perdure.lazy_pattern import lazy_pattern

_ANY: Final = lazy_pattern(r".*", re.DOTALL)
_NUMBER: Final = lazy_pattern(r"[0-9]*")
_READ: Final[Mapping[str, re.Pattern[str]]] = {
    ":": _ANY,
    "break": _NUMBER,
    "continue": _NUMBER,
    "echo": _ANY,
    "exit": _NUMBER,
    "false": _ANY,
    "kill": lazy_pattern(r"[\w% -]*"),
    "pwd": lazy_pattern(r"(?:-[LP])?"),
    "return": _NUMBER,
    # Others change how words are read (`-k`, `-o posix`) or print an expansion (`-x`).
    "set": lazy_pattern(r"[-+][eu]+|[-+][eu]*o pipefail"),
    "true": _ANY,
    "type": lazy_pattern(r"[\w./ -]*"),
    "umask": lazy_pattern(r"[0-7]*"),
    "wait": lazy_pattern(r"[0-9%]*"),
}
"""What the arguments are, joined by blanks."""

_NOT_READ_TEXT: Final = """
    . alarm alias autoload bg bind bindkey caller chdir comparguments compcall compctl compgen
    complete compopt compound coproc declare dirs disable disown emulate enable enum eval export fc
    fg float functions getln getopts global hash help hist history integer jobs let limit local log
    login logout mapfile nameref newgrp popd print private pushln r read readarray readonly redirect
    rehash sched setopt shift shopt source stop suspend trap ttyctl typeset ulimit unalias
    unfunction unhash unlimit unset unsetopt vared whence where zargs zcalc zcompile zcurses
    zf_chmod zf_ln zf_mkdir zf_mv zf_rm zformat zftp zle zmodload zmv zparseopts zprof zpty
    zregexparse zselect zsocket zstat zstyle zsystem ztcp ztie zuntie
"""
_NOT_READ: Final = frozenset(_NOT_READ_TEXT.split())

_TESTS_TEXT: Final = """
    -a -b -c -d -e -ef -eq -f -g -G -ge -gt -h -k -L -le -lt -n -N -ne -nt -o -O -ot -p -r -s -S -t
    -u -w -x -z = == != ! ( )
"""
_TESTS: Final = frozenset(_TESTS_TEXT.split())
_TESTED: Final = lazy_pattern(r"[^-\[$`(][^\[$`(]*|-\d+|-|")
_NUMBERS: Final = lazy_pattern(r"[^\[$`(]*")
_FORMAT: Final = lazy_pattern(r"(?:[^%]|%%|%[-+ #0]{0,3}\d{0,3}(?:\.\d{1,3})?[bcdeEfFgGiosuxX])*")
_COMPUTED: Final = lazy_pattern(r"%[^%bcs]*[deEfFgGiouxX]")


def unclear_builtin(words: Sequence[Word]) -> str | None:
    """Why a built-in command may do more than its words say; None if it does not, or is none."""
    name, *arguments = (word.literal or "" for word in words)
    if name in _NOT_READ:
        return f"what {name} makes of its words is not looked into"
    if name in _READ:
        known = _READ[name].fullmatch(" ".join(arguments)) is not None
    else:
        known = _SPECIAL[name](arguments) if name in _SPECIAL else True
    return None if known else f"what {name} makes of these words is not looked into"


def _is_literal_test(arguments: Sequence[str]) -> bool:
    return all(word in _TESTS or _TESTED.fullmatch(word) for word in arguments)


def _is_literal_bracket(arguments: Sequence[str]) -> bool:
    return arguments[-1:] == ["]"] and _is_literal_test(arguments[:-1])


def _is_literal_print(arguments: Sequence[str]) -> bool:
    """Whether it only prints: `-v` and `%n` assign, and some shells compute numbers."""
    if not arguments or arguments[0].startswith("-") or not _FORMAT.fullmatch(arguments[0]):
        return False
    computes = _COMPUTED.search(arguments[0].replace("%%", ""))
    return computes is None or all(_NUMBERS.fullmatch(word) for word in arguments[1:])


_SPECIAL: Final[Mapping[str, Callable[[Sequence[str]], bool]]] = {
    "[": _is_literal_bracket,
    "printf": _is_literal_print,
    "test": _is_literal_test,
}
