"""`perdure storage`: what is kept, what it takes, and getting room back."""

import json
import re
import sqlite3
from pathlib import Path

import pytest

from tests.contract.cli.command import MODEL, Installation

DAY_MILLIS = 24 * 60 * 60 * 1_000


@pytest.fixture
def session(installation: Installation) -> str:
    """A Session in which the demo model has answered."""
    assert installation.perdure("run", *MODEL, "list the files here").returncode == 0
    return listed(installation)[0]


def listed(installation: Installation) -> list[str]:
    told = installation.perdure("sessions", "--format", "json").stdout
    return [json.loads(line)["id"] for line in told.splitlines()]


def database(installation: Installation) -> Path:
    return installation.data_dir / "perdure.db"


def age(installation: Installation, session: str, days: int) -> None:
    """As if nothing had happened to it for so long."""
    with sqlite3.connect(database(installation)) as connection:
        connection.execute(
            "UPDATE session SET data = CAST(json_set(data, '$.time.updated',"
            " json_extract(data, '$.time.updated') - ?) AS BLOB) WHERE id = ?",
            (days * DAY_MILLIS, session),
        )


def test_it_tells_what_there_is_and_changes_nothing(
    installation: Installation, session: str
) -> None:
    told = installation.perdure("storage")
    assert (told.returncode, told.stderr) == (0, "")
    assert re.search(r"database +\d+\.\d KiB, of which ", told.stdout)
    assert "sessions    1, of which 0 are archived" in told.stdout
    assert re.search(rf"{session}  \d+ events", told.stdout)
    assert listed(installation) == [session]


def test_old_sessions_are_named_and_go_only_when_that_is_confirmed(
    installation: Installation, session: str
) -> None:
    assert installation.perdure("fork", session, "--id", "ses_new").returncode == 0
    age(installation, session, 31)
    named = installation.perdure("storage", "--delete-older-than", "30")
    assert named.returncode == 0
    assert f"{session}  " in named.stdout
    assert "would be deleted with --yes" in named.stdout
    assert set(listed(installation)) == {session, "ses_new"}
    gone = installation.perdure("storage", "--delete-older-than", "30", "--yes")
    assert ": deleted" in gone.stdout
    assert listed(installation) == ["ses_new"]


def test_only_archived_ones_go_when_that_is_asked(installation: Installation, session: str) -> None:
    age(installation, session, 31)
    kept = installation.perdure("storage", "--delete-older-than", "30", "--archived", "--yes")
    assert kept.returncode == 0
    assert listed(installation) == [session]


def test_the_room_of_what_was_deleted_is_given_back(
    installation: Installation, session: str
) -> None:
    with sqlite3.connect(database(installation)) as connection:
        connection.execute("CREATE TABLE large (data BLOB)")
        connection.execute("INSERT INTO large VALUES (zeroblob(8000000))")
        connection.execute("DROP TABLE large")
    connection.close()
    before = database(installation).stat().st_size
    assert before > 8_000_000
    told = installation.perdure("storage", "--reclaim")
    assert told.returncode == 0
    assert "of which 0 bytes are free" in told.stdout
    assert database(installation).stat().st_size < before - 7_000_000
    assert installation.perdure("doctor").returncode == 0
    assert listed(installation) == [session]


def test_room_is_not_given_back_under_somebody_who_writes(
    installation: Installation, session: str
) -> None:
    connection = sqlite3.connect(database(installation), isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    told = installation.perdure("storage", "--reclaim")
    connection.close()
    assert told.returncode == 1
    assert "nothing was changed" in told.stderr
    assert listed(installation) == [session]


@pytest.mark.parametrize(
    "arguments",
    [("--yes",), ("--archived",), ("--delete-older-than", "-1"), ("--delete-older-than", "soon")],
)
def test_options_that_make_no_sense_are_refused(
    installation: Installation, arguments: tuple[str, ...]
) -> None:
    told = installation.perdure("storage", *arguments)
    assert told.returncode == 2
    assert "usage:" in told.stderr


def test_an_empty_data_directory_is_told(installation: Installation) -> None:
    told = installation.perdure("storage")
    assert told.returncode == 1
    assert "holds no database yet" in told.stderr
