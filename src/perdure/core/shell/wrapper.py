"""Programs that run other programs, and what a command with one of them runs.

`timeout 5 git push` is `git push`. A wrapper that adds privileges (`sudo`) is a part itself; one
that adds words which are not in the text (`xargs`) makes the command unclear. So does an option
that is not in the table, since the next word may be its value or the program.

Invariant: a program counts as a wrapper only by its plain name. A path with that name may be any
program, so it is also a part itself.
"""

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Final

from perdure.core.shell.program_code import is_script
from perdure.core.shell.word import Word
from perdure.lazy_pattern import lazy_pattern
from perdure.schema.value import Value


class Unwrapped(Value, kw_only=True):
    counts: bool = True
    """Whether the command itself must be allowed too, not only what it runs."""
    commands: tuple[tuple[Word, ...], ...] = ()
    scripts: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    """Variables that it sets for the inner command."""
    unclear: str | None = None


class _Wrapper(Value, kw_only=True):
    flags: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    """Options with a value, as the next word or attached to a short option."""
    operands: int = 0
    """Number of its own arguments before the inner program."""
    sets: bool = False
    """Whether `NAME=value` may precede the inner program."""
    counts: bool = False
    adds: str | None = None
    """Why the inner command has more words than are shown."""


def _wrapper(
    flags: str = "",
    valued: str = "",
    *,
    operands: int = 0,
    sets: bool = False,
    counts: bool = False,
    adds: str | None = None,
) -> _Wrapper:
    return _Wrapper(
        flags=frozenset(flags.split()),
        valued=frozenset(valued.split()),
        operands=operands,
        sets=sets,
        counts=counts,
        adds=adds,
    )


_WRAPPERS: Final[Mapping[str, _Wrapper]] = {
    "builtin": _wrapper(),
    "busybox": _wrapper(counts=True),
    "command": _wrapper("-p -v -V"),
    "doas": _wrapper("-n", "-u -C", counts=True),
    "env": _wrapper("-i - --ignore-environment", "-u --unset", sets=True),
    "exec": _wrapper("-c -l", "-a"),
    "ionice": _wrapper("-t", "-c -n"),
    "nice": _wrapper(valued="-n --adjustment"),
    "nohup": _wrapper(),
    "setsid": _wrapper("-c -f -w --ctty --fork --wait"),
    "stdbuf": _wrapper(valued="-i -o -e --input --output --error"),
    "sudo": _wrapper(
        "-A -b -E -H -k -n -P -S --", "-C -g -h -p -r -t -T -u", sets=True, counts=True
    ),
    "time": _wrapper("-p -v"),
    "timeout": _wrapper(
        "--foreground --preserve-status -v --verbose",
        "-k --kill-after -s --signal",
        operands=1,
    ),
    "xargs": _wrapper(
        "-0 --null -r --no-run-if-empty -t --verbose -x --exit",
        "-a -d -E -I -L -n -P -s --arg-file --delimiter --max-args --max-procs --max-lines",
        counts=True,
        adds="xargs adds words that are only known when it runs",
    ),
}
_SHELLS: Final = frozenset({"ash", "bash", "dash", "ksh", "sh", "zsh"})
_SHELL_FLAGS: Final = lazy_pattern(r"-[elux]+")
_SHELL_CODE: Final = lazy_pattern(r"-[elux]*c[elux]*")
_OTHER_WRAPPERS: Final = """
    aa-exec abduco arch autossh bwrap byobu caffeinate capsh catchsegv cgexec choom chpst chroot
    chronic chrt concurrently coreutils cpulimit cross-env daemon daemonize dbus-launch
    dbus-run-session direnv dotenv dumb-init entr env-cmd envdir faketime fakeroot firejail flock
    gosu hyperfine ifne ip linux32 linux64 lockfile ltrace minijail0 mosh nodemon nq nsenter nsjail
    numactl onchange parallel perf pkexec prlimit proot proxychains proxychains4 pueue reflex rr
    run-parts runcon runuser schroot script setarch setlock setpriv setuidgid softlimit ssh-agent
    sshpass start-stop-daemon strace su su-exec systemd-cat systemd-inhibit systemd-run taskset tini
    torify torsocks toybox tsocks tsp unbuffer unshare valgrind watch watchexec watchman x86_64
    xinit xvfb-run zellij
"""
_NOT_ANALYSED: Final = frozenset(_OTHER_WRAPPERS.split())
"""Other programs that run programs; they are not analysed."""
_FIND_RUNS: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_SETTING: Final = lazy_pattern(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
WRAPPER_NAMES: Final = _SHELLS | _NOT_ANALYSED | _WRAPPERS.keys() | {"find"}
"""Programs that may start others. Where names of files do not differ in case, capitals do too."""


def unwrap(words: Sequence[Word]) -> Unwrapped:
    """What a command runs besides itself; its first word must have a known value."""
    path = words[0].literal or ""
    name = posixpath.basename(path)
    by_name = name == path
    if name != name.lower() and name.lower() in WRAPPER_NAMES:
        return Unwrapped(unclear=f"{name} may be another name of {name.lower()}")
    if name in _SHELLS:
        return _shell(words, by_name=by_name)
    if name == "eval":
        return _code(_given(words), "the text given to eval is only known when it runs")
    if name == "trap":
        return _trap(words)
    if name == "find":
        return _find(words)
    if name in _NOT_ANALYSED:
        return Unwrapped(unclear=f"what {name} runs is not looked into")
    if name in _WRAPPERS:
        return _wrapped(words, _WRAPPERS[name], by_name=by_name)
    return Unwrapped()


def _shell(words: Sequence[Word], *, by_name: bool) -> Unwrapped:
    unclear = f"the text given to {words[0].literal} is only known when it runs"
    for at, word in enumerate(words[1:], start=2):
        option = word.literal
        if option is None:
            break
        if _SHELL_CODE.fullmatch(option):
            # Another option may precede the code.
            given = words[at : at + 1]
            known = given and not (given[0].literal or "").startswith(("-", "+"))
            looked = _code(given, unclear) if known else Unwrapped(unclear=unclear)
            return Unwrapped(counts=not by_name, scripts=looked.scripts, unclear=looked.unclear)
        if not option.startswith(("-", "+")):
            return Unwrapped() if is_script(option) else Unwrapped(unclear=unclear)
        if not _SHELL_FLAGS.fullmatch(option):
            break
    return Unwrapped(unclear=unclear)


def _code(words: Sequence[Word], unclear: str) -> Unwrapped:
    texts = [word.literal for word in words]
    known = [text for text in texts if text is not None]
    if len(known) < len(texts):
        return Unwrapped(unclear=unclear)
    return Unwrapped(counts=not known, scripts=(" ".join(known),) if known else ())


def _given(words: Sequence[Word]) -> Sequence[Word]:
    return words[2:] if len(words) > 1 and words[1].literal == "--" else words[1:]


def _trap(words: Sequence[Word]) -> Unwrapped:
    first = next(iter(_given(words)), None)
    if first is None or (first.literal or "").startswith("-"):
        return Unwrapped()
    looked = _code((first,), "the text given to trap is only known when it runs")
    return Unwrapped(scripts=looked.scripts, unclear=looked.unclear)


def _find(words: Sequence[Word]) -> Unwrapped:
    commands: list[tuple[Word, ...]] = []
    inner: list[Word] | None = None
    for word in words[1:]:
        if inner is None:
            inner = [] if word.literal in _FIND_RUNS else None
        elif word.literal in {";", "+"}:
            commands.append(tuple(inner))
            inner = None
        else:
            inner.append(word)
    if inner is not None:
        return Unwrapped(unclear="a command given to find has no end")
    return Unwrapped(commands=tuple(commands))


def _wrapped(words: Sequence[Word], wrapper: _Wrapper, *, by_name: bool) -> Unwrapped:
    at, unclear = _after_options(words, wrapper)
    if unclear is not None:
        return Unwrapped(unclear=unclear)
    settings: list[str] = []
    while wrapper.sets and at < len(words) and _SETTING.fullmatch(words[at].source):
        settings.append(words[at].source)
        at += 1
    inner = tuple(words[at + wrapper.operands :])
    return Unwrapped(
        counts=wrapper.counts or not by_name or not inner,
        commands=(inner,) if inner else (),
        settings=tuple(settings),
        unclear=wrapper.adds,
    )


def _after_options(words: Sequence[Word], wrapper: _Wrapper) -> tuple[int, str | None]:
    """The index after the options of a wrapper, or why it is unknown."""
    at = 1
    while at < len(words):
        option = words[at].literal
        if option == "--":
            return at + 1, None
        if option is None or not option.startswith("-"):
            break
        if option in wrapper.valued:
            at += 2
        elif option in wrapper.flags or _carries_value(option, wrapper.valued):
            at += 1
        else:
            return at, f"{words[0].literal} has an option that is not known here: {option}"
    return at, None


def _carries_value(option: str, valued: frozenset[str]) -> bool:
    """Whether an option contains its value: `-n10`, `--signal=KILL`."""
    if option.startswith("--"):
        return option.partition("=")[0] in valued and "=" in option
    return option[:2] in valued and len(option) > 2
