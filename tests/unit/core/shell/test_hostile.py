"""Commands that could do more than they show: each is asked about, whatever rules allow."""

from functools import partial

import pytest

from perdure.core.approval import rules as permission
from perdure.core.approval.rules import ResourceParts
from perdure.core.shell.command import CommandDirectory, review
from perdure.core.shell.harmless_program import HARMLESS, harmless_name
from perdure.core.shell.program_code import RUNNING_OPTIONS
from perdure.schema.approval.permission import Effect, Rule
from perdure.tools.shell.parser import parse_script
from tests.contract.tools.shell.drawn_commands import HOSTILE

PLACE = CommandDirectory(root="/project", directory="/project")
CODE = "$(touch x)"
EXPANSIONS = (
    *("$x", "${x}", '"$x"', "$'\\x24x'", '$"x"', "${x@P}", "${x@Q}", "${!x}", "${x:y}", "${x:0:y}"),
    *("$((x))", "$[x]", "$(x)", "`x`", "<(x)", ">(x)", "{x,y}", "{1..3}", "*", "?", "[a]"),
    *("a=~x", "x:~", "@(x)", "!(x)", "x\\\ny", "\u00e9", "\x01", "a#b", "a\\ #", "x>y", "((x))"),
)
BUILTINS = (
    *("eval touch x", "trap 'touch x' EXIT", ". x", "source x", "alias a=touch", "hash -p x a"),
    *(
        "test -v x",
        "[ -v x ]",
        "test -R x",
        "printf -v x y",
        "printf %n x",
        "read x",
        "read 'x[0]'",
    ),
    *("declare x=1", "let x", "unset x", "export PATH=x", "readonly x", "local x", "shopt -s x"),
    *("set -x", "set -k", "set -- a", "enable -f x y", "mapfile -C touch x", "complete -C touch x"),
    *("compgen -C touch x", "bind -x x", "fc -s", "exit 'a[0]'", "getopts a b", "coproc touch x"),
    *(f"test 'a[{CODE}]' -eq 0", f"printf %d 'a[{CODE}]'", "ulimit -n 'a[0]'", "wait -p x"),
    *("jobs -x a", "export A", "typeset x", "readarray x", "unalias a", "popd", "shift 'a[0]'"),
)
SETTINGS = (
    *("PATH=x a", "LD_PRELOAD=x a", "PS4='$(touch x)' a", "BASH_ENV=x bash y", "ENV=x sh y"),
    *("IFS=x a", "PAGER=touch git log", "EDITOR=touch git commit", "CI='$(touch x)' a", "x+=1 a"),
    *("env PATH=x a", "LC_ALL=x a", "GIT_SSH_COMMAND=touch git fetch", "PYTHONPATH=x python y.py"),
    *("time A=1 touch x", "sudo LD_PRELOAD=x ls", "A=1", "'A=1' b"),
)
PROGRAMS = (
    *("python -c x", "python -", "python", "python < x", "python /dev/stdin", "python -m timeit x"),
    *("python3.12 -Bc x", "node -e x", "perl -e x", "perl -ne x y", "ruby -e x", "php -r x"),
    *("awk 'BEGIN{system(\"x\")}'", "awk '{print > \"x\"}' y", "awk '{print | \"x\"}' y"),
    *("awk -v a=b '{system(a)}'", "awk -f x", "awk", "sed 's/a/b/w x' y", "sed 's/a/b/e' y"),
    *("sed 's/a/b/w x/' y", "sed 'e x' y", "sed -i s/a/b/ y", "sed -n '1w x' y", "sed -f x y"),
    *("find . -exec touch x ';'", "xargs touch", "xargs env", "tar cIf touch x"),
    *("tar -xf x --checkpoint-action=exec=x", "tar --to-comm=x", "git -c a=b log"),
    *("git config alias.x '!touch'", "git clone ext::x y", "git -p log", "git --exec-path=x log"),
    *("git -C x -c a=b log", "git -C x grep -O y", "git rebase -x touch main"),
    *("git bisect run touch", "make SHELL=x", "ssh -oProxyCommand=x y", "vim -c x"),
    *("sqlite3 x .shell", "watch touch", "sh -s", "bash -i", "sh /dev/stdin", "flock x touch"),
    *(
        "busybox sh",
        "env -S touch",
        "'a b' c",
        "doas -s",
        "exec -z a",
        "rg --pr x",
        "sort --comp x",
    ),
    *("/lib64/ld-linux-x86-64.so.2 /bin/touch x", "toybox touch x", "su -c touch"),
)
ECHO = (Rule("bash", "echo *", "allow"),)
ALL_BUT_TOUCH = (Rule("bash", "*", "allow"), Rule("bash", "touch *", "deny"))
ALL_BUT_CANARY = (Rule("bash", "*", "allow"), Rule("bash", "canary *", "deny"))


def effect(rules: tuple[Rule, ...], command: str) -> Effect:
    found = review(command, parse=partial(parse_script, "bash"), place=PLACE)
    parts = ResourceParts(
        texts=tuple(part.text for part in found.parts) or (command,),
        patterns=tuple(part.pattern for part in found.parts),
        spellings=tuple(form for part in found.parts for form in part.spellings),
        complete=found.unclear is None,
    )
    return permission.decide(rules, (), action="bash", resources=(command,), parts=parts).effect


@pytest.mark.parametrize("word", EXPANSIONS)
@pytest.mark.parametrize("form", ["echo {}", "echo a {} b", "echo ./{}", "echo a; echo {}"])
def test_a_word_that_is_not_literal_is_asked_about(form: str, word: str) -> None:
    command = form.replace("{}", word)
    assert effect(ECHO, command) != "allow"
    assert effect(ALL_BUT_TOUCH, command) != "allow"


@pytest.mark.parametrize("command", [*BUILTINS, *SETTINGS, *PROGRAMS])
def test_what_is_not_looked_into_does_not_slip_past_a_deny(command: str) -> None:
    assert effect(ALL_BUT_TOUCH, command) != "allow"
    assert effect(ALL_BUT_TOUCH, f"echo a && {command}") != "allow"
    assert effect(ALL_BUT_TOUCH, f"nice {command}") != "allow"


@pytest.mark.parametrize("command", HOSTILE)
def test_no_hostile_example_is_allowed(command: str) -> None:
    assert effect(ECHO, command) != "allow"
    if "canary" in command:
        assert effect(ALL_BUT_CANARY, command) != "allow"


@pytest.mark.parametrize(
    "launcher", ["ssh h", "docker run i", "docker exec -it c", "npx", "uv run", "uv run --with x"]
)
def test_a_deny_holds_for_what_a_launcher_runs(launcher: str) -> None:
    assert effect(ALL_BUT_TOUCH, f"{launcher} touch x") == "deny"
    assert effect(ALL_BUT_TOUCH, f"{launcher} ls") == "allow"


@pytest.mark.parametrize("name", RUNNING_OPTIONS)
def test_each_option_that_runs_something_is_found_in_every_spelling(name: str) -> None:
    for option in RUNNING_OPTIONS[name].split():
        spellings = [f"{option} touch", f"x {option} touch"]
        if option.startswith("--"):
            spellings += [f"{option}=touch", f"{option[:-1]}=touch"]
        elif len(option) == 2:
            spellings += [f"{option}touch", f"-v{option[1]} touch"]
        for spelling in spellings:
            assert effect(ALL_BUT_TOUCH, f"{name} {spelling}") != "allow", spelling
            assert harmless_name(f"{name} {spelling}".split()) is None, spelling


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_program_is_not_harmless_with_an_unknown_option(name: str) -> None:
    words = name.split()
    assert harmless_name(words) == name
    if HARMLESS[name] == "...":
        return
    for unknown in ("--perdure", "--perdure=x", "-\u00e9", "--out", "--o=x"):
        assert harmless_name([*words, unknown]) is None
        assert harmless_name([*words, "x", unknown]) is None
    for option in HARMLESS[name].split():
        if not option.startswith("<"):
            assert harmless_name([*words, *sample(option)]) == name, option


def sample(option: str) -> list[str]:
    if option == "#":
        return ["-5"]
    return [option[:-2]] if option.endswith("=?") else option.replace("=", " x").split()
