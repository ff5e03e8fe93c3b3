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
from perdure.lazy_pattern import lazy_pattern

RUNNING_OPTIONS: Final[Mapping[str, str]] = {
    "apt": "-o --option",
    "apt-get": "-o --option",
    "ar": "--plugin",
    "aria2c": "--conf-path --on-bt-download-complete --on-download-complete --on-download-error"
    " --on-download-pause --on-download-start --on-download-stop",
    "bsdtar": "--use-compress-program",
    "bun": "-e -p -r --eval --preload --print --require",
    "cargo": "--config",
    "cc": "-B= -wrapper -fplugin -specs --specs",
    "clang": "-B= -wrapper -fplugin -load -specs --specs",
    "cmake": "-C -E -P",
    "cpio": "--rsh-command",
    "ctags": "--options --filter",
    "curl": "-K --config --engine",
    "diff": "-l --paginate",
    "exiftool": "-config -if",
    "fd": "-x -X --exec --exec-batch",
    "fdfind": "-x -X --exec --exec-batch",
    "file": "-z -Z --uncompress --uncompress-noreport",
    "find": "-exec -execdir -ok -okdir",
    "g++": "-B= -wrapper -fplugin -specs --specs",
    "gcc": "-B= -wrapper -fplugin -specs --specs",
    "git archive": "--exec --remote",
    "git cherry-pick": "--strategy",
    "git clone": "-c -u --config --template --upload-pack",
    "git diff": "--ext-diff --textconv",
    "git fetch": "--upload-pack",
    "git grep": "-O --open-files-in-pager --textconv --ext-grep",
    "git help": "-i -w --info --web",
    "git init": "--template",
    "git log": "--ext-diff --textconv",
    "git ls-remote": "--exec --upload-pack",
    "git merge": "-s --strategy",
    "git pull": "-s --strategy --upload-pack",
    "git push": "--exec --receive-pack",
    "git rebase": "-i -s -x --exec --interactive --strategy",
    "git revert": "--strategy",
    "git show": "--ext-diff --textconv",
    "go": "-exec -toolexec -vettool -overlay -ldflags -gcflags",
    "gpg": "--agent-program --dirmngr-program --keyserver-options --photo-viewer --pinentry-mode",
    "gradle": "-I --init-script",
    "helm": "--post-renderer",
    "hg": "--config",
    "install": "--strip-program",
    "ld": "-plugin --plugin",
    "make": "--eval -E -f --file --makefile",
    "man": "-P -H -X --pager --html --gxditview --preprocessor",
    "nc": "-e -c",
    "ncat": "-e -c --exec --sh-exec --lua-exec",
    "nm": "--plugin",
    "nmap": "--script",
    "npm": "-c --call --script-shell --node-options",
    "openssl": "-engine -provider -provider-path -config",
    "pnpm": "-c --call --script-shell --node-options",
    "rake": "-e -E -p --execute --execute-continue --execute-print",
    "rg": "--pre --hostname-bin",
    "rpm": "-D -E --define --eval --pipe",
    "rsync": "-e --rsh --rsync-path",
    "rustc": "-C --codegen",
    "scp": "-D -F -J -S -o",
    "sftp": "-D -F -J -S -b -o",
    "sort": "--compress-program",
    "split": "--filter",
    "ssh": "-F -I -J -o",
    "ssh-add": "-s",
    "ssh-keygen": "-D -w",
    "svn": "--config-option --diff-cmd --diff3-cmd --editor-cmd",
    "swift": "-e",
    "tar": "-F -I --checkpoint-action --info-script --new-volume-script --rmt-command"
    " --rsh-command --to-command --use-compress-program",
    "tcpdump": "-z",
    "wget": "-e --config --execute --use-askpass",
    "zip": "-T -TT --test --unzip-command",
}
"""Options that name code or a program to run. A single dash before a word is an option of its own;
before a letter, the letter counts anywhere in a cluster; with `=` only at its beginning."""

_ALWAYS_TEXT: Final = """
    R ansible at batch bpython clj clojure crontab csh dc dtach ed editor elvish emacs emacsclient
    erl es escript ex expect fish ftp gdb ghci gnuplot gs guile hx iex ion ipython irb jshell
    jupyter kak kotlin ld.so less lftp lksh lldb m4 mail mailx mksh mongo mongosh more most mutt
    mysql nano ncftp nsenter nu nvim ocaml octave oksh osh pager pg pico posh powershell pry psql
    pwsh qemu-x86_64 racket raku rbash rc redis-cli rlwrap rpmbuild runghc sbcl scala screen
    sensible-editor sensible-pager sg socat sqlite3 tclsh tcsh telnet tmux vi view vim vimdiff wish
    xdg-open xonsh xterm yash
"""
_ALWAYS: Final = frozenset(_ALWAYS_TEXT.split())
"""Programs that take code as operands, from their input, or by a command of their own."""
_SHELLS: Final = frozenset({"ash", "bash", "dash", "ksh", "sh", "zsh"})

_VARIANTS: Final = (
    *(".exe", "-static", ".static", "-dbg", "-bin", ".real", ".distrib"),
    *(".basic", ".tiny", ".nox", ".gtk3", ".traditional", ".openbsd"),
)
"""Endings under which systems install another build of a program."""

_VERBS_TEXT: Final = """
    deno eval, deno repl, gh alias, gh extension, nix develop, nix eval, nix repl, node debug,
    node inspect, npm config, npm explore, npm set, pnpm config, rails console, rails runner,
    rustup run, yarn config
"""
_VERBS_ALWAYS: Final = frozenset(" ".join(verb.split()) for verb in _VERBS_TEXT.split(","))

_GIT_READ: Final = frozenset({"--no-pager", "--version", "--help", "--no-optional-locks"})
_GIT_VERBS_TEXT: Final = """
    add am apply archive blame branch bundle cat-file check-attr check-ignore checkout cherry
    cherry-pick clean clone commit config count-objects describe diff diff-files diff-index
    diff-tree fetch for-each-ref format-patch fsck gc grep help init log ls-files
    ls-remote ls-tree merge merge-base mv name-rev notes prune pull push range-diff rebase reflog
    remote repack reset restore rev-list rev-parse revert rm shortlog show show-branch show-ref
    sparse-checkout stash status switch symbolic-ref tag update-ref verify-commit verify-tag
    version whatchanged worktree write-tree
"""
_GIT_VERBS: Final = frozenset(_GIT_VERBS_TEXT.split())
"""Other verbs run programs (`submodule`, `bisect`), or are aliases that may be anything."""
_CONFIG_READ: Final = frozenset(
    {"--get", "--get-all", "--get-regexp", "--list", "-l", "list", "get"}
)

_INTERPRETERS: Final[Mapping[str, str]] = {
    "elixir": "",
    "groovy": "",
    "java": "-jar",
    "julia": "",
    "lua": "",
    "luajit": "",
    "node": "--test --watch --no-warnings --trace-warnings --enable-source-maps",
    "nodejs": "--test --no-warnings",
    "osascript": "",
    "perl": "-w -t -T",
    "php": "-l -n",
    "pypy": "-B -E -I -O -OO -s -S -u",
    "python": "-B -E -I -O -OO -P -b -bb -d -q -s -S -u -v",
    "rscript": "",
    "ruby": "-w -W0 -W1 -W2",
    "ts-node": "",
    "tsx": "",
}
"""Interpreters with the options that may precede the name of a script."""
_ASKS_ONLY: Final = frozenset({"--version", "-V", "--help", "-h"})
_DEVICES: Final = lazy_pattern(r"/+(?:dev|proc)(?:/.*)?")
_INPUTS: Final = lazy_pattern(r"stdin|console|exe|(?:tty|pts|ptmx)\w*|[\d:]*")
"""The last part of each name under which a program finds its own input, a terminal, or itself."""
_MODULES_TEXT: Final = """
    IPython asyncio bdb bpython cProfile code codeop doctest idlelib jupyter pdb profile ptpython
    runpy sqlite3 timeit trace webbrowser xonsh
"""
_MODULES_OF_CODE: Final = frozenset(_MODULES_TEXT.split())

_READ_OPTION_FILES: Final = frozenset(
    {"ar", "cc", "clang", "g++", "gcc", "ld", "nm", "objcopy", "objdump", "rustc"}
)

_AWK_SEPARATOR: Final = lazy_pattern(r"-F.+")
_AWK_CODE: Final = lazy_pattern(r"[\w\s{}()$,;:.\"'+*/%^!~?=\[\]\\#-]*")
_AWK_CALLS: Final = lazy_pattern(r"system|getline|close|fflush|ENVIRON", re.IGNORECASE)
_SED_OPTIONS: Final = lazy_pattern(r"-[nErsuz]+|--quiet|--silent|--regexp-extended")
_SED_CODE: Final = lazy_pattern(
    r"(?:\d+|\$)(?:,(?:\d+|\$))?[pdq]"
    r"|s([/,|#])(?:(?!\1)[^\n\\\[\]]|\\[^\n])*\1(?:(?!\1)[^\n\\]|\\[^\n])*\1[gIp\d]*"
)


def unclear_code(words: Sequence[Word]) -> str | None:
    """Why a command may run what its words do not show; None if no argument is code."""
    name = posixpath.basename(words[0].literal or "")
    arguments = [word.literal or "" for word in words[1:]]
    # Where names of files do not differ in case, capitals start the same program.
    small = name.lower()
    program = small if small in RUNNING_OPTIONS else _without_variant(small)
    if {program, small, name} & _ALWAYS or small.startswith("ld-"):
        return f"what {name} runs is not looked into"
    if program in _INTERPRETERS or (program in _SHELLS and program != name):
        known = program in _INTERPRETERS and _starts_script(program, arguments)
        return None if known else f"code for {name} is not looked into"
    if program in _CODES:
        known = _CODES[program](arguments)
        return None if known else f"code for {name} is not looked into"
    if program == "git" and (why := _unclear_git(arguments)) is not None:
        return why
    return _unclear_options(program, arguments)


def run_file(words: Sequence[Word]) -> str | None:
    """The path of the file that a command runs: its own, or that of a script."""
    name = words[0].literal or ""
    program = _without_variant(posixpath.basename(name).lower())
    if program in _SHELLS or program in _INTERPRETERS:
        operands = (word.literal or "" for word in words[1:])
        return next((word for word in operands if not word.startswith(("-", "+"))), None)
    return name if "/" in name else None


def is_script(path: str) -> bool:
    """Whether it names a file of its own, and not the input of the program that opens it."""
    normal = posixpath.normpath(path)
    named = _INPUTS.fullmatch(posixpath.basename(normal)) is None
    return bool(path) and named and not path.startswith("-") and not _DEVICES.fullmatch(normal)


def _unclear_options(program: str, arguments: Sequence[str]) -> str | None:
    verb = f"{program} {arguments[0]}" if arguments else program
    if verb in _VERBS_ALWAYS:
        return f"what {verb} runs is not looked into"
    if program == "make" and any("=" in word for word in arguments):
        return "variables of make can be code"
    if program in _READ_OPTION_FILES and any(word.startswith("@") for word in arguments):
        return f"what {program} reads from a file of options is not looked into"
    for key in (program, verb):
        for option in RUNNING_OPTIONS.get(key, "").split():
            if any(_is_spelling(word, option) for word in _dashed(program, arguments)):
                return f"what {key} {option} runs is not looked into"
    return None


def _without_variant(name: str) -> str:
    """The name of a program without its version: `python3.12`, `vim.tiny`."""
    for variant in _VARIANTS:
        name = name.removesuffix(variant)
    return name.rstrip("0123456789.-") or name


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
    if option.endswith("="):
        return word.startswith(option[:-1])
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
    if verb and verb[0] not in _GIT_VERBS:
        return f"what git {verb[0]} runs is not looked into"
    if any("::" in word.partition("/")[0] for word in rest):
        return "what an address of git runs is not looked into"
    if verb == ["config"] and rest[:1] and rest[0] not in _CONFIG_READ:
        return "settings of git can name programs"
    return _unclear_options("git", arguments[at:])


def _starts_script(program: str, arguments: Sequence[str]) -> bool:
    allowed = frozenset(_INTERPRETERS[program].split())
    if len(arguments) == 1 and arguments[0] in _ASKS_ONLY:
        return True
    if f"{program} {''.join(arguments[:1])}" in _VERBS_ALWAYS:
        return False
    for at, word in enumerate(arguments):
        if program in {"python", "pypy"} and word == "-m":
            module = "".join(arguments[at + 1 : at + 2])
            return bool(module) and module.partition(".")[0] not in _MODULES_OF_CODE
        if word not in allowed:
            return is_script(word)
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
