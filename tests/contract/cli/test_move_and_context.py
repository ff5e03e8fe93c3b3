"""Commands about one Session that run none: move, context."""

import json
import subprocess
import urllib.request
from pathlib import Path

import pytest

from perdure.schema.codec import JsonObject
from tests.contract.cli.command import MODEL, PATIENCE_SECONDS, Installation
from tests.requirements import requirement

CANARY = "canary-5d1c"


@pytest.fixture
def session(installation: Installation) -> str:
    """A Session in which the demo model has answered."""
    assert installation.perdure("run", *MODEL, "list the files here").returncode == 0
    return str(listed(installation)["id"])


def listed(installation: Installation) -> JsonObject:
    told = installation.perdure("sessions", "--limit", "1", "--format", "json").stdout
    return json.loads(told)


def repository(installation: Installation) -> Path:
    """Another work tree of the project, which becomes a repository."""
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for arguments in (("init",), ("add", "-A"), ("commit", "-m", "c"), ("worktree", "add", "../w")):
        subprocess.run(
            ("git", *identity, *arguments),
            cwd=installation.project,
            env=installation.variables,
            check=True,
            capture_output=True,
        )
    return installation.project.parent / "w"


@requirement("S61")
def test_a_session_moves_with_its_changes(installation: Installation) -> None:
    there = repository(installation)
    assert installation.perdure("run", *MODEL, "list the files here").returncode == 0
    session = str(listed(installation)["id"])
    (installation.project / "new.txt").write_text("new\n", encoding="utf-8")
    moved = installation.perdure("move", session, "../w", "--changes")
    assert (moved.returncode, moved.stderr) == (0, "")
    assert moved.stdout == f"{session} is in {there}\n"
    assert listed(installation)["location"]["directory"] == str(there)
    assert (there / "new.txt").read_text() == "new\n"
    assert not (installation.project / "new.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ses_none", "."), "ses_none"),
        (("{session}", "../nowhere"), "does not exist"),
        (("{session}", "one.txt"), "not a directory"),
    ],
)
def test_a_move_that_cannot_be_is_explained(
    installation: Installation, session: str, arguments: tuple[str, ...], said: str
) -> None:
    refused = installation.perdure("move", *(word.format(session=session) for word in arguments))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr


@requirement("S141")
def test_the_context_of_a_session_is_summed_up(installation: Installation, session: str) -> None:
    told = installation.perdure("context", session)
    assert (told.returncode, told.stderr) == (0, "")
    assert "baseline at sequence 1" in told.stdout
    assert "0 waiting" in told.stdout
    assert "no changes" in told.stdout
    assert "core/environment" in told.stdout
    assert "to demo/demo as agent build" in told.stdout
    assert "of 1,000,000 tokens (0 %); compaction starts at" in told.stdout
    for part in ("system 1", "messages (", "tools (", "all"):
        assert part in told.stdout
    assert "=== user" not in told.stdout
    full = installation.perdure("context", session, "--full")
    assert full.stdout.startswith(told.stdout)
    assert "=== user\nlist the files here\n" in full.stdout
    assert "=== tool read\n" in full.stdout


def test_a_message_is_left_out_and_restored(installation: Installation, session: str) -> None:
    shown = json.loads(installation.perdure("context", session, "--format", "json").stdout)
    (prompt,) = [m["id"] for m in shown["messages"] if m["type"] == "user"]
    read = next(m for m in shown["messages"] if m["type"] == "assistant")
    call = next(part["id"] for part in read["content"] if part["type"] == "tool")
    without = installation.perdure("context", session, "--exclude", prompt, "--full")
    assert (without.returncode, without.stderr) == (0, "")
    assert "list the files here" not in without.stdout
    assert f"{prompt}  user" in without.stdout
    assert "(excluded)" in without.stdout
    part = installation.perdure(
        "context", session, "--exclude", read["id"], "--call", call, "--full"
    )
    assert "[The user excluded this result from the conversation.]" in part.stdout
    back = installation.perdure("context", session, "--restore", prompt, "--full")
    assert "list the files here" in back.stdout
    exported = installation.perdure("export", session).stdout
    assert "session.next.message.excluded" in exported
    assert "session.next.message.restored" in exported


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--exclude", "msg_unknown"), "msg_unknown"),
        (("--call", "c"), "--call needs --exclude or --restore"),
        (("--exclude", "msg_a", "--restore", "msg_a"), "not allowed with"),
    ],
)
def test_an_exclusion_that_makes_no_sense_is_said_so(
    installation: Installation, session: str, options: tuple[str, ...], said: str
) -> None:
    refused = installation.perdure("context", session, *options)
    assert refused.returncode != 0
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr


@requirement("S141")
def test_the_context_is_the_same_from_the_disk_and_from_a_server(
    installation: Installation, session: str
) -> None:
    local = json.loads(installation.perdure("context", session, "--format", "json").stdout)
    assert local["messages"][0]["type"] == "user"
    with installation.server() as url:
        attached = installation.perdure("context", "--attach", url, session, "--format", "json")
        moved = installation.perdure("move", "--attach", url, session, "..")
    assert json.loads(attached.stdout) == local
    assert moved.stdout == f"{session} is in {installation.project.parent}\n"
    after = installation.perdure("context", session)
    assert "none yet" in after.stdout
    assert "pending  baseline: " in after.stdout


def test_looking_and_moving_run_nothing_that_was_left_waiting(
    installation: Installation, session: str
) -> None:
    with installation.server("--no-auth") as url:
        waiting = {"prompt": {"text": "list the files here"}, "resume": False}
        post(f"{url}/api/session/{session}/prompt", waiting)
    before = installation.perdure("export", session).stdout
    looked = installation.perdure("context", session)
    assert "1 waiting" in looked.stdout
    assert installation.perdure("export", session).stdout == before
    installation.perdure("move", session, "..")
    exported = json.loads(installation.perdure("export", session).stdout)
    types = [event["type"] for event in exported["events"]]
    assert types[-2:] == ["session.next.prompt.admitted", "session.next.moved"]


def test_text_of_others_cannot_drive_the_terminal(installation: Installation) -> None:
    (installation.project / "AGENTS.md").write_text("\x1b]0;owned\x07\x1b[2Jcalm", encoding="utf-8")
    installation.perdure("run", *MODEL, "list the files here")
    session = str(listed(installation)["id"])
    told = installation.perdure("context", session, "--full")
    assert "calm" in told.stdout
    assert "\x1b" not in told.stdout
    raw = installation.perdure("context", session, "--format", "json").stdout
    assert raw.isascii()
    assert "\x1b" not in raw


@requirement("S141")
def test_no_secret_is_shown(installation: Installation) -> None:
    provider = {
        "name": "Mine",
        "api": {
            "type": "aisdk",
            "package": "@ai-sdk/openai-compatible",
            "url": "http://127.0.0.1:9/",
        },
        "request": {"headers": {"x-api-key": CANARY}, "body": {"apiKey": CANARY, "extra": CANARY}},
        "models": {"m": {"limit": {"context": 1000, "output": 100}}},
    }
    settings = {"model": "mine/m", "providers": {"mine": provider}}
    (installation.project / "opencode.json").write_text(json.dumps(settings), encoding="utf-8")
    installation.variables["OPENAI_API_KEY"] = CANARY
    installation.perdure("run", *MODEL, "list the files here")
    session = str(listed(installation)["id"])
    with installation.server("--no-auth") as url:
        chosen = {"model": {"providerID": "mine", "id": "m"}}
        post(f"{url}/api/session/{session}/model", chosen)
    for options in ((), ("--full",), ("--format", "json")):
        told = installation.perdure("context", session, *options)
        assert told.returncode == 0
        assert "mine" in told.stdout
        assert CANARY not in told.stdout + told.stderr


@pytest.mark.parametrize("command", [("context", "ses_x"), ("move", "ses_x", ".")])
def test_where_nothing_is_kept_nothing_is_made(
    installation: Installation, command: tuple[str, ...]
) -> None:
    refused = installation.perdure(*command)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "no Sessions" in refused.stderr
    assert not installation.data_dir.exists()


def post(url: str, body: JsonObject) -> None:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        assert answer.status in {200, 204}
