"""Requests of a run at the terminal: diffs, subagents, and several requests in order."""

import json
import os

import pytest

from tests.contract.cli.command import MODEL, PATIENCE_SECONDS, Installation, shown_until

EDIT = "replace `one` with `two` in one.txt"


@pytest.fixture
def asking(installation: Installation) -> Installation:
    """An installation in which every edit needs a permission."""
    asks = {"permissions": [{"action": "edit", "resource": "*", "effect": "ask"}]}
    (installation.project / "opencode.json").write_text(json.dumps(asks), encoding="utf-8")
    return installation


@pytest.mark.parametrize(("typed", "after"), [("y\n", "two\n"), ("n\n", "one\n")])
def test_the_diff_of_an_edit_is_shown_before_it_can_be_allowed(
    asking: Installation, typed: str, after: str
) -> None:
    with asking.at_terminal("run", *MODEL, EDIT) as process:
        shown = shown_until(process.terminal, "[N]o: ")
        process.answer(typed)
    assert "| -one" in shown
    assert "| +two" in shown
    assert shown.index("| +two") < shown.index("Allow edit?")
    assert (asking.project / "one.txt").read_text(encoding="utf-8") == after


def test_a_refusal_without_a_reason_ends_the_run_and_says_so(asking: Installation) -> None:
    with asking.at_terminal("run", *MODEL, EDIT) as process:
        shown_until(process.terminal, "[N]o: ")
        os.write(process.terminal, b"n\n")
        shown = shown_until(process.terminal, "was refused\r\n")
        assert process.child.wait(PATIENCE_SECONDS) == 1
    assert shown.splitlines()[-1] == "stopped: the permission was refused"


def test_a_request_that_waits_from_an_earlier_process_is_asked_again(
    asking: Installation,
) -> None:
    with asking.at_terminal("run", *MODEL, EDIT) as process:
        shown_until(process.terminal, "[N]o: ")
        process.child.end()
    with asking.at_terminal("run", "--continue") as process:
        shown = shown_until(process.terminal, "[N]o: ")
        process.answer("y\n")
    assert "| +two" in shown
    assert (asking.project / "one.txt").read_text(encoding="utf-8") == "two\n"


@pytest.mark.parametrize(("typed", "after"), [("y\n", "two\n"), ("n\n", "one\n")])
def test_what_a_subagent_asks_is_asked_at_the_same_terminal(
    asking: Installation, typed: str, after: str
) -> None:
    with asking.at_terminal("run", *MODEL, f"use a subagent to {EDIT}") as process:
        shown = shown_until(process.terminal, "[N]o: ")
        process.answer(typed)
    assert "A subagent asks (general: " in shown
    assert "| +two" in shown
    assert (asking.project / "one.txt").read_text(encoding="utf-8") == after


def test_an_answer_of_another_client_takes_the_question_from_the_screen(
    asking: Installation,
) -> None:
    with (
        asking.server("--no-auth") as url,
        asking.at_terminal("run", "--attach", url, *MODEL, EDIT) as process,
    ):
        shown_until(process.terminal, "[N]o: ")
        program = (
            "import perdure, sys\n"
            "with perdure.connect_blocking(sys.argv[1]) as client:\n"
            "    (request,) = client.permissions.requests(directory=sys.argv[2])\n"
            "    client.sessions.permissions.reply(request.session_id, request.id, 'once')\n"
        )
        answered = asking.python(program, url, os.fspath(asking.project))
        assert answered.returncode == 0, answered.stderr
        shown_until(process.terminal, "Another client has answered")
        assert process.child.wait(PATIENCE_SECONDS) == 0
    assert (asking.project / "one.txt").read_text(encoding="utf-8") == "two\n"
