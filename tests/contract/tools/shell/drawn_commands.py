"""Draws shell commands: plain ones, random pieces, and hostile ones, changed a little.

Plain ones make up for the fact that most random texts are refused before they could do harm.
"""

import random
from collections.abc import Callable
from typing import Final

HOSTILE: Final = (
    "echo a =~\ncanary x",
    "echo \\ #; canary x",
    "echo a\\\n#; canary x",
    "cat <<E\n$(canary x)$x\nE\n",
    "cat <<E\n`canary x`\nE\n",
    "[[ $'a[\\x24(canary x)]' -eq 0 ]]",
    "echo $'\\x24(canary x)'; echo ${_@P}",
    "echo ${x=$'a[\\x24(canary x)]'} $((x))",
    "test -v 'a[$(canary x)]'",
    "[ -v 'a[$(canary x)]' ]",
    "[[ -v 'a[$(canary x)]' ]]",
    "printf -v 'a[$(canary x)]' y",
    "printf %n 'a[$(canary x)]'",
    "read 'a[$(canary x)]' <<< y",
    "declare 'a[$(canary x)]=y'",
    "let 'a[$(canary x)]'",
    "unset 'a[$(canary x)]'",
    "hash -p canary a; a x",
    "x='a[$(canary x)]'; echo ${y:x}",
    "x='a[$(canary x)]'; echo $((x))",
    "x='y[$(canary x)]'; echo ${!x}",
    "echo {can,}ary; {canary,x}",
    "alias a=canary\na x",
    "trap 'canary x' EXIT",
    "eval 'can''ary x'",
    "a() { canary x; }; a",
    "coproc canary x",
    "echo <(canary x)",
    "PS4='$(canary x)'; set -x; a",
    "BASH_ENV='$(canary x)' bash -c a",
    "can\\\nary x",
    "a |& canary x",
    "a &> f",
    "time A=1 canary x",
    "time -p -- canary x",
    "command -p canary x",
    "! canary x",
    "if canary x; then a; fi",
    "for x in canary; do $x; done",
    "case a in a) canary x;; esac",
    "bash -c 'canary x' a",
    "env -S 'canary x'",
    "env A=1 canary x",
    "PATH=.:$PATH canary x",
    "a > f > x; a >> 'g h'",
    "a 1>f 2>&1 <f",
    "echo '\\'; canary x; echo '",
    'echo "\\\\"; canary x; "y"',
    "a # '\ncanary x #'",
    "a \\\n  # x\ncanary x",
    "{ canary x; }",
    "(canary x)",
    "a $(canary x)",
    "a `canary x`",
    "'canary' x",
    "c\\anary \\x",
    "set -- canary x; $@",
    "exec canary x",
    "nohup nice -n 5 timeout 5 canary x",
)
WORDS: Final = (
    *(
        "x",
        "y z",
        "a",
        "b",
        "-n",
        "-e",
        "--x=1",
        "x=1",
        "é",
        "#",
        "$x",
        "`b`",
        "$(b)",
        "*",
        "~",
        "!",
    ),
    *(
        "canary",
        "\\",
        "'",
        '"',
        ";",
        "&&",
        "|",
        "[",
        "]",
        "{}",
        "{a,b}",
        "=",
        "a=~",
        "%s",
        "\n",
        "=a",
    ),
)
NAMES: Final = (
    *("a", "b", "canary", "echo", "printf", "test", "true", ":", "command", "exec", "time", "env"),
    *(
        "nice",
        "timeout 5",
        "nohup",
        "CI=1",
        "DEBUG=x a",
        "builtin",
        "command echo",
        "set -e\n",
        "cd .",
    ),
)
JOINTS: Final = (
    " ; ",
    ";",
    " && ",
    " || ",
    " | ",
    "|",
    " & ",
    "\n",
    " \\\n&& ",
    "\n\n",
    " # x\n",
    "&&",
)
FILES: Final = ("> f", ">> g", "2>&1", "< f", ">f", "2> 'g h'", ">|f", ">&2", "> /dev/null", "1>f")
PIECES: Final = (
    *("canary x", "canary", "can", "ary", "a ", "b", "f", "x=", "$x", "\\\n", "\n", " ", " ", "\t"),
    *("; ", " | ", " && ", " & ", "|&", "$(", ")", "(", "`", "'", '"', "\\", "{ ", "}", "$'", "#"),
    *(
        "<<E\n",
        "\nE\n",
        "<<-E\n\t",
        "<<'E'\n",
        "<<<",
        "<(",
        ">(",
        "> f ",
        "2>&1 ",
        ">|",
        "<>",
        "&>",
    ),
    *("bash -c '", "sh -c ", "-c ", "-- ", "eval ", "trap '", " EXIT", "env ", "command ", "exec "),
    *("time ", "! ", "coproc ", "if a; then ", "; fi", "for x in a; do ", "; done", "while a; do "),
    *("break; done", "case a in a) ", ";; esac", "f() ", "function g ", "((", "))", "$((", "[[ "),
    *("]] ", "[", "]", "*", "?", "~", "@", "=", "/", "${x:-", "${", "$", "${x#", "{a,b}", "\r"),
)
LETTERS: Final = " \t\n\\'\"`$;&|<>(){}[]#=~!*?-ax1E"


class DrawnCommands:
    """An endless supply of commands from a seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def next(self) -> str:
        drawn = self._chance.choices(self._KINDS, weights=(6, 2, 3))[0](self)
        changes = self._chance.choices((0, 1, 2, 3), weights=(4, 3, 2, 1))[0]
        for _ in range(changes):
            drawn = self._changed(drawn)
        return drawn

    def _plain(self) -> str:
        commands = [self._command() for _ in range(self._chance.randint(1, 3))]
        text = commands[0]
        for command in commands[1:]:
            text += self._chance.choice(JOINTS) + command
        return text

    def _command(self) -> str:
        words = [self._chance.choice(NAMES)]
        words += [self._quoted() for _ in range(self._chance.randint(0, 3))]
        if self._chance.random() < 0.3:
            words.insert(self._chance.randint(0, len(words)), self._chance.choice(FILES))
        text = self._chance.choice((" ", " ", " ", "  ", "\t", " \\\n ")).join(words)
        if self._chance.random() < 0.08:
            text = f"{self._chance.choice(('bash', 'sh'))} -c {single(text)}"
        return text

    def _quoted(self) -> str:
        word = self._chance.choice(WORDS)
        quote = self._chance.choice((single, single, double, escape, str))
        return quote(word)

    def _pieces(self) -> str:
        return "".join(self._chance.choices(PIECES, k=self._chance.randint(2, 9)))

    def _hostile(self) -> str:
        return self._chance.choice(HOSTILE)

    def _changed(self, text: str) -> str:
        at = self._chance.randint(0, len(text))
        other = self._chance.randint(at, min(len(text), at + 6))
        match self._chance.randrange(5):
            case 0:
                return text[:at] + text[other:]
            case 1:
                return text[:at] + self._chance.choice(LETTERS) + text[at:]
            case 2:
                return text[:at] + self._chance.choice(PIECES) + text[at:]
            case 3:
                return text[:other] + text[at:]
            case _:
                joint = self._chance.choice(JOINTS)
                return text + joint + self._chance.choice(HOSTILE)

    _KINDS: Final[tuple[Callable[["DrawnCommands"], str], ...]] = (_plain, _pieces, _hostile)


def single(word: str) -> str:
    inner = word.replace("'", "'\\''")
    return f"'{inner}'"


def double(word: str) -> str:
    return '"' + "".join(f"\\{char}" if char in '"\\$`' else char for char in word) + '"'


def escape(word: str) -> str:
    return "".join(char if char.isalnum() or char == "\n" else f"\\{char}" for char in word)
