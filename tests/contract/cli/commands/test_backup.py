"""`perdure backup` and `perdure restore`: nothing is missing, whatever goes on meanwhile."""

import json
import stat
import threading
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.contract.cli.command import MODEL, PATIENCE_SECONDS, Installation

PROMPTS_MAX = 400


@pytest.fixture
def session(installation: Installation) -> str:
    """A Session in which the demo model has answered."""
    assert installation.perdure("run", *MODEL, "list the files here").returncode == 0
    return listed(installation)[0]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "backup"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return tmp_path / "other"


def listed(installation: Installation, *options: str) -> list[str]:
    told = installation.perdure("sessions", "--format", "json", *options).stdout
    return [json.loads(line)["id"] for line in told.splitlines()]


def exported(installation: Installation, session: str, *options: str) -> object:
    """What an export has, but for the signature: a restored data directory has a new key."""
    found = json.loads(installation.perdure("export", session, *options).stdout)
    return {**found, "seal": found["seal"]["head"]}


def test_a_restored_session_is_the_same_to_the_last_event(
    installation: Installation, session: str, target: Path, other: Path
) -> None:
    made = installation.perdure("backup", str(target))
    assert (made.returncode, made.stderr) == (0, "")
    assert f"{target} holds 1 Sessions" in made.stdout
    restored = installation.perdure("restore", str(target), "--data-dir", str(other))
    assert (restored.returncode, restored.stderr) == (0, "")
    elsewhere = ("--data-dir", str(other))
    assert exported(installation, session, *elsewhere) == exported(installation, session)
    assert installation.perdure("doctor", *elsewhere).returncode == 0


def test_files_that_sessions_refer_to_come_along_and_caches_do_not(
    installation: Installation, session: str, target: Path, other: Path
) -> None:
    for name in ("snapshots/ab/cdef", "tool-output/one.txt", "plans/plan.md", "cache/models"):
        file = installation.data_dir / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    (installation.data_dir / "plans" / "link").symlink_to("/etc/passwd")
    assert installation.perdure("backup", str(target)).returncode == 0
    assert installation.perdure("restore", str(target), "--data-dir", str(other)).returncode == 0
    for name in ("snapshots/ab/cdef", "tool-output/one.txt", "plans/plan.md"):
        assert (other / name).read_text() == name
        assert stat.S_IMODE((target / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(target.stat().st_mode) == 0o700
    assert not (target / "cache").exists()
    assert not (target / "plans" / "link").is_symlink()


def test_credentials_are_copied_only_when_that_is_asked_for(
    installation: Installation, session: str, target: Path, tmp_path: Path
) -> None:
    with installation.server():
        pass
    password = (installation.data_dir / "server-password").read_text()
    assert installation.perdure("backup", str(target)).returncode == 0
    assert not (target / "server-password").exists()
    whole = tmp_path / "whole"
    assert installation.perdure("backup", str(whole), "--secrets").returncode == 0
    assert (whole / "server-password").read_text() == password


def test_nothing_is_written_over(
    installation: Installation, session: str, target: Path, other: Path
) -> None:
    target.mkdir()
    refused = installation.perdure("backup", str(target))
    assert refused.returncode == 1
    assert "exists already" in refused.stderr
    target.rmdir()
    assert installation.perdure("backup", str(target)).returncode == 0
    refused = installation.perdure("restore", str(target))
    assert refused.returncode == 1
    assert "holds a database already" in refused.stderr
    assert listed(installation) == [session]


def test_a_damaged_database_makes_no_backup_and_a_damaged_backup_restores_nothing(
    installation: Installation, session: str, target: Path, other: Path
) -> None:
    assert installation.perdure("backup", str(target)).returncode == 0
    damage(target / "perdure.db")
    refused = installation.perdure("restore", str(target), "--data-dir", str(other))
    assert refused.returncode == 1
    assert "Nothing was restored" in refused.stderr
    assert not list(other.glob("perdure.db*"))
    damage(installation.data_dir / "perdure.db")
    again = target.with_name("again")
    refused = installation.perdure("backup", str(again))
    assert refused.returncode == 1
    assert "Nothing was backed up" in refused.stderr
    assert list(target.parent.glob("again*")) == []


def damage(path: Path) -> None:
    """Overwrite the middle of a database."""
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 4_096] = b"\xa5" * 4_096
    path.write_bytes(data)


def test_what_is_no_backup_is_refused(installation: Installation, target: Path) -> None:
    assert "nothing to back up" in installation.perdure("backup", str(target)).stderr
    target.mkdir()
    assert "is no backup" in installation.perdure("restore", str(target)).stderr
    (target / "perdure.db").write_bytes(b"not a database, but long enough to be read" * 100)
    assert "Nothing was restored" in installation.perdure("restore", str(target)).stderr
    assert not (installation.data_dir / "perdure.db").exists()


@contextmanager
def prompting(url: str) -> Generator[list[str]]:
    """A thread that creates Sessions and prompts them, until the scope ends; their ids."""
    admitted: list[str] = []
    ends = threading.Event()

    def post(path: str, body: object) -> dict[str, dict[str, str]]:
        request = urllib.request.Request(
            f"{url}{path}", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            return json.load(answer)

    def work() -> None:
        model = {"providerID": "demo", "id": "demo"}
        for _ in range(PROMPTS_MAX):
            session = post("/api/session", {"model": model})["data"]["id"]
            post(f"/api/session/{session}/prompt", {"prompt": {"text": "list the files here"}})
            admitted.append(session)
            if ends.is_set():
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield admitted
    finally:
        ends.set()
        thread.join(PATIENCE_SECONDS)


def test_a_backup_under_load_holds_every_prompt_that_was_admitted_before(
    installation: Installation, session: str, target: Path, other: Path
) -> None:
    elsewhere = ("--data-dir", str(other))
    with installation.server("--no-auth") as url, prompting(url) as admitted:
        while len(admitted) < 20:
            threading.Event().wait(0.01)
        before = list(admitted)
        assert installation.perdure("backup", str(target)).returncode == 0
    assert installation.perdure("restore", str(target), *elsewhere).returncode == 0
    assert installation.perdure("doctor", *elsewhere).returncode == 0
    restored = set(listed(installation, *elsewhere, "--limit", "1000"))
    assert set(before) <= restored
    for each in before:
        events = exported(installation, each, *elsewhere)
        assert "list the files here" in json.dumps(events)
