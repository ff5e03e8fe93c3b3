"""Programs that run code or programs that are given in their arguments, and by which ones.

`git grep -O`, `rg --pre`, `python -c`: what such an argument names is not looked into, so the
command is unclear. A program that is started with the name of a script is read as that: its text is
a file, like the program itself. core.shell.wrapper looks through programs that only start another.

Invariant: an option counts in every spelling: abbreviated, attached to its value, or in a cluster.
"""

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Final

from perdure.core.shell.word import Word

RUNNING_OPTIONS: Final[Mapping[str, str]] = {
    "apt": "-o --option",
    "apt-get": "-o --option",
    "bun": "-e -p --eval --preload --print",
    "cargo": "--config",
    "cc": "-wrapper -fplugin -specs --specs",
    "clang": "-wrapper -fplugin -load -specs --specs",
    "cmake": "-E -P",
    "ctags": "--options --filter",
    "diff": "-l --paginate",
    "fd": "-x -X --exec --exec-batch",
    "find": "-exec -execdir -ok -okdir",
    "g++": "-wrapper -fplugin -specs --specs",
    "gcc": "-wrapper -fplugin -specs --specs",
    "git archive": "--exec --remote",
    "git clone": "-c -u --config --template --upload-pack",
    "git diff": "--ext-diff --textconv",
    "git difftool": "-x -t --extcmd --tool",
    "git fetch": "--upload-pack",
    "git fetch-pack": "--exec --upload-pack",
    "git grep": "-O --open-files-in-pager --textconv --ext-grep",
    "git init": "--template",
    "git log": "--ext-diff --textconv",
    "git ls-remote": "--exec --upload-pack",
    "git pull": "-s -X --strategy --upload-pack",
    "git push": "--exec --receive-pack",
    "git rebase": "-i -s -x --exec --interactive --strategy",
    "git send-email": "--sendmail-cmd --smtp-server --to-cmd --cc-cmd --header-cmd",
    "git show": "--ext-diff --textconv",
    "go": "-exec -toolexec -vettool -overlay -ldflags -gcflags",
    "gpg": "--agent-program --dirmngr-program --keyserver-options --photo-viewer --pinentry-mode",
    "hg": "--config",
    "install": "--strip-program",
    "make": "--eval -E -f --file --makefile",
    "man": "-P -H -X --pager --html --gxditview --preprocessor",
    "nc": "-e -c",
    "ncat": "-e -c --exec --sh-exec --lua-exec",
    "nmap": "--script",
    "npm": "-c --call --script-shell --node-options",
    "pnpm": "-c --call --script-shell --node-options",
    "rg": "--pre --hostname-bin",
    "rsync": "-e --rsh --rsync-path",
    "scp": "-D -F -J -S -o",
    "sftp": "-D -F -J -S -b -o",
    "sort": "--compress-program",
    "split": "--filter",
    "ssh": "-F -J -o",
    "svn": "--config-option --diff-cmd --diff3-cmd --editor-cmd",
    "tar": "-F -I --checkpoint-action --info-script --new-volume-script --rmt-command"
    " --rsh-command --to-command --use-compress-program",
    "tcpdump": "-z",
    "wget": "-e --execute --use-askpass",
    "zip": "-T -TT --test --unzip-command",
}
"""Options that name code or a program to run. A single dash before a word is an option of its own;
before a letter, the letter counts anywhere in a cluster."""

_ALWAYS_TEXT: Final = """
    at batch crontab dc dtach ed elvish emacs ex expect fish ftp gdb ghci gnuplot guile iex irb
    jshell ld.so lldb mail mailx mutt mysql nano nsenter nu octave pico pry psql pwsh powershell
    qemu-x86_64 redis-cli rlwrap screen sg socat sqlite3 tclsh telnet tmux vi view vim vimdiff nvim
    xdg-open xterm
"""
_ALWAYS: Final = frozenset(_ALWAYS_TEXT.split())
"""Programs that take code as operands, from their input, or by a command of their own."""

_VERBS_TEXT: Final = """
    deno eval, deno repl, gh alias, gh extension, git bisect, git daemon, git filter-branch,
    git hook, git instaweb, git mergetool, git remote-ext, git shell, git submodule,
    git upload-pack, nix develop, nix eval, nix repl, npm config, npm explore, npm set,
    pnpm config, rails console, rails runner, rustup run, yarn config
"""
_VERBS_ALWAYS: Final = frozenset(" ".join(verb.split()) for verb in _VERBS_TEXT.split(","))

_GIT_READ: Final = frozenset({"--no-pager", "--version", "--help", "--no-optional-locks"})
_CONFIG_READ: Final = frozenset(
    {"--get", "--get-all", "--get-regexp", "--list", "-l", "list", "get"}
)

_INTERPRETERS: Final[Mapping[str, str]] = {
    "java": "-jar",
    "julia": "",
    "lua": "",
    "node": "--test --watch --no-warnings --trace-warnings --enable-source-maps",
    "nodejs": "--test --no-warnings",
    "osascript": "",
    "perl": "-w -t -T",
    "php": "-l -n",
    "pypy": "-B -E -I -O -OO -s -S -u",
    "python": "-B -E -I -O -OO -P -b -bb -d -q -s -S -u -v",
    "ruby": "-w -W0 -W1 -W2",
    "ts-node": "",
    "tsx": "",
}
"""Interpreters with the options that may precede the name of a script."""
_ASKS_ONLY: Final = frozenset({"--version", "-V", "--help", "-h"})
_INPUTS: Final = ("/dev/", "/proc/", "-")
"""How the name of a script begins that is no file: its text comes from elsewhere."""
_MODULES_OF_CODE: Final = frozenset(
    {"bdb", "cProfile", "code", "codeop", "idlelib", "pdb", "profile", "runpy", "timeit", "trace"}
)

_AWK_SEPARATOR: Final = re.compile(r"-F.+")
_AWK_CODE: Final = re.compile(r"[\w\s{}()$,;:.\"'+*/%^!~?=\[\]\\#-]*")
_AWK_CALLS: Final = re.compile(r"system|getline|close|fflush|ENVIRON", re.IGNORECASE)
_SED_OPTIONS: Final = re.compile(r"-[nErsuz]+|--quiet|--silent|--regexp-extended")
_SED_CODE: Final = re.compile(
    r"(?:\d+|\$)(?:,(?:\d+|\$))?[pdq]"
    r"|s([/,|#])(?:(?!\1)[^\n\\\[\]]|\\[^\n])*\1(?:(?!\1)[^\n\\]|\\[^\n])*\1[gIp\d]*"
)


def unclear_code(words: Sequence[Word]) -> str | None:
    """Why a command may run what its words do not show; None if no argument is code."""
    name = posixpath.basename(words[0].literal or "")
    arguments = [word.literal or "" for word in words[1:]]
    program = name if name in RUNNING_OPTIONS else name.rstrip("0123456789.") or name
    if program in _ALWAYS or name in _ALWAYS or name.startswith("ld-linux"):
        return f"what {name} runs is not looked into"
    if program in _INTERPRETERS:
        return None if _is_script(program, arguments) else f"code for {name} is not looked into"
    if program in _CODES:
        known = _CODES[program](arguments)
        return None if known else f"code for {name} is not looked into"
    if program == "git" and (why := _unclear_git(arguments)) is not None:
        return why
    verb = f"{program} {arguments[0]}" if arguments else program
    if verb in _VERBS_ALWAYS:
        return f"what {verb} runs is not looked into"
    if program == "make" and any("=" in word for word in arguments):
        return "variables of make can be code"
    for key in (program, verb):
        for option in RUNNING_OPTIONS.get(key, "").split():
            if any(_is_spelling(word, option) for word in _dashed(program, arguments)):
                return f"what {key} {option} runs is not looked into"
    return None


def _dashed(program: str, arguments: Sequence[str]) -> Sequence[str]:
    """The arguments; the letters that tar takes without a dash get one."""
    if program == "tar" and arguments and not arguments[0].startswith("-"):
        return [f"-{arguments[0]}", *arguments[1:]]
    return arguments


def _is_spelling(word: str, option: str) -> bool:
    given = word.partition("=")[0]
    if option.startswith("--"):
        # Programs take any beginning of a long option, some with one dash.
        return len(given) > 2 and given.startswith("--") and option.startswith(given)
    if len(option) > 2:
        return given.lstrip("-") == option[1:] and given.startswith("-")
    return word.startswith("-") and not word.startswith("--") and option[1] in word


def _unclear_git(arguments: Sequence[str]) -> str | None:
    """Options before the verb configure git; some addresses and settings are commands."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        if arguments[at] not in _GIT_READ and arguments[at] != "-C":
            return f"what git does with {arguments[at]} is not looked into"
        at += 2 if arguments[at] == "-C" else 1
    verb, rest = arguments[at : at + 1], arguments[at + 1 :]
    if any("::" in word.partition("/")[0] for word in rest):
        return "what an address of git runs is not looked into"
    if verb == ["config"] and rest[:1] and rest[0] not in _CONFIG_READ:
        return "settings of git can name programs"
    return unclear_code([Word("git", "git"), *(Word(w, w) for w in arguments[at:])]) if at else None


def _is_script(program: str, arguments: Sequence[str]) -> bool:
    allowed = frozenset(_INTERPRETERS[program].split())
    if len(arguments) == 1 and arguments[0] in _ASKS_ONLY:
        return True
    for at, word in enumerate(arguments):
        if program in {"python", "pypy"} and word == "-m":
            module = "".join(arguments[at + 1 : at + 2])
            return bool(module) and module not in _MODULES_OF_CODE
        if word not in allowed:
            return not word.startswith(_INPUTS)
    return False


def _is_plain_awk(arguments: Sequence[str]) -> bool:
    """Whether the code can neither run programs nor write files."""
    operands = [word for word in arguments if not _AWK_SEPARATOR.fullmatch(word)]
    if not operands or any(word.startswith("-") for word in operands):
        return False
    return _AWK_CODE.fullmatch(operands[0]) is not None and not _AWK_CALLS.search(operands[0])


def _is_plain_sed(arguments: Sequence[str]) -> bool:
    """Whether the code only prints, deletes or replaces lines."""
    options = [word for word in arguments if word.startswith("-")]
    operands = [word for word in arguments if not word.startswith("-")]
    known = all(_SED_OPTIONS.fullmatch(word) for word in options)
    return known and bool(operands) and _SED_CODE.fullmatch(operands[0]) is not None


_CODES: Final = {
    "awk": _is_plain_awk,
    "gawk": _is_plain_awk,
    "mawk": _is_plain_awk,
    "nawk": _is_plain_awk,
    "gsed": _is_plain_sed,
    "sed": _is_plain_sed,
}
