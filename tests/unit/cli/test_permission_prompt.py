"""What a person is shown of a permission request at the terminal."""

from perdure.cli import permission_prompt
from perdure.schema.codec import JsonObject

ASKED: JsonObject = {"action": "edit", "resources": ["AGENTS.md"], "save": ["AGENTS.md"]}


def test_an_ordinary_request_is_one_question() -> None:
    assert permission_prompt.render_question(ASKED) == (
        "Allow edit AGENTS.md?\n  always means: AGENTS.md\n[y]es, [a]lways, [N]o: "
    )


def test_the_change_of_a_protected_file_is_shown_cleaned_and_bounded() -> None:
    diff = "+run \x1b[2Jthis\n" + "".join(f"+line {n}\n" for n in range(200))
    metadata = {"protected": True, "reason": "AGENTS.md: coding agents obey it", "diff": diff}
    shown = permission_prompt.render_question({**ASKED, "metadata": metadata})
    lines = shown.splitlines()
    assert lines[0] == "This is asked in any case. AGENTS.md: coding agents obey it"
    assert "\x1b" not in shown
    assert lines[1].startswith("  +run")
    assert "  (101 more lines)" in lines
    assert lines[-3:] == [
        "Allow edit AGENTS.md?",
        "  always means: AGENTS.md",
        "[y]es, [a]lways, [N]o: ",
    ]
