"""What a command consists of, what is saved for it, and what rules say about it."""

import random
from functools import partial

import pytest

from perdure.core.approval import rules as permission
from perdure.core.limits import COMMAND_CHARS_MAX, COMMAND_DEPTH_MAX, COMMAND_PARTS_MAX
from perdure.core.shell import approval_pattern
from perdure.core.shell.command import CommandDirectory, Review, review
from perdure.core.shell.word import Word
from perdure.schema.approval.permission import Effect, Rule, Ruleset
from perdure.tools.builtin.bash_approval import resource_parts
from perdure.tools.shell.parser import parse_script
from tests.requirements import requirement

PLACE = CommandDirectory(root="/project", directory="/project")


def looked_at(command: str) -> Review:
    return review(command, parse=partial(parse_script, "bash"), place=PLACE)


def texts(command: str) -> list[str]:
    return [part.text for part in looked_at(command).parts]


def clear_texts(command: str) -> list[str]:
    assert looked_at(command).unclear is None
    return texts(command)


@requirement("S178")
@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("git   status", ["git status"]),
        ("git status && rm -rf x", ["git status", "rm -rf x"]),
        ("a | b |& c; d & e || f", ["a", "b", "c", "d", "e", "f"]),
        ("(a; b)", ["a", "b"]),
        ("{ a; b; }", ["a", "b"]),
        ("! a", ["a"]),
        ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
        ("while a; do b; done", ["a", "b"]),
        ("until a; do b; done", ["a", "b"]),
        ("case $x in a) b;; *) c;; esac", ["b", "c"]),
        ("for f in *.py; do wc $f; done", ["for f", "wc $f"]),
        ("for ((i=0; i<3; i++)); do a; done", ["i=0", "a"]),
        ("f() { rm x; }; f", ["rm x", "f"]),
        ("function f { rm x; }", ["rm x"]),
        ("echo $(rm x)", ["echo $(rm x)", "rm x"]),
        ("echo `rm x`", ["echo `rm x`", "rm x"]),
        ('echo "a ${y:-$(rm x)} b"', ['echo "a ${y:-$(rm x)} b"', "rm x"]),
        ("echo $((1 + $(rm x)))", ["echo $((1 + $(rm x)))", "rm x"]),
        ("diff <(a x) >(b y)", ["diff <(a x) >(b y)", "a x", "b y"]),
        ("[[ -f $(rm x) ]] && a", ["rm x", "a"]),
        ("cat <<EOF\n$(rm x)\nEOF", ["cat", "rm x"]),
        ("cat <<'EOF'\n$(rm x) `rm y`\nEOF", ["cat"]),
        ('cat <<< "$(rm x)"', ["cat", "rm x"]),
        ("a # && rm x", ["a"]),
        ("a \\\n b", ["a b"]),
        ("A=1 b", ["b", "A=1"]),
        ("A=1; B=(x $(rm y))", ["A=1", "B=(x $(rm y))", "rm y"]),
        ("export  PATH=/x", ["export PATH=/x"]),
        ("declare -x A; unset B", ["declare -x A", "unset B"]),
        ("alias ls=rm; source x; . y", ["alias ls=rm", "source x", ". y"]),
    ],
)
def test_every_simple_command_counts_wherever_it_stands(command: str, parts: list[str]) -> None:
    assert texts(command) == parts


@pytest.mark.parametrize("spelled", ["rm x", '"rm" x', "'rm' x", "r\\m x", "\\rm x", "r'm' \"x\""])
def test_quotes_do_not_hide_a_command(spelled: str) -> None:
    assert clear_texts(spelled) == ["rm x"]


@requirement("S178")
@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("git status -s 2>&1 | head -5", ["git status -s", "head -5"]),
        ("a\n\\rm x", ["a", "rm x"]),
        ("git 2>/dev/null push", ["git push"]),
        ("git > out push", ["git push", "> out"]),
        ("a \\\n  && b # rm x\nc", ["a", "b", "c"]),
        ('grep -n \'a $(b) *\' "x\\"y"', ["grep -n 'a $(b) *' 'x\"y'"]),
        ("CI=1 pytest -q", ["pytest -q", "CI=1"]),
        ("[ -f x ] || test a = b", ["'[' -f x ']'", "test a = b"]),
        ("set -euo pipefail; make", ["set -euo pipefail", "make"]),
        ("git log HEAD~3 -- '\u00e9'", ["git log HEAD~3 -- \u00e9"]),
        ("find . -name '*.py' ! -type d", ["find . -name '*.py' ! -type d"]),
        ("sed -n '1,20p' x; awk -F: '{print $1}' x", ["sed -n 1,20p x", "awk -F: '{print $1}' x"]),
        ("sed 's/a/b/g' x", ["sed s/a/b/g x"]),
        ("python -m pytest -q && python x.py", ["python -m pytest -q", "python x.py"]),
        ("git -C sub status", ["git -C sub status"]),
        ("bash -c 'a; b'", ["a", "b"]),
        ("printf '%s' x && kill -9 12", ["printf %s x", "kill -9 12"]),
    ],
)
def test_a_command_of_literal_words_is_clear(command: str, parts: list[str]) -> None:
    assert clear_texts(command) == parts


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("timeout -k 5 10 rm x", ["rm x"]),
        ("timeout --signal=KILL 10 rm x", ["rm x"]),
        ("nohup nice -n10 rm x &", ["rm x"]),
        ("time -p rm x", ["rm x"]),
        ("command rm x", ["rm x"]),
        ("exec rm x", ["rm x"]),
        ("env -i A=b rm x", ["A=b", "rm x"]),
        ("sudo -u root rm x", ["sudo -u root rm x", "rm x"]),
        ("xargs -0 -I {} rm {}", ["xargs -0 -I {} rm {}", "rm {}"]),
        ("find . -exec rm {} + -execdir a b \\;", None),
        ("bash -c 'a; b'", ["a", "b"]),
        ("sh -ec 'a' x y", ["a"]),
        ("eval 'a;' b", ["a", "b"]),
        ("trap 'rm x' EXIT", ["trap 'rm x' EXIT", "rm x"]),
        ("sudo env A=1 bash -c 'eval \"timeout 3 rm x\"'", None),
        ("/usr/bin/timeout 5 rm x", ["/usr/bin/timeout 5 rm x", "rm x"]),
        ("sh script.sh", ["sh script.sh"]),
        ("bash -e script.sh", ["bash -e script.sh"]),
        ("env bash -lc 'rm x'", ["rm x"]),
        ("command eval 'rm x'", ["rm x"]),
        ("eval -- rm x", ["rm x"]),
        ("trap -- 'rm x' EXIT", ["trap -- 'rm x' EXIT", "rm x"]),
    ],
)
def test_programs_that_run_programs_are_looked_through(
    command: str, parts: list[str] | None
) -> None:
    found = texts(command)
    assert found == parts if parts is not None else any(t.startswith("rm ") for t in found)


@pytest.mark.parametrize(
    "command",
    [
        "$X a",
        "$(a) b",
        "{rm,-rf,x}",
        "r* x",
        "$'rm' x",
        'bash -c "$X"',
        'eval "$X"',
        "trap $X EXIT",
        "timeout --strange 5 rm x",
        "sudo -i",
        "! { rm x; }",
        "time { rm x; }",
        "coproc X { rm x; }",
        "r\\\nm x",
        "a=$\nrm x",
        "a <<<\r rm x",
        "x=]$=exec rm x",
        "watch rm x",
        "su -c 'rm x'",
        "sh -c -- 'rm x'",
        "bash --norc -c 'rm x'",
        "bash -c",
        "curl u | sh",
        "bash <<< 'rm x'",
        "bash $X",
        "test -v 'a[$(rm x)]'",
        "echo ${x/a/`rm b`}",
        "rm$IFS-rf$IFS/",
        "env -S 'rm x'",
        "cat <<EOF\n`rm x`\nEOF",
        "cat <<EOF\n${y:-`rm x`}\nEOF",
        "cat <<EOF | sh\n`rm x`\nEOF",
        "find . -exec rm {}",
        "echo 'open",
        "(((((",
        "if a; then",
        "echo *(e:'rm x':)",
        "\ud800",
        "a" * (COMMAND_CHARS_MAX + 1),
        "; ".join(f"c{n}" for n in range(COMMAND_PARTS_MAX + 1)),
        "sudo " * (COMMAND_DEPTH_MAX + 2) + "rm x",
    ],
)
def test_what_is_not_understood_is_said_to_be_unclear(command: str) -> None:
    found = looked_at(command)
    assert found.unclear is not None
    assert len(found.parts) <= COMMAND_PARTS_MAX


def test_the_syntax_of_another_shell_is_unclear() -> None:
    assert parse_script("/usr/bin/fish", "git status").unclear is not None
    assert parse_script("/bin/zsh", "git status").unclear is None


@pytest.mark.parametrize(
    ("command", "part", "outside"),
    [
        ("a > out", "> out", False),
        ("a >> sub/out", "> sub/out", False),
        ("a &> /project/out", "> /project/out", False),
        ("a >| /etc/x", "> /etc/x", True),
        ("a > ~/.bashrc", "> ~/.bashrc", True),
        ("a > ../x", "> ../x", True),
        ("a > sub/../../x", "> sub/../../x", True),
        ('a > "$X"', '> "$X"', True),
        ("a < /etc/passwd", "< /etc/passwd", True),
        ("exec 3<> /dev/tcp/h/1", None, True),
        ("cd .. && a", "cd ..", True),
        ("cd && a", "cd", True),
        ("cd - && a", "cd -", True),
        ("cd $X && a", "cd $X", True),
        ("pushd /etc && a", "pushd /etc", True),
    ],
)
def test_files_written_and_places_outside_are_parts_of_their_own(
    command: str, part: str | None, *, outside: bool
) -> None:
    found = looked_at(command)
    if part is None:
        assert found.unclear or any(p.outside for p in found.parts)
        return
    assert {p.text: p.outside for p in found.parts}[part] is outside


@pytest.mark.parametrize(
    "command", ["a 2>&1", "a > /dev/null", "a < in", "cd sub && a", "cd /project/sub; a", "a 3>&-"]
)
def test_what_stays_inside_is_not_asked_about(command: str) -> None:
    assert clear_texts(command) == ["a"]


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("git status -s", "git status *"),
        ("npm run test -- --watch", "npm run test -- --watch"),
        ("npm test", "npm test"),
        ("docker compose up -d", "docker compose up -d"),
        ("make test", "make test"),
        ("make", "make"),
        ("pytest tests -q", "pytest tests -q"),
        ("./run.sh fast", "./run.sh fast"),
        ("ls *.py", None),
        ("bash x", "bash x"),
        ("python x.py", "python x.py"),
        ("/usr/bin/python3 x.py", "/usr/bin/python3 x.py"),
        ("python3.12 x.py", "python3.12 x.py"),
        ("rm -rf build", "rm -rf build"),
        ("sudo ls", "sudo ls"),
        ("curl http://x", "curl http://x"),
        ("git push origin", "git push origin"),
        ("git -c core.pager=x log", "git -c core.pager=x log"),
        ("uv run pytest", "uv run pytest"),
        ("docker compose exec a b", "docker compose exec a b"),
        ("gh api user", "gh api user"),
        ("rm *", None),
        ("rm 'a?'", None),
        ("rm -rf $X*", None),
        ("git", "git"),
        ("git $X", "git $X"),
        ("grep -rn x src | b", "grep *"),
        ("sort -rnk2 x", "sort *"),
        ("sort -o x y", "sort -o x y"),
        ("sort -nox y", "sort -nox y"),
        ("sort --out=x y", "sort --out=x y"),
        ("sort -T d y", "sort -T d y"),
        ("uniq -c x", "uniq *"),
        ("uniq x y", "uniq x y"),
        ("uniq -- x y", "uniq -- x y"),
        ("uniq x -f1", "uniq x -f1"),
        ("xxd -c16 x", "xxd *"),
        ("xxd x -c16", "xxd x -c16"),
        ("xxd x --", "xxd x --"),
        ("xxd -- x", "xxd *"),
        ("git diff -U --output=x", "git diff -U --output=x"),
        ("git diff -U 5 x", "git diff *"),
        ("sort -t -o x", "sort -t -o x"),
        ("sort x -- -o y", "sort *"),
        ("ps aux", "ps aux"),
        ("ps -ef", "ps *"),
        ("xxd -r x", "xxd -r x"),
        ("rg -n x src", "rg *"),
        ("rg --pre=x y", "rg --pre=x y"),
        ("rg -z x", "rg -z x"),
        ("git log --oneline -5 -n 3", "git log *"),
        ("git diff --output=x", "git diff --output=x"),
        ("git diff --out x", "git diff --out x"),
        ("git grep -n x", "git grep *"),
        ("git grep -nO x", "git grep -nO x"),
        ("git fetch", "git fetch"),
        ("git add x", "git add x"),
        ("git branch -av", "git branch *"),
        ("git branch x", "git branch x"),
        ("git stash list", "git stash list *"),
        ("git stash drop", "git stash drop"),
        ("tree -L 2", "tree *"),
        ("tree -o x", "tree -o x"),
        ("hostname x", "hostname x"),
        ("test -f x", "test *"),
        ("split x", "split x"),
        ("find . -name x", "find . -name x"),
        ("/usr/bin/sort x", "/usr/bin/sort x"),
    ],
)
def test_always_saves_a_prefix_only_where_that_is_harmless(
    command: str, pattern: str | None
) -> None:
    part, *_ = looked_at(command).parts
    assert part.pattern == pattern


def test_a_text_that_is_saved_word_for_word_matches_nothing_else() -> None:
    draw = random.Random(7)
    for _ in range(2_000):
        text = "".join(draw.choices("ab *?\\/'\"$", k=draw.randint(1, 8)))
        other = "".join(draw.choices("ab *?\\/'\"$", k=draw.randint(1, 8)))
        saved = approval_pattern.exact_pattern(text)
        if saved is None or text == other:
            continue
        rules: Ruleset = (Rule("bash", saved, "allow"),)
        # A backslash is compared as a slash: such a command is never approved as a whole.
        allowed = permission.evaluate(rules, "bash", other) == "allow"
        assert not allowed or other.replace("\\", "/") == text


def decided(rules: Ruleset, command: str, *, approvals: Ruleset = ()) -> Effect:
    found = looked_at(command)
    return permission.decide(
        rules, approvals, action="bash", resources=(command,), parts=resource_parts(found)
    ).effect


def allowing(*patterns: str) -> Ruleset:
    return tuple(Rule("bash", pattern, "allow") for pattern in patterns)


@requirement("S178")
@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("git status", "allow"),
        ("cd sub && git status -s", "allow"),
        ("git log | wc -l", "allow"),
        ("timeout 5 git status", "allow"),
        ("git status && make", "ask"),
        ("git status $(make)", "ask"),
        ("git log > out", "ask"),
        ("LD_PRELOAD=x git status", "ask"),
        ("git status; $X", "ask"),
        ("/tmp/git status", "ask"),
        ("git push", "deny"),
        ("git status && git push -f", "deny"),
        ("git status $(git push)", "deny"),
        ("bash -c 'git push'", "deny"),
        ("sudo git push", "deny"),
        ('"git" "push"', "deny"),
        ("/usr/bin/git push", "deny"),
        ("git push && $X", "deny"),
        ("make x | tee y", "ask"),
        ("make exactly this", "allow"),
        ("make exactly this; make more", "ask"),
    ],
)
def test_a_rule_allows_the_whole_only_if_every_part_is_allowed(
    command: str, effect: Effect
) -> None:
    rules = (
        Rule("bash", "*", "ask"),
        *allowing("git *", "wc *", "tee *", "make exactly this"),
        Rule("bash", "git push *", "deny"),
    )
    assert decided(rules, command) == effect


@pytest.mark.parametrize(
    ("saved", "command", "effect"),
    [
        ("sort *", "sort -n x", "allow"),
        ("sort *", "sort -o x y", "ask"),
        ("sort *", "sort --compress-program=x y", "ask"),
        ("sort *", "sort *", "ask"),
        ("git grep *", "git grep -n x | sort", "ask"),
        ("git grep *", "git grep -Otouch x", "ask"),
        ("git fetch *", "git fetch --upload-pack=x y", "ask"),
        ("git fetch *", "git fetch", "ask"),
        ("rg *", "rg --pre x y", "ask"),
        ("split *", "split --filter=x y", "ask"),
        ("git diff *", "git diff --output=x", "ask"),
        ("test *", "test -v 'a[$(x)]'", "ask"),
        ("npm test *", "npm test -- --watch", "ask"),
        ("rm -rf build", "rm -rf build", "allow"),
        ("rm -rf build", "rm -rf 'build'", "allow"),
        ("rm -rf build", "rm -rf build x", "ask"),
    ],
)
def test_a_saved_rule_covers_only_what_would_be_saved_as_it_now(
    saved: str, command: str, effect: Effect
) -> None:
    assert decided((), command, approvals=allowing(saved)) == effect


def test_where_everything_else_is_denied_what_is_unclear_is_denied() -> None:
    rules = (Rule("bash", "*", "deny"), *allowing("git *"))
    assert decided(rules, "cd sub && git status") == "allow"
    assert decided(rules, "git status; rm x") == "deny"
    assert decided(rules, "git status; $X") == "deny"


def test_a_person_who_approved_a_text_approved_it_as_it_is() -> None:
    rules = (Rule("bash", "*", "ask"), Rule("bash", "rm *", "deny"))
    assert decided(rules, "$X a", approvals=allowing("$X a")) == "allow"
    assert decided(rules, "$X a b", approvals=allowing("$X a")) == "ask"
    assert decided(rules, "$X a; rm b", approvals=allowing("$X a; rm b")) == "deny"


def test_a_rule_about_the_whole_text_can_still_ask_or_deny() -> None:
    rules = (*allowing("*", "a *", "b *"), Rule("bash", "* | b *", "ask"))
    assert decided(rules, "a x; b y") == "allow"
    assert decided(rules, "a x | b y") == "ask"


def test_only_rules_that_tell_commands_apart_need_a_look_into_them() -> None:
    assert permission.common_effect((Rule("*", "*", "allow"),), "bash") == "allow"
    assert permission.common_effect((*allowing("git *"), Rule("*", "*", "deny")), "bash") == "deny"
    assert permission.common_effect((Rule("*", "*", "allow"), *allowing("git *")), "bash") is None
    assert permission.common_effect((Rule("edit", "x", "deny"),), "bash") == "ask"


def test_no_text_however_strange_is_too_much_for_the_review() -> None:
    draw = random.Random(11)
    pieces = ["rm x", "$(", ")", "`", "'", '"', "\\", "{", "}", ";", "|", "<<E\n", "E\n", "sudo "]
    pieces += ["bash -c '", "((", "))", "case ", " in ", "esac", "\0", "\u00e9", "${", "> ", "for "]
    for _ in range(1_000):
        text = "".join(draw.choices(pieces, k=draw.randint(1, 30)))
        found = looked_at(text)
        assert found.unclear is not None or all(part.text for part in found.parts)


def test_a_word_without_a_known_value_is_never_part_of_a_pattern() -> None:
    words = (Word("git", "git"), Word("$X", None), Word("a", "a"))
    assert approval_pattern.pattern_for(words) == "git $X a"
