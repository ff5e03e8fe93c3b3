"""Programs that only read and print, and the options with which they do.

"Always" saves a prefix for these and nothing else. An option that is not listed may write a file,
run a program, or be one of a later version: with it a command is not harmless. Nor is one with more
operands than listed, because a further operand of some programs is a file to write.

Invariant: options count by their full names. A program takes an abbreviation; this table does not.
Where the table and a program differ about the words of an option, the command is not harmless.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from msgspec import field

from perdure.lazy_pattern import lazy_pattern
from perdure.schema.value import Value

_DIFF: Final = """
    -abcimpqrstuwzCDMR -G= -S= -U= -l= -n= -L= # --abbrev=? --abbrev-commit --after= --all --author=
    --before= --branches=? --cached --check --cherry-pick --color=? --committer= --date-order
    --date= --decorate=? --diff-filter= --exit-code --find-renames=? --first-parent --follow --graph
    --grep= --histogram --ignore-all-space --ignore-blank-lines --ignore-space-change --left-right
    --max-count= --merge-base --merges --minimal --name-only --name-status --no-color --no-ext-diff
    --no-index --no-merges --no-patch --no-textconv --numstat --oneline --patch --patience --quiet
    --raw --remotes=? --reverse --shortstat --since= --skip= --source --staged --stat=? --summary
    --tags=? --topo-order --unified= --until= --word-diff=?
"""
_GREP: Final = """
    -EFGHILPRTUVZabchilnoqrsvwxyz -A= -B= -C= -D= -d= -e= -f= -m= # --after-context=
    --before-context= --binary-files= --byte-offset --color=? --context= --count --exclude-dir=
    --exclude-from= --exclude= --extended-regexp --files-with-matches --files-without-match
    --fixed-strings --ignore-case --include= --invert-match --line-number --line-regexp --max-count=
    --no-filename --no-messages --null --only-matching --perl-regexp --quiet --recursive --regexp=
    --text --with-filename --word-regexp
"""
_SUM: Final = "-bctwz --binary --check --quiet --status --strict --tag --text --warn --zero"

HARMLESS: Final[Mapping[str, str]] = {
    ":": "...",
    "[": "...",
    "b2sum": _SUM,
    "basename": "-az -s= --multiple --suffix= --zero",
    "cat": "-AETbenstuv --number --number-nonblank --show-all --show-ends --show-tabs",
    "cksum": "",
    "cmp": "-bls -i= -n= --bytes= --ignore-initial= --print-bytes --quiet --silent --verbose",
    "comm": "-123z --check-order --output-delimiter= --total --zero-terminated",
    "cut": "-nsz -b= -c= -d= -f= --bytes= --characters= --complement --delimiter= --fields="
    " --only-delimited --output-delimiter= --zero-terminated",
    "df": "-HPTahikl -t= -x= --all --human-readable --inodes --local --total --type=",
    "diff": "-BENTabcdeinpqrstuwy -C= -I= -U= -W= -x= --brief --color=? --context=? --exclude="
    " --ignore-all-space --ignore-blank-lines --ignore-case --ignore-space-change --new-file"
    " --recursive --side-by-side --text --unified=? --width=",
    "dirname": "-z --zero",
    "du": "-0HLPSabchklmsx -d= --all --apparent-size --bytes --exclude= --human-readable"
    " --max-depth= --summarize --total",
    "echo": "...",
    "egrep": _GREP,
    "false": "...",
    "fgrep": _GREP,
    "file": "-LNbhikr0 --brief --dereference --mime --mime-encoding --mime-type",
    "fold": "-bs -w= --bytes --spaces --width=",
    "git blame": "-bcefnlpstwCM -L= # --date= --line-porcelain --porcelain --since= --show-email"
    " --show-name --show-number",
    "git branch": "-arv --all --column --list --remotes --show-current --sort= --verbose <0",
    "git cat-file": "-epst",
    "git check-ignore": "-nqvz --no-index --non-matching --quiet --verbose",
    "git count-objects": "-Hv --human-readable --verbose",
    "git describe": "--abbrev=? --all --always --candidates= --contains --dirty --exact-match"
    " --first-parent --long --match= --tags",
    "git diff": _DIFF,
    "git grep": "-EFGHILPWabchilnopqrvwz -A= -B= -C= -e= -f= -m= # --after-context= --all-match"
    " --and --before-context= --break --cached --color=? --column --context= --count"
    " --extended-regexp --files-with-matches --files-without-match --fixed-strings"
    " --function-context --heading --ignore-case --invert-match --line-number"
    " --max-count= --max-depth= --name-only --no-color --no-index --not --only-matching --or"
    " --perl-regexp --quiet --show-function --untracked --word-regexp",
    "git log": _DIFF,
    "git ls-files": "-cdfikmostuvz -x= --cached --deleted --error-unmatch --exclude-standard"
    " --exclude= --full-name --ignored --modified --others --stage --unmerged",
    "git ls-tree": "-dlrtz --full-name --full-tree --long --name-only",
    "git merge-base": "-a --all --fork-point --independent --is-ancestor --octopus",
    "git remote": "-v --verbose <0",
    "git rev-list": f"{_DIFF} --count --objects",
    "git rev-parse": "-q --abbrev-ref=? --absolute-git-dir --git-common-dir --git-dir"
    " --is-inside-work-tree --quiet --short=? --show-cdup --show-prefix --show-toplevel"
    " --symbolic-full-name --verify",
    "git shortlog": "-cens --committer --email --numbered --summary",
    "git show": _DIFF,
    "git show-ref": "-dqs --abbrev=? --dereference --hash=? --heads --quiet --tags --verify",
    "git stash list": _DIFF,
    "git status": "-bsvz -u=? --ahead-behind --branch --column=? --ignored=? --long --no-renames"
    " --porcelain=? --short --show-stash --untracked-files=? --verbose",
    "git tag": "-l --list --sort= <0",
    "git worktree list": "-vz --porcelain --verbose",
    "grep": _GREP,
    "head": "-qvz -c= -n= # --bytes= --lines= --quiet --silent --verbose --zero-terminated",
    "hostname": "-Is <0",
    "id": "-GZagnruz --group --groups --name --real --user --zero",
    "jq": "-CMRSacejnrs --ascii-output --color-output --compact-output --exit-status --indent="
    " --join-output --monochrome-output --null-input --raw-input --raw-output --slurp --sort-keys"
    " --tab",
    "ls": "-1ABCDFGHLNQRSUXZabcdfghiklmnopqrstuvx -I= -T= -w= --all --almost-all --classify"
    " --color=? --directory --format= --full-time --group-directories-first --hide="
    " --human-readable --ignore= --inode --numeric-uid-gid --recursive --reverse --size"
    " --sort= --time-style= --time=",
    "md5sum": _SUM,
    "nl": "-p -b= -d= -f= -h= -i= -l= -n= -s= -v= -w=",
    "nproc": "--all --ignore= <0",
    "od": "-abcdfhilosvx -A= -N= -S= -j= -t= -w=?",
    "paste": "-sz -d= --delimiters= --serial --zero-terminated",
    "printenv": "-0 --null",
    "ps": "-AFHLMNTadefjlmwy -C= -U= -p= -t= -u= --forest --no-headers --pid= --ppid= --sort= <0",
    "pwd": "-LP --logical --physical",
    "readlink": "-efmnqsvz --canonicalize --canonicalize-existing --canonicalize-missing"
    " --no-newline --zero",
    "realpath": "-LPemqsz --canonicalize-existing --canonicalize-missing --no-symlinks --quiet"
    " --relative-base= --relative-to= --zero",
    "rev": "",
    "rg": "-.0FHILNPSUVachilnopqsuvwx -A= -B= -C= -E= -M= -T= -d= -e= -f= -g= -j= -m= -r= -t="
    " --after-context= --before-context= --color= --column --context= --count --count-matches"
    " --encoding= --file= --files --files-with-matches --files-without-match --fixed-strings"
    " --follow --glob= --heading --hidden --ignore-case --iglob= --invert-match --json"
    " --line-number --max-columns= --max-count= --max-depth= --max-filesize= --multiline"
    " --multiline-dotall --no-filename --no-heading --no-ignore --no-ignore-vcs --no-line-number"
    " --no-messages --null --only-matching --pcre2 --pretty --quiet --regexp= --replace="
    " --smart-case --sort= --sortr= --stats --text --threads= --trim --type-list --type-not="
    " --type= --unrestricted --vimgrep --with-filename --word-regexp",
    "seq": "-w -f= -s= --equal-width --format= --separator=",
    "sha1sum": _SUM,
    "sha224sum": _SUM,
    "sha256sum": _SUM,
    "sha384sum": _SUM,
    "sha512sum": _SUM,
    "sleep": "",
    "sort": "-CMRVbcdfghimnrsuz -k= -t= --check --dictionary-order --field-separator="
    " --general-numeric-sort --human-numeric-sort --ignore-case --ignore-leading-blanks --key="
    " --merge --month-sort --numeric-sort --random-sort --reverse --stable --unique --version-sort"
    " --zero-terminated",
    "stat": "-Lft -c= --dereference --file-system --format= --printf= --terse",
    "tac": "-br -s= --before --regex --separator=",
    "tail": "-Ffqvz -c= -n= -s= # --bytes= --follow=? --lines= --pid= --quiet --retry --silent"
    " --sleep-interval= --verbose --zero-terminated",
    "test": "...",
    "tr": "-Ccdst --complement --delete --squeeze-repeats --truncate-set1",
    "tree": "-ACDFJNQSUXacdfghilnpqrstuvx -I= -L= -P= --dirsfirst --du --filelimit= --gitignore"
    " --noreport --prune",
    "true": "...",
    "uname": "-aimnoprsv --all --kernel-name --kernel-release --machine --nodename",
    "uniq": "-Dcdiuz -f= -s= -w= --all-repeated=? --check-chars= --count --ignore-case --repeated"
    " --skip-chars= --skip-fields= --unique --zero-terminated <1",
    "uptime": "-ps --pretty --since <0",
    "wc": "-Lclmw --bytes --chars --lines --max-line-length --words",
    "which": "-a --all",
    "whoami": "<0",
    "xxd": "-Ebeiu -c= -g= -l= -o= -s= <1",
}
"""By the words that name a command. `-ab` are options of one letter without a value; with `=` an
option has a value, with `=?` only an attached one; `#` stands for `-5`; `<1` is the most operands;
`...` allows all arguments. `--` ends the options of each."""

_WORDS_MAX: Final = 3
_NUMBER: Final = lazy_pattern(r"-\d+")


class _Options(Value, kw_only=True):
    anything: bool = False
    numbers: bool = False
    operands_max: int | None = None
    flags: frozenset[str] = field(default_factory=frozenset[str])
    valued: frozenset[str] = field(default_factory=frozenset[str])
    attached: frozenset[str] = field(default_factory=frozenset[str])


def harmless_name(words: Sequence[str]) -> str | None:
    """The words that name a command, if it is harmless with all its arguments."""
    for length in range(min(len(words), _WORDS_MAX), 0, -1):
        name = " ".join(words[:length])
        if name in HARMLESS:
            return name if _is_harmless(_options(name), words[length:]) else None
    return None


@cache
def _options(name: str) -> _Options:
    entries = HARMLESS[name].split()
    most = [int(entry[1:]) for entry in entries if entry.startswith("<")]
    options = [entry for entry in entries if entry.startswith("-")]
    letters = [
        f"-{letter}"
        for entry in options
        if "=" not in entry and not entry.startswith("--")
        for letter in entry[1:]
    ]
    longs = [entry for entry in options if "=" not in entry and entry.startswith("--")]
    attached = frozenset(entry[:-2] for entry in options if entry.endswith("=?"))
    return _Options(
        anything="..." in entries,
        numbers="#" in entries,
        operands_max=most[0] if most else None,
        flags=frozenset((*letters, *longs)) | attached,
        valued=frozenset(entry[:-1] for entry in options if entry.endswith("=")),
        attached=attached,
    )


def _is_harmless(options: _Options, arguments: Sequence[str]) -> bool:
    if options.anything:
        return True
    operands, at = 0, 0
    while at < len(arguments):
        word = arguments[at]
        # Where a further operand is a file to write, some programs take any word for one.
        fixed = operands > 0 and options.operands_max is not None
        if word == "--" and not fixed:
            operands += len(arguments) - at - 1
            break
        taken = None if fixed else _taken(options, word)
        # A value that looks like an option is one to a program for which the value is optional.
        if taken is None or "".join(arguments[at + 1 : at + taken]).startswith("-"):
            return False
        operands += taken == 0
        at += max(taken, 1)
    return options.operands_max is None or operands <= options.operands_max


def _taken(options: _Options, word: str) -> int | None:
    """How many words an option takes: none for an operand; None if it is not known."""
    if not word.startswith("-") or word == "-":
        return 0
    if options.numbers and _NUMBER.fullmatch(word):
        return 1
    if word.startswith("--"):
        return _taken_by_long(options, word)
    for at, letter in enumerate(word[1:], start=1):
        option = f"-{letter}"
        if option in options.valued:
            return 1 if len(word) > at + 1 else 2
        if option in options.attached:
            return 1
        if option not in options.flags:
            return None
    return 1


def _taken_by_long(options: _Options, word: str) -> int | None:
    name, given, _ = word.partition("=")
    if given:
        return 1 if name in options.valued or name in options.attached else None
    if name in options.valued:
        return 2
    return 1 if name in options.flags else None
