"""`perdure import`: an exported Session is the same elsewhere; other files are refused."""

import json
from pathlib import Path

import pytest

from perdure.schema.codec import JsonObject
from tests.contract.cli.command import MODEL, Installation


@pytest.fixture
def exported(installation: Installation) -> JsonObject:
    ran = installation.perdure("run", *MODEL, "create made.txt with Hello, then list the files")
    assert ran.returncode == 0, ran.stderr
    return json.loads(installation.perdure("export", "last").stdout)


def import_into(installation: Installation, directory: Path, value: object) -> tuple[int, str]:
    """Import what a test may have changed, without the check of the seal."""
    text = value if isinstance(value, str) else json.dumps(value)
    arguments = ("import", "--unverified", "--data-dir", str(directory), "-")
    ran = installation.perdure(*arguments, input=text)
    assert "Traceback" not in ran.stderr
    return ran.returncode, ran.stdout + ran.stderr


def test_an_imported_session_has_the_same_messages_and_events(
    installation: Installation, exported: JsonObject, tmp_path: Path
) -> None:
    status, told = import_into(installation, tmp_path / "other", exported)
    assert status == 0, told
    assert f"{exported['session']['id']} is imported" in told
    again = json.loads(
        installation.perdure(
            "export", "--data-dir", str(tmp_path / "other"), exported["session"]["id"]
        ).stdout
    )
    assert again["messages"] == exported["messages"]
    assert [event["data"] for event in again["events"]] == [
        event["data"] for event in exported["events"]
    ]
    for key in ("title", "model", "location", "cost", "tokens"):
        assert again["session"][key] == exported["session"][key]


def test_an_imported_session_goes_on(
    installation: Installation, exported: JsonObject, tmp_path: Path
) -> None:
    other = str(tmp_path / "other")
    import_into(installation, tmp_path / "other", exported)
    ran = installation.perdure("run", "--data-dir", other, "-c", "read made.txt")
    assert ran.returncode == 0, ran.stderr
    assert "Hello" in ran.stdout


def test_importing_again_adds_what_is_new_and_nothing_twice(
    installation: Installation, exported: JsonObject, tmp_path: Path
) -> None:
    half = {**exported, "events": exported["events"][:4]}
    for value in (half, exported, exported):
        status, told = import_into(installation, tmp_path / "other", value)
        assert status == 0, told
    session = exported["session"]["id"]
    again = installation.perdure("export", "--data-dir", str(tmp_path / "other"), session)
    assert len(json.loads(again.stdout)["events"]) == len(exported["events"])


def test_what_is_here_already_is_recognised(
    installation: Installation, exported: JsonObject
) -> None:
    status, told = import_into(installation, installation.data_dir, exported)
    assert status == 0, told


def test_a_log_that_diverged_is_refused(
    installation: Installation, exported: JsonObject, tmp_path: Path
) -> None:
    import_into(installation, tmp_path / "other", exported)
    exported["events"][0]["data"]["prompt"]["text"] = "something else"
    status, told = import_into(installation, tmp_path / "other", exported)
    assert status == 1
    assert "diverged" in told


def test_a_directory_that_is_absent_is_replaced(
    installation: Installation, exported: JsonObject, tmp_path: Path
) -> None:
    exported["session"]["location"]["directory"] = "/nowhere/at/all"
    assert import_into(installation, tmp_path / "other", exported)[0] == 0
    listed = installation.perdure(
        "sessions", "--data-dir", str(tmp_path / "other"), "--format=json"
    )
    assert json.loads(listed.stdout)["location"]["directory"] == str(installation.project)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "not json",
        "[]",
        "{}",
        '{"session": 1, "events": 2}',
        '{"session": {}, "events": []}',
        '{"session": {"id": "../../x"}, "events": []}',
        "[" * 5_000,
    ],
)
def test_a_file_that_is_no_export_is_refused_in_one_line(
    installation: Installation, tmp_path: Path, value: str
) -> None:
    status, told = import_into(installation, tmp_path / "other", value)
    assert status == 1
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize("damage", ["gap", "foreign", "unknown", "shape"])
def test_a_damaged_log_is_refused(
    installation: Installation, exported: JsonObject, tmp_path: Path, damage: str
) -> None:
    events = exported["events"]
    if damage == "gap":
        del events[2]
    elif damage == "foreign":
        events[2]["data"]["sessionID"] = "ses_other"
    elif damage == "unknown":
        events[2]["type"] = "session.next.dance"
    else:
        events[2]["data"] = {}
    status, told = import_into(installation, tmp_path / "other", exported)
    assert status == 1
    assert "cannot be imported" in told
