"""Draws shell commands: plain ones, random pieces, and hostile ones, changed a little.

Plain ones make up for the fact that most random texts are refused before they could do harm.
"""

import random
from typing import Final

from tests.contract.tools.shell.hostile_commands import CODE, GROUPS

_WORDS_TEXT: Final = """
    x a b -n -e -- - --x=1 x=1 é # $x `b` $(b) * ~ ! canary \\ ' " ; && | [ ] {} {a,b} = a=~ %s =a
    a~ x:~ ${x} $((1)) a^b %1 +x @ , . ./x a;b a&b 1 0x1 -ro $'\\x63anary' $"a" <(b) a[1] %n -v -c
    -S 2> > <
"""
WORDS: Final = (*_WORDS_TEXT.split(), "y z", "\n", "", "a\nb", " ", "\t", "a #b", CODE)
_PROGRAMS_TEXT: Final = """
    a b canary ./canary echo printf test true : command exec time env nice nohup builtin setsid
    launch sh bash false [ kill type pwd wait umask exit
"""
PROGRAMS: Final = (
    *_PROGRAMS_TEXT.split(),
    *("timeout 5", "CI=1", "DEBUG=x a", "TERM= b", "command echo", "set -e\n", "cd .", "exec -a x"),
    *(
        "env CI=1",
        "env -i",
        "env -u x",
        "nice -n 5",
        "stdbuf -o L",
        "command -p",
        "time -p",
        "env --",
    ),
    *(
        "set -euo pipefail;",
        "printf %s",
        "test -f",
        "bash -e",
        "bash canary",
        "launch -v",
        "launch --x=1",
        "sh ./canary",
        "sudo",
        "busybox",
        "nice --",
    ),
)
_JOINTS_TEXT: Final = "; && || | & |& ;; ;& &&& ||| !"
JOINTS: Final = (
    *(f" {joint} " for joint in _JOINTS_TEXT.split()),
    *(
        " ; ",
        ";",
        " && ",
        " || ",
        " | ",
        "|",
        " & ",
        "&",
        "&&",
        "\n",
        "\n\n",
        " ;\n",
        " |\n",
        " &&\n",
    ),
    *(" \\\n&& ", " # x\n", " && # x\n", "; # it's\n", "\r\n", " \\\n", "\\\n", "&\n"),
)
_FILES_TEXT: Final = """
    >f >>g 2>&1 <f >|f >&2 1>f 2>f <&- 3>&1 >&f &>f <>f >'g' >"f" 2>>g 9>f 10>f {x}>f >$x >f>g >&-
"""
FILES: Final = (
    *_FILES_TEXT.split(),
    "> f",
    ">> g",
    "< f",
    "2> 'g h'",
    "> /dev/null",
    "> \\\nf",
    "<<E\na\nE\n",
)
_PIECES_TEXT: Final = """
    canary can ary b f x= $x |& $( ) ( ` ' " \\ } $' $" # <<< <( >( >| <> &>
    {x}> {x}<> {x}>&- >&$x <&3- select coproc trap mapfile complete alias unalias source
    BASH_ENV= PROMPT_COMMAND= PS4= IFS= ~+ ~- $"a" !! !$ a[$(b)] $_ $@ $* "$@" ${@} ${!x@}
    ;;) -c -- (( )) $(( ]] [ ]
    * ? ~ @ = / ${x:- ${ $ ${x# {a,b} ;; ;& ;;& && || ! % + ^ , 2>&1 a[ ]= ${! @P} :0: -v %n --
    - =~ 0 1
"""
PIECES: Final = (
    *_PIECES_TEXT.split(),
    *(
        "canary x",
        "a ",
        "\\\n",
        "\n",
        " ",
        "\t",
        "; ",
        " | ",
        " && ",
        " & ",
        "{ ",
        "> f ",
        "\r",
        "\x00",
    ),
    *(
        "<<E\n",
        "\nE\n",
        "<<-E\n\t",
        "<<'E'\n",
        "[[ ",
        "bash -c '",
        "sh -c ",
        "eval ",
        "trap '",
        " EXIT",
    ),
    *(
        "env ",
        "command ",
        "exec ",
        "time ",
        "! ",
        "coproc ",
        "if a; then ",
        "; fi",
        "for x in a; do ",
    ),
    *("; done", "while a; do ", "break; done", "case a in a) ", ";; esac", "f() ", "function g "),
    *(
        "\u00a0",
        "\u2003",
        "\ufeff",
        "\v",
        "\f",
        "\x01",
        "\x7f",
        "\x1c",
        "\u1680",
        "\u2028",
        "\u3000",
        "\x85",
        "\u200b",
        "é",
        "\u00e9\\",
    ),
    *("b" * 5_000, "\r\n", "\\\r\n", "$'\\0'", "case a in (", "select x in a; do ", "<<E <<F\n"),
    *("mapfile -C ", "trap -- ", " DEBUG", "read -e ", "wait -p ", "printf -v ", "exec {x}> "),
)
LETTERS: Final = " \t\n\r\\'\"`$;&|<>(){}[]#=~!*?-^%+,@:ax1E\u00a0"


class DrawnCommands:
    """An endless supply of commands from a seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def next(self) -> str:
        kinds = (self._plain, self._pieces, self._hostile)
        drawn = self._chance.choices(kinds, weights=(9, 2, 3))[0]()
        changes = self._chance.choices((0, 1, 2, 3), weights=(6, 3, 2, 1))[0]
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
        words = [self._chance.choice(PROGRAMS)]
        if self._chance.random() < 0.3:
            words.append(self._chance.choice(PROGRAMS))
        words += [self._quoted() for _ in range(self._chance.randint(0, 3))]
        if self._chance.random() < 0.3:
            words.insert(self._chance.randint(0, len(words)), self._chance.choice(FILES))
        text = self._chance.choice((" ", " ", " ", "  ", "\t", " \\\n ")).join(words)
        if self._chance.random() < 0.08:
            text = f"{self._chance.choice(('bash', 'sh'))} -c {single(text)}"
        return text

    def _quoted(self) -> str:
        word = self._chance.choice(WORDS)
        quote = self._chance.choice((single, single, single, double, double, escape, ansi, str))
        if len(word) > 1 and self._chance.random() < 0.2:
            at = self._chance.randint(1, len(word) - 1)
            return quote(word[:at]) + self._chance.choice((single, double, escape))(word[at:])
        return quote(word)

    def _pieces(self) -> str:
        return "".join(self._chance.choices(PIECES, k=self._chance.randint(2, 9)))

    def _hostile(self) -> str:
        return self._chance.choice(self._chance.choice(GROUPS))

    def _changed(self, text: str) -> str:
        at = self._chance.randint(0, len(text))
        other = self._chance.randint(at, min(len(text), at + 6))
        match self._chance.randrange(6):
            case 0:
                return text[:at] + text[other:]
            case 1:
                return text[:at] + self._chance.choice(LETTERS) + text[at:]
            case 2:
                return text[:at] + self._chance.choice(PIECES) + text[at:]
            case 3:
                return text[:other] + text[at:]
            case 4:
                quote = self._chance.choice((single, double, escape, ansi))
                return text[:at] + quote(text[at:other]) + text[other:]
            case _:
                joint = self._chance.choice(JOINTS)
                return text + joint + self._hostile()


def single(word: str) -> str:
    inner = word.replace("'", "'\\''")
    return f"'{inner}'"


def double(word: str) -> str:
    return '"' + "".join(f"\\{char}" if char in '"\\$`' else char for char in word) + '"'


def escape(word: str) -> str:
    return "".join(char if char.isalnum() or char == "\n" else f"\\{char}" for char in word)


def ansi(word: str) -> str:
    return "$'" + "".join(f"\\x{ord(char) & 0xFF:02x}" for char in word) + "'"
