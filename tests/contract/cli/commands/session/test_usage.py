"""`perdure usage` and `perdure budget`."""

import json
import re

from tests.contract.cli.command import MODEL, Installation


def test_a_session_tells_what_it_used_and_is_bounded(installation: Installation) -> None:
    assert installation.perdure("run", *MODEL, "list the files here").returncode == 0
    listed = installation.perdure("sessions", "--format", "json").stdout
    session = json.loads(listed.splitlines()[0])["id"]
    bounded = installation.perdure("budget", session, "--turns", "50", "--cost", "2.5")
    assert bounded.returncode == 0
    assert "cost: $0.0000 of $2.5000\n" in bounded.stdout
    assert re.search(r"^turns: \d of 50$", bounded.stdout, re.MULTILINE)
    told = installation.perdure("usage", session)
    assert told.returncode == 0
    assert told.stdout.startswith("Session: $0.0000, ")
    assert "  demo/demo (turn): $0.0000, " in told.stdout
    assert told.stdout.endswith("budget: cost 2.5, turns 50\n")
    used = json.loads(installation.perdure("usage", session, "--format", "json").stdout)
    assert used["session"]["turns"] >= 1
    assert used["tree"] == used["session"]


def test_a_budget_is_shown_without_changing_it_and_removed_on_request(
    installation: Installation,
) -> None:
    installation.perdure("run", *MODEL, "list the files here")
    installation.perdure("budget", "last", "--turns", "50")
    installation.perdure("budget", "last", "--cost", "2.5")
    for _ in range(2):
        shown = json.loads(installation.perdure("budget", "last", "--format", "json").stdout)
        assert shown["budget"] == {"cost": 2.5, "turns": 50}
        assert shown["used"]["turns"] >= 1
    lifted = installation.perdure("budget", "last", "--clear", "--turns", "7")
    assert re.search(r"^turns: \d of 7$", lifted.stdout, re.MULTILINE)
    assert " of $" not in lifted.stdout
    installation.perdure("budget", "last", "--clear")
    assert "no budget limits" in installation.perdure("budget", "last").stdout


def test_bad_bounds_and_unknown_sessions_are_said_so(installation: Installation) -> None:
    assert installation.perdure("run", *MODEL, "hello").returncode == 0
    refused = installation.perdure("budget", "ses_none", "--turns", "-1")
    assert refused.returncode == 2
    assert "not negative" in refused.stderr
    for command in (("usage", "ses_none"), ("budget", "ses_none", "--cost", "1")):
        absent = installation.perdure(*command)
        assert (absent.returncode, absent.stdout) == (1, "")
        assert "ses_none" in absent.stderr
