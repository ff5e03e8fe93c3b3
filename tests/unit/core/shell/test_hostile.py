"""Commands that could do more than they show: each is asked about, whatever rules allow."""

from functools import partial

import pytest

from perdure.core.approval import rules as permission
from perdure.core.shell.command import CommandDirectory, review
from perdure.core.shell.harmless_program import HARMLESS, harmless_name
from perdure.core.shell.program_code import RUNNING_OPTIONS
from perdure.schema.approval.permission import Effect, Rule
from perdure.tools.builtin.bash_approval import resource_parts
from perdure.tools.shell.parser import parse_script
from tests.contract.tools.shell.hostile_commands import HOSTILE

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
    *("sh //dev/stdin", "sh /./proc/self/fd/0", "bash ../../dev/stdin", "sh stdin", "bash fd/0"),
    *("python3 ./../proc/self/fd/0", "node /dev//fd/3", "perl ../tty", "sh 0", "sh ''"),
    *("BASH -c 'touch x'", "Env touch x", "Python3 -c x", "bash-5.2 -c x", "csh -c x", "mksh x"),
    *("git unknown x", "git submodule foreach touch", "git merge -s x y", "git -C x unknown"),
    *("less '+!touch x' y", "m4 x", "Rscript -e x", "node inspect x", "python -m asyncio"),
    *("gcc @x", "gcc -Bx y", "gcc-12 -wrapper x y", "coreutils --coreutils-prog=touch x"),
    *("printf %ln x", "printf '%5n' x", "printf '%s%hhn' y x", "printf '%*d' 1 2", "printf %Q x"),
    *(
        "/proc/self/exe -c 'eval touch'",
        "./exe -c x",
        "/dev/fd/3",
        "/proc/self/fd/3 x",
        "cd /; proc/1",
    ),
    *("vim.tiny -c x", "bash-static -c x", "python3-dbg -c x", "perl.exe -e x", "git help -w x"),
    *("git x --with=touch", "git fetch --pack=touch", "curl --x='touch y' z", "git difftool"),
    *("r touch", "zpty x touch", "hist -s", "limit x", "private x"),
)
TEXTS = (
    *("'A=1 touch x'", "\"sh -c 'touch x'\"", "'cd y && sudo -n touch'", "--x=touch", "-xtouch"),
    *("--x='env touch x'", "'{ touch x; }'"),
)
"""Arguments in which a program may find the name of another, or text for a shell."""
ECHO = (Rule("bash", "echo *", "allow"),)
ALL_BUT_TOUCH = (Rule("bash", "*", "allow"), Rule("bash", "touch *", "deny"))
ALL_BUT_CANARY = (Rule("bash", "*", "allow"), Rule("bash", "canary *", "deny"))


def effect(rules: tuple[Rule, ...], command: str) -> Effect:
    found = review(command, parse=partial(parse_script, "bash"), place=PLACE)
    return permission.decide(
        rules, (), action="bash", resources=(command,), parts=resource_parts(found)
    ).effect


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
    for program in (
        "touch x",
        "touch",
        "/usr/bin/touch x",
        "./touch x",
        "'touch x'",
        "'a;touch'",
        *TEXTS,
    ):
        assert effect(ALL_BUT_TOUCH, f"{launcher} {program}") == "ask", program
        assert effect(ALL_BUT_TOUCH, f"nice {launcher} {program}") == "ask", program
    assert effect(ALL_BUT_TOUCH, f"{launcher} ls") == "allow"
    assert effect(ALL_BUT_TOUCH, f"{launcher} -v retouch 'x touch'") == "allow"


@pytest.mark.parametrize(
    "command",
    [
        *("touch x", "'touch' x", "\\touch x", 't""ouch x', "t'ou'ch x", "/usr/bin/touch x"),
        *("./touch x", "../../bin/touch", "a/touch x", "TOUCH x", "/bin/Touch x", "./'touch' x"),
        *("nice touch x", "env ./touch x", "exec touch x", "sudo -n /bin/touch x", "time touch"),
        *("sh -c 'touch x'", "bash -ec '/bin/touch x; a'", "ls && touch x", "ls; ls | touch"),
        *("busybox touch x", "command -p touch x", "CI=1 touch x", "touch > x", "> x touch y"),
        *("nohup timeout 5 setsid stdbuf -oL touch x", "ls\ntouch x", "ls &\ttouch x"),
    ],
)
def test_a_deny_holds_for_every_spelling_of_a_program(command: str) -> None:
    assert effect(ALL_BUT_TOUCH, command) == "deny"
    asked = (Rule("bash", "*", "allow"), Rule("bash", "touch *", "ask"))
    assert effect(asked, command) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        *(
            "echo 'touch x' > s; sh s",
            "echo 'touch x' > s && chmod +x s && ./s",
            "tee s; bash -e s",
        ),
        *("cp /bin/touch t; ./t x", "ln -s /bin/touch d/t && d/t", "dd if=/bin/touch of=t; ./t"),
        *("echo x > d/s.py; cd d; python3 -B s.py", "mv a b; nice ./b", "mv a b && sh -c './b'"),
    ],
)
def test_a_file_that_the_same_command_may_have_written_does_not_run_unasked(command: str) -> None:
    assert effect(ALL_BUT_TOUCH, command) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "cat s && sh s",
        "chmod +x s && ./s",
        "./s a; ./s b",
        "cp a b && python c.py b",
        "a > b; ./c b",
        "gcc a.c -o a && ./a",
    ],
)
def test_a_file_that_was_there_before_is_run(command: str) -> None:
    assert effect(ALL_BUT_TOUCH, command) == "allow"


def test_options_before_a_verb_do_not_hide_the_verb() -> None:
    rules = (
        Rule("bash", "*", "allow"),
        Rule("bash", "git push *", "deny"),
        Rule("bash", "docker push *", "ask"),
        Rule("bash", "docker compose down *", "ask"),
    )
    assert effect(rules, "git -C x push origin") == "ask"
    assert effect(rules, "git --no-pager -C x push") == "ask"
    assert effect(rules, "docker --context x push y") == "ask"
    assert effect(rules, "docker compose -f x --ansi never down") == "ask"
    assert effect(rules, "docker compose -f x up") == "allow"
    assert effect(rules, "git -C x status") == "allow"
    assert effect(rules, "git commit -m push") == "allow"


@pytest.mark.parametrize("name", RUNNING_OPTIONS)
def test_each_option_that_runs_something_is_found_in_every_spelling(name: str) -> None:
    for option in RUNNING_OPTIONS[name].split():
        spellings = [f"{option} touch", f"x {option} touch"]
        if option.endswith("="):
            spellings = [f"{option[:-1]} touch", f"{option[:-1]}touch"]
        elif option.startswith("--"):
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
        for short in abbreviations(name, option):
            assert harmless_name([*words, short]) is None, short
            assert harmless_name([*words, f"{short}=x"]) is None, short


def abbreviations(name: str, option: str) -> list[str]:
    listed = {entry.rstrip("=?") for entry in HARMLESS[name].split()}
    long = option.rstrip("=?") if option.startswith("--") else ""
    return [long[:end] for end in range(3, len(long)) if long[:end] not in listed]


def sample(option: str) -> list[str]:
    if option == "#":
        return ["-5"]
    return [option[:-2]] if option.endswith("=?") else option.replace("=", " x").split()
