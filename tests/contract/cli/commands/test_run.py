"""`perdure run`: what it prints, how it ends, and that it waits for no absent person."""

import json
import os
import signal

import pytest

from tests.contract.cli.command import (
    MODEL,
    PATIENCE_SECONDS,
    Installation,
    shown_until,
)

PERMISSION = "show me a permission request"


def test_one_prompt_prints_the_answer_and_tells_what_the_tools_do(
    installation: Installation,
) -> None:
    ran = installation.perdure("run", *MODEL, "list the files here, then stop")
    assert ran.returncode == 0, ran.stderr
    assert "one.txt" in ran.stdout
    assert "> glob" in ran.stderr
    assert "glob done" in ran.stderr
    assert "> glob" not in ran.stdout


def test_the_tools_work_in_the_directory_the_command_was_given_in(
    installation: Installation,
) -> None:
    ran = installation.perdure("run", *MODEL, "create a file made.txt with Hello")
    assert ran.returncode == 0, ran.stderr
    assert (installation.project / "made.txt").read_text(encoding="utf-8") == "Hello\n"


def test_a_prompt_can_come_from_stdin(installation: Installation) -> None:
    ran = installation.perdure("run", *MODEL, "-", input="list the files here\n")
    assert "one.txt" in ran.stdout
    empty = installation.perdure("run", *MODEL, "-", input=" \n")
    assert empty.returncode == 2
    assert "empty" in empty.stderr


def test_json_prints_every_event_on_a_line(installation: Installation) -> None:
    ran = installation.perdure("run", *MODEL, "--format", "json", "list the files here")
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    kinds = [event["type"] for event in events]
    for kind in ("prompt.admitted", "prompted", "text.delta", "tool.success", "step.ended"):
        assert f"session.next.{kind}" in kinds
    assert events[-1]["data"]["status"] == {"type": "idle"}
    assert len({event["data"]["sessionID"] for event in events}) == 1


@pytest.mark.parametrize("switch", [(), (*MODEL, "--agent", "build")])
def test_a_session_can_be_continued(installation: Installation, switch: tuple[str, ...]) -> None:
    installation.perdure("run", *MODEL, "list the files here")
    (session_id, *_) = installation.perdure("sessions").stdout.split()
    ran = installation.perdure("run", "--session", session_id, *switch, "explain this runtime")
    assert ran.returncode == 0, ran.stderr
    exported = json.loads(installation.perdure("export", session_id).stdout)
    spoken = [m["text"] for m in exported["messages"] if m["type"] == "user"]
    assert spoken == ["list the files here", "explain this runtime"]


def test_a_failed_step_is_told_and_ends_with_status_one(installation: Installation) -> None:
    ran = installation.perdure("run", "--model", "nobody/nothing", "hello")
    assert ran.returncode == 1
    assert "nobody" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--session", "ses_none", "hello"),
        ("--session", "not-an-id", "hello"),
        ("--model", "nothing", "hello"),
        ("--model", "/x", "hello"),
        ("--attach", "ftp://x", "hello"),
        ("--attach", "http://[::1", "hello"),
        ("--attach", "http://127.0.0.1:1", "hello"),
    ],
)
def test_what_cannot_be_done_is_explained_in_one_line(
    installation: Installation, arguments: tuple[str, ...]
) -> None:
    ran = installation.perdure("run", *arguments)
    assert ran.returncode == 1
    problem = ran.stderr.splitlines()[-1]
    assert problem.startswith("perdure: ")
    assert "Traceback" not in ran.stderr


def test_a_data_directory_that_cannot_be_used_is_explained(installation: Installation) -> None:
    installation.data_dir.write_text("a file", encoding="utf-8")
    ran = installation.perdure("run", *MODEL, "hello")
    assert ran.returncode == 1
    assert str(installation.data_dir) in ran.stderr
    assert "Traceback" not in ran.stderr


def test_without_a_terminal_a_permission_is_refused_and_nothing_waits(
    installation: Installation,
) -> None:
    ran = installation.perdure("run", *MODEL, PERMISSION)
    assert "read failed" in ran.stderr
    assert "nobody is there" in ran.stderr


@pytest.mark.parametrize(
    ("typed", "allowed"),
    [("y\n", True), ("always\n", True), ("\n", False), ("no\n", False), ("\x04", False)],
)
def test_on_a_terminal_a_permission_is_asked_for(
    installation: Installation, typed: str, *, allowed: bool
) -> None:
    with installation.at_terminal("run", *MODEL, PERMISSION) as process:
        asked = shown_until(process.terminal, "[N]o: ")
        said = process.answer(typed)
    assert "/etc/" in asked
    assert ("You allowed it" in said) is allowed


def _next_page(terminal: int) -> str:
    """The next page of a question: both of its last lines end with a colon and a blank."""
    shown = ""
    while not shown.endswith(("refuses: ", "[N]o: ")):
        shown += shown_until(terminal, ": ")
    return shown


@pytest.mark.parametrize(("typed", "ran"), [("y\n", True), ("n too long\n", False)])
def test_a_long_command_is_shown_to_its_end_before_it_can_be_allowed(
    installation: Installation, typed: str, *, ran: bool
) -> None:
    asks = {"permissions": [{"action": "bash", "resource": "*", "effect": "ask"}]}
    (installation.project / "opencode.json").write_text(json.dumps(asks), encoding="utf-8")
    installation.variables |= {"LINES": "10", "COLUMNS": "40"}
    command = f"echo {'x' * 440}; touch hidden"
    with installation.at_terminal("run", *MODEL, f"run `{command}`") as process:
        shown = shown_until(process.terminal, "[n]o refuses: ")
        assert "touch hidden" not in shown
        while "[N]o: " not in shown:
            os.write(process.terminal, b"\n")
            shown += _next_page(process.terminal)
        process.answer(typed)
    assert "touch hidden" in shown
    assert (installation.project / "hidden").exists() is ran


def test_what_was_always_allowed_is_not_asked_again(installation: Installation) -> None:
    with installation.at_terminal("run", *MODEL, PERMISSION) as process:
        shown_until(process.terminal, "[N]o: ")
        process.answer("a\n")
    assert "You allowed it" in installation.perdure("run", *MODEL, PERMISSION).stdout


def test_ctrl_c_interrupts_the_session_and_ends_with_130(installation: Installation) -> None:
    with installation.started("run", *MODEL, "run `sleep 60`") as process:
        assert process.stderr is not None
        assert any("> bash" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 130
    (session_id, *_) = installation.perdure("sessions").stdout.split()
    exported = json.loads(installation.perdure("export", session_id).stdout)
    assert exported["messages"][-1]["content"][-1]["state"]["status"] == "error"


def test_ctrl_c_at_a_question_leaves_no_one_waiting(installation: Installation) -> None:
    with installation.at_terminal("run", *MODEL, PERMISSION) as process:
        shown_until(process.terminal, "[N]o: ")
        process.child.signal(signal.SIGINT)
        assert process.child.wait(PATIENCE_SECONDS) == 130


def test_attached_to_a_server_the_prompt_runs_there(installation: Installation) -> None:
    with installation.server() as url:
        ran = installation.perdure("run", "--attach", url, *MODEL, "list the files here")
        assert ran.returncode == 0, ran.stderr
        assert "one.txt" in ran.stdout
        listed = installation.perdure("sessions", "--attach", url).stdout
        assert "list the files here" in listed


def test_attached_without_a_terminal_a_permission_is_refused_and_nothing_waits(
    installation: Installation,
) -> None:
    with installation.server() as url:
        ran = installation.perdure("run", "--attach", url, *MODEL, PERMISSION)
    assert "no terminal to ask at" in ran.stderr
    assert "read failed" in ran.stderr
    assert "You allowed it" not in ran.stdout


@pytest.mark.parametrize(("typed", "allowed"), [("y\n", True), ("no\n", False)])
def test_attached_on_a_terminal_a_permission_is_asked_for(
    installation: Installation, typed: str, *, allowed: bool
) -> None:
    with (
        installation.server() as url,
        installation.at_terminal("run", "--attach", url, *MODEL, PERMISSION) as process,
    ):
        shown_until(process.terminal, "[N]o: ")
        said = process.answer(typed)
    assert ("You allowed it" in said) is allowed


def test_escape_sequences_of_the_model_never_reach_the_terminal(
    installation: Installation,
) -> None:
    hostile = "a\x1b]52;c;aGk=\x07b\x1b[2Jc\x9bHd"
    (installation.project / "one.txt").write_text(hostile, encoding="utf-8")
    ran = installation.perdure("run", *MODEL, "run `cat one.txt`")
    assert "abcd" in ran.stdout
    assert not {"\x1b", "\x07", "\x9b"} & {*ran.stdout, *ran.stderr}


def test_a_terminal_that_lacks_a_character_is_shown_another(installation: Installation) -> None:
    (installation.project / "one.txt").write_text("\u6f22 end", encoding="utf-8")
    installation.variables["PYTHONIOENCODING"] = "ascii"
    ran = installation.perdure("run", *MODEL, "run `cat one.txt`")
    assert ran.returncode == 0, ran.stderr
    assert "? end" in ran.stdout


def test_a_reader_that_leaves_early_ends_the_command_quietly(installation: Installation) -> None:
    with installation.started("run", *MODEL, "--format", "json", "explain this runtime") as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
        assert process.wait(PATIENCE_SECONDS) == 1


def test_a_run_that_may_wait_for_somebody_is_refused_when_the_time_is_over(
    installation: Installation,
) -> None:
    ran = installation.perdure("run", *MODEL, "--permission-timeout", "0.3", PERMISSION)
    assert "waiting for another client to allow" in ran.stderr
    assert "failed" in ran.stderr


def test_a_time_to_wait_that_makes_no_sense_is_refused(installation: Installation) -> None:
    for seconds in ("0", "-1", "nan", "inf", "soon"):
        refused = installation.perdure("run", f"--permission-timeout={seconds}", "hello")
        assert refused.returncode == 2
        assert "--permission-timeout" in refused.stderr


def test_without_a_terminal_a_run_can_fail_at_a_permission(installation: Installation) -> None:
    ran = installation.perdure("run", "--unattended", "fail", *MODEL, PERMISSION)
    assert ran.returncode == 1
    assert "needs a person's approval" in ran.stderr
    assert "You allowed it" not in ran.stdout


def test_attached_without_a_terminal_a_run_can_stop_at_a_permission(
    installation: Installation,
) -> None:
    with installation.server() as url:
        ran = installation.perdure(
            "run", "--unattended", "fail", "--attach", url, *MODEL, PERMISSION
        )
    assert "stopped at" in ran.stderr
    assert "You allowed it" not in ran.stdout
