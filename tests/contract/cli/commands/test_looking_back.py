"""`perdure show`, `diff`, `undo`, `redo` and `search`: what a Session did, and taking it back."""

import json

import pytest

from tests.contract.cli.command import MODEL, Installation

CHANGE = "create made.txt with Hello, then replace `one` with `two` in one.txt"


@pytest.fixture
def changed(installation: Installation) -> Installation:
    """An installation with a Session that made a file and changed another."""
    ran = installation.perdure("run", *MODEL, CHANGE)
    assert ran.returncode == 0, ran.stderr
    assert read(installation, "one.txt") == "two\n"
    return installation


def read(installation: Installation, name: str) -> str:
    return (installation.project / name).read_text(encoding="utf-8")


def test_a_session_is_shown_with_prompts_calls_diffs_and_totals(changed: Installation) -> None:
    shown = changed.perdure("show")
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert f"> {CHANGE}" in lines
    assert "build · demo/demo" in lines
    assert "> edit one.txt" in lines
    assert lines[lines.index("  -one") + 1] == "  +two"
    assert "one.txt is changed." in lines
    assert lines[-1].startswith("4 turns · $0.0000 · ")
    assert shown.stderr == ""


def test_what_is_shown_later_is_what_was_shown_while_it_ran(installation: Installation) -> None:
    ran = installation.perdure("run", *MODEL, CHANGE)
    later = installation.perdure("show").stdout.splitlines()
    assert [line for line in ran.stdout.splitlines() if line not in later] == []
    notes = [line for line in ran.stderr.splitlines() if line.startswith(("> ", "  "))]
    assert notes
    assert [line for line in notes if line not in later] == []


def test_a_session_is_shown_as_events_for_programs(changed: Installation) -> None:
    events = [
        json.loads(line) for line in changed.perdure("show", "--format", "json").stdout.splitlines()
    ]
    assert events[0]["type"] == "session.next.prompt.admitted"
    assert [event["durable"]["seq"] for event in events] == list(range(1, len(events) + 1))


def test_the_changes_of_a_session_are_a_diff_of_each(changed: Installation) -> None:
    told = changed.perdure("diff").stdout
    assert "+Hello\n" in told
    assert "-one\n+two\n" in told
    assert changed.perdure("diff", "--stat").stdout == (
        "added made.txt +1 -0\nmodified one.txt +1 -1\n"
    )
    listed = json.loads(changed.perdure("diff", "--format", "json").stdout)
    assert [change["path"] for change in listed] == ["made.txt", "one.txt"]


def test_a_session_without_changes_says_so(installation: Installation) -> None:
    installation.perdure("run", *MODEL, "hello")
    told = installation.perdure("diff")
    assert (told.returncode, told.stdout) == (0, "")
    assert "changed no file" in told.stderr


def test_undo_and_redo_go_back_and_forth_one_prompt_at_a_time(changed: Installation) -> None:
    changed.perdure("run", "-c", "replace `two` with `three` in one.txt")
    assert read(changed, "one.txt") == "three\n"
    first = changed.perdure("undo")
    assert "undone: replace `two` with `three` in one.txt\n  restored one.txt\n" in first.stdout
    assert read(changed, "one.txt") == "two\n"
    changed.perdure("undo")
    assert read(changed, "one.txt") == "one\n"
    assert not (changed.project / "made.txt").exists()
    nothing = changed.perdure("undo")
    assert nothing.returncode == 1
    assert "no prompt to undo" in nothing.stderr
    assert changed.perdure("redo").stdout.startswith("restored: create made.txt")
    assert read(changed, "one.txt") == "two\n"
    changed.perdure("redo")
    assert read(changed, "one.txt") == "three\n"
    over = changed.perdure("redo")
    assert over.returncode == 1
    assert "nothing is undone" in over.stderr


def test_undo_leaves_alone_what_another_program_changed(changed: Installation) -> None:
    (changed.project / "one.txt").write_text("mine\n", encoding="utf-8")
    told = changed.perdure("undo")
    assert "left alone one.txt" in told.stdout
    assert read(changed, "one.txt") == "mine\n"


def test_sessions_are_found_by_words_of_prompts_and_answers(changed: Installation) -> None:
    changed.perdure("run", *MODEL, "explain this runtime")
    (found,) = changed.perdure("search", "HELLO", "made.txt").stdout.splitlines()
    assert "Hello" in found
    (told,) = changed.perdure("search", "acknowledged", "--format", "json").stdout.splitlines()
    assert "acknowledged" in json.loads(told)["excerpt"]
    absent = changed.perdure("search", "hello", "nowhere-to-be-found")
    assert absent.stdout == ""
    assert "contains this" in absent.stderr
