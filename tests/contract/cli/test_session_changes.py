"""Commands that change Sessions: rename, archive, fork, delete."""

import json

import pytest

from perdure.schema.codec import JsonObject
from tests.contract.cli.command import MODEL, Installation


@pytest.fixture
def session(installation: Installation) -> str:
    """A Session in which the demo model has answered."""
    assert installation.perdure("run", *MODEL, "list the files here").returncode == 0
    return str(listed(installation)[0]["id"])


def listed(installation: Installation) -> list[JsonObject]:
    told = installation.perdure("sessions", "--format", "json").stdout
    return [json.loads(line) for line in told.splitlines()]


def test_a_session_is_renamed_and_archived(installation: Installation, session: str) -> None:
    renamed = installation.perdure("rename", session, "Another title")
    assert (renamed.returncode, renamed.stdout) == (0, f"{session} is now called Another title\n")
    assert installation.perdure("archive", session).stdout == f"{session} is archived\n"
    (found,) = listed(installation)
    assert found["title"] == "Another title"
    assert "archived" in found["time"]
    undone = installation.perdure("archive", session, "--undo")
    assert undone.stdout == f"{session} is no longer archived\n"
    assert "archived" not in listed(installation)[0]["time"]


def test_a_fork_prints_its_id_and_a_deletion_takes_one_of_two(
    installation: Installation, session: str
) -> None:
    forked = installation.perdure("fork", session, "--id", "ses_forked")
    assert (forked.returncode, forked.stdout) == (0, "ses_forked\n")
    assert {found["id"] for found in listed(installation)} == {session, "ses_forked"}
    deleted = installation.perdure("delete", session, "--yes")
    assert (deleted.returncode, deleted.stdout) == (0, f"{session} is deleted\n")
    assert [found["id"] for found in listed(installation)] == ["ses_forked"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("rename", "ses_none", "x"),
        ("archive", "ses_none"),
        ("fork", "ses_none"),
        ("delete", "ses_none", "--yes"),
    ],
)
def test_a_session_that_is_not_there_is_named(
    installation: Installation, session: str, arguments: tuple[str, ...]
) -> None:
    refused = installation.perdure(*arguments)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "ses_none" in refused.stderr
