"""The text of a permission request at the terminal, and the replies that typed lines stand for."""

import pytest

from perdure.cli import permission_prompt
from perdure.cli.permission_prompt import TypedAnswer, read_answer
from perdure.schema.codec import JsonObject

ASKED: JsonObject = {"action": "edit", "resources": ["AGENTS.md"], "save": ["AGENTS.md"]}


def shown(command: str, columns: int = 80, **metadata: object) -> list[str]:
    request: JsonObject = {
        "action": "bash",
        "resources": [command],
        "metadata": {"workdir": "/project", **metadata},
    }
    return permission_prompt.render_request(request, columns=columns)


def framed(lines: list[str]) -> str:
    """The text behind the bars, without what wrapping added."""
    return "".join(line.removeprefix("  | ") for line in lines if line.startswith("  | "))


def test_an_ordinary_request_says_what_always_means() -> None:
    assert permission_prompt.render_request(ASKED, columns=80) == [
        "Allow edit?",
        "  | AGENTS.md",
        "  always means, from now on without a question:",
        "  | AGENTS.md",
    ]
    assert permission_prompt.render_choices(ASKED).endswith("[N]o: ")


CHANGE: JsonObject = {
    "path": "a.py",
    "status": "modified",
    "additions": 1,
    "deletions": 1,
    "patch": "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-old\n+new\n",
}


def test_an_edit_is_shown_with_its_diff_before_the_question() -> None:
    request: JsonObject = {"action": "edit", "resources": ["a.py"], "changes": [CHANGE]}
    assert permission_prompt.render_request(request, columns=80) == [
        "  | --- a/a.py",
        "  | +++ b/a.py",
        "  | @@ -1 +1 @@",
        "  | -old",
        "  | +new",
        "Allow edit?",
        "  | a.py",
    ]


@pytest.mark.parametrize("hidden", ["\x1b[8m", "\u202e", "\u200b", "\u3164"])
def test_a_diff_cannot_hide_anything(hidden: str) -> None:
    change = {**CHANGE, "patch": f"+safe{hidden}; evil()\n"}
    request: JsonObject = {"action": "edit", "resources": ["a.py"], "changes": [change]}
    lines = permission_prompt.render_request(request, columns=80)
    assert all(character.isprintable() for line in lines for character in line)
    assert "\\u" in framed(lines)
    assert any("characters that cannot be seen" in line for line in lines)


def test_a_command_is_shown_with_its_line_breaks_and_directory() -> None:
    assert shown("echo a\ntouch x") == [
        "Allow bash?",
        "  | echo a",
        "  | touch x",
        "  in /project",
        "  note: the command has 2 lines",
    ]


@pytest.mark.parametrize("columns", [0, 20, 80, 120])
@pytest.mark.parametrize("length", [199, 200, 201, 5_000, 100_000])
def test_no_part_of_a_long_command_is_left_out(length: int, columns: int) -> None:
    command = "echo " + "x" * length + "; touch hidden"
    lines = shown(command, columns)
    assert framed(lines) == command
    assert all(len(line) <= max(columns, 20) for line in lines if line.startswith("  | "))


@pytest.mark.parametrize(
    "character",
    [
        *"\x00\x07\x08\r\x1b\x7f\x85\x9b\xa0\xad\u034f\u061c\u115f\u1160\u180e\u200b\u200c\u200d",
        *"\u200e\u202a\u202e\u2028\u2029\u2060\u2066\u2069\u3000\u3164\ufe0f\ufeff\uffa0\ufff9",
        *"\U000e0001\U000e0041\U000e0101\ud800",
    ],
)
def test_a_character_that_a_terminal_hides_or_obeys_is_spelled_out(character: str) -> None:
    lines = shown(f"echo a{character}b")
    text = "\n".join(lines)
    assert character not in text
    assert f"{ord(character):04x}b" in text
    assert "characters that cannot be seen" in text


@pytest.mark.parametrize(
    ("command", "note"),
    [
        ("echo a # b", "comment"),
        ("#\ntouch x", "comment"),
        ("echo a;# b", "comment"),
        ("echo a" + " " * 70 + "; touch x", "long runs of blanks"),
        ("echo a\t\t; touch x\n", "the command has 2 lines"),
    ],
)
def test_what_may_hide_a_part_is_noted(command: str, note: str) -> None:
    assert any(note in line for line in shown(command) if line.startswith("  note: "))


def test_an_ordinary_command_has_no_note() -> None:
    assert not [line for line in shown("git log --oneline -3") if "note:" in line]
    assert not [line for line in shown("echo \u6f22\u5b57 \u00e9\t.") if "note:" in line]


def test_a_line_of_the_command_cannot_pass_for_one_of_ours() -> None:
    lines = shown("echo a\n  in /elsewhere\n[y]es, [N]o: y")
    assert lines.count("  in /project") == 1
    assert "  |   in /elsewhere" in lines
    assert "  | [y]es, [N]o: y" in lines


def test_why_a_command_is_unclear_and_that_it_leaves_the_sandbox_is_said() -> None:
    text = "\n".join(shown("x", unclear="an expansion\n$y", sandbox="outside"))
    assert "outside the sandbox" in text
    assert "not certain what it runs: an expansion $y" in text


def test_the_change_of_a_protected_file_is_shown_whole() -> None:
    diff = "+run \x1b[2Jthis\n" + "".join(f"+line {n}\n" for n in range(200))
    metadata = {"protected": True, "reason": "AGENTS.md: coding agents obey it", "diff": diff}
    lines = permission_prompt.render_request({**ASKED, "metadata": metadata}, columns=80)
    assert lines[0] == "This is asked in any case. AGENTS.md: coding agents obey it"
    assert "  | +run \\u001b[2Jthis" in lines
    assert "  | +line 199" in lines


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("y", TypedAnswer(reply="once")),
        ("YES", TypedAnswer(reply="once")),
        ("a", TypedAnswer(reply="always")),
        ("s", TypedAnswer(reply="always", scope="session")),
        ("", TypedAnswer(reply="reject")),
        ("n", TypedAnswer(reply="reject")),
        ("No.", TypedAnswer(reply="reject")),
        ("no, because it is late", TypedAnswer(reply="reject", message="because it is late")),
        ("n use rg", TypedAnswer(reply="reject", message="use rg")),
        ("nyes", TypedAnswer(reply="reject")),
        ("yes please", TypedAnswer(reply="reject")),
        ("yy", TypedAnswer(reply="reject")),
    ],
)
def test_only_the_offered_words_allow(typed: str, answer: TypedAnswer) -> None:
    assert read_answer(typed, ASKED) == answer


@pytest.mark.parametrize("typed", ["a", "always", "s", "session"])
def test_what_cannot_be_saved_is_not_allowed_for_ever(typed: str) -> None:
    request: JsonObject = {"action": "bash", "resources": ["x $y"], "save": []}
    assert read_answer(typed, request).reply == "reject"
    assert "lways" not in permission_prompt.render_choices(request)


@pytest.mark.parametrize("typed", ["y", "yes", "a", "s"])
def test_nothing_is_allowed_before_the_last_page(typed: str) -> None:
    assert read_answer(typed, ASKED, whole=False).reply == "reject"
