"""Commands that only look: sessions, export, doctor, and what stands in front of all commands."""

import json
import os
import re
import urllib.request
from typing import Final

from perdure.schema.codec import JsonObject
from perdure.version import __version__
from tests.contract.cli.command import MODEL, PATIENCE_SECONDS, Installation

DEMO: Final[JsonObject] = {"providerID": "demo", "id": "demo"}


def test_the_version_and_the_commands_are_told(installation: Installation) -> None:
    version = installation.perdure("--version")
    assert (version.returncode, version.stdout) == (0, f"perdure {__version__}\n")
    told = installation.perdure("--help")
    assert told.returncode == 0
    for command in ("run", "serve", "sessions", "export", "doctor"):
        assert command in told.stdout
        assert installation.perdure(command, "--help").returncode == 0
    unknown = installation.perdure("dance")
    assert unknown.returncode == 2
    assert "dance" in unknown.stderr
    assert installation.perdure().returncode == 2


def test_sessions_are_listed_newest_first_with_their_titles(installation: Installation) -> None:
    for text in ("list the files here", "explain this runtime"):
        installation.perdure("run", *MODEL, text)
    lines = installation.perdure("sessions").stdout.splitlines()
    titles = [re.split(" {2,}", line)[-1] for line in lines]
    # Whether the model's own title was there before the program ended is left to chance.
    assert [title.removeprefix("Demo: ") for title in titles] == [
        "explain this runtime",
        "list the files here",
    ]
    newest = installation.perdure("sessions", "--limit", "1", "--format", "json")
    assert json.loads(newest.stdout)["title"] == titles[0]


def test_looking_at_sessions_runs_none_of_them(installation: Installation) -> None:
    with installation.server("--no-auth") as url:
        session_id = posted(f"{url}/api/session", {"model": DEMO})["id"]
        waiting = {"prompt": {"text": "list the files here"}, "resume": False}
        posted(f"{url}/api/session/{session_id}/prompt", waiting)
    for _ in range(2):
        assert session_id in installation.perdure("sessions").stdout
        exported = json.loads(installation.perdure("export", session_id).stdout)
        assert exported["messages"] == []
        assert [event["type"] for event in exported["events"]] == ["session.next.prompt.admitted"]


def test_an_export_is_the_same_from_the_disk_and_from_a_server(
    installation: Installation,
) -> None:
    installation.perdure("run", *MODEL, "do the edit demo")
    session_id = first_id(installation)
    local = json.loads(installation.perdure("export", session_id).stdout)
    assert local["session"]["id"] == session_id
    assert local["messages"][0]["type"] == "user"
    sequence = [event["durable"]["seq"] for event in local["events"]]
    assert sequence == [*range(1, len(sequence) + 1)]
    with installation.server() as url:
        remote = json.loads(installation.perdure("export", "--attach", url, session_id).stdout)
    assert remote == local


def test_a_session_that_does_not_exist_exports_nothing(installation: Installation) -> None:
    installation.perdure("run", *MODEL, "hello")
    missing = installation.perdure("export", "ses_none")
    assert missing.returncode == 1
    assert "ses_none" in missing.stderr
    assert missing.stdout == ""


def test_where_nothing_is_kept_yet_that_is_said_and_nothing_is_made(
    installation: Installation,
) -> None:
    listed = installation.perdure("sessions")
    assert listed.returncode == 1
    assert "no database" in listed.stderr
    assert installation.perdure("doctor").returncode == 0
    assert not installation.data_dir.exists()


def test_the_doctor_tells_paths_versions_and_sound_databases(installation: Installation) -> None:
    installation.perdure("run", *MODEL, "list the files here")
    ran = installation.perdure("doctor")
    assert ran.returncode == 0, ran.stdout
    for told in (__version__, "SQLite", str(installation.data_dir), "integrity_check     ok"):
        assert told in ran.stdout


def test_the_doctor_finds_damage_and_configuration_problems(installation: Installation) -> None:
    installation.perdure("run", *MODEL, "list the files here")
    (installation.project / "opencode.json").write_text("{ nonsense", encoding="utf-8")
    told = installation.perdure("doctor")
    assert told.returncode == 1
    assert "opencode.json" in told.stdout
    database = installation.data_dir / "perdure.db"
    for name in os.listdir(installation.data_dir):
        if name.startswith("perdure.db-"):
            os.unlink(installation.data_dir / name)
    damaged = bytearray(database.read_bytes())
    damaged[4096:] = os.urandom(len(damaged) - 4096)
    database.write_bytes(damaged)
    ran = installation.perdure("doctor")
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    database.write_bytes(b"this is no database at all" * 100)
    ran = installation.perdure("doctor")
    assert ran.returncode == 1
    assert "cannot be read" in ran.stdout
    listed = installation.perdure("sessions")
    assert listed.returncode == 1
    assert "Traceback" not in listed.stderr


def posted(url: str, body: JsonObject) -> JsonObject:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        return json.load(answer)["data"]


def first_id(installation: Installation) -> str:
    return installation.perdure("sessions").stdout.split()[0]
