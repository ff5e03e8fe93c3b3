"""`perdure verify`, and what `import` makes of a seal: changed files are named and refused."""

import json
import stat
from pathlib import Path

import pytest

from perdure.host.credentials.secrets import EXPORT_KEY_NAME
from tests.contract.cli.command import MODEL, Installation


@pytest.fixture
def file(installation: Installation) -> Path:
    """An exported Session."""
    ran = installation.perdure("run", *MODEL, "create made.txt with Hello, then list the files")
    assert ran.returncode == 0, ran.stderr
    path = installation.project / "session.json"
    path.write_text(installation.perdure("export").stdout, encoding="ascii")
    return path


def test_an_export_is_unchanged_and_its_key_is_named(
    installation: Installation, file: Path
) -> None:
    key = installation.perdure("export", "--public-key").stdout.strip()
    ran = installation.perdure("verify", str(file))
    assert ran.returncode == 0, ran.stderr
    assert "is unchanged: " in ran.stdout
    assert f"signed by {key}, the key of this data directory" in ran.stdout
    named = installation.perdure("verify", "--key", key, str(file))
    assert "the key that you named" in named.stdout
    mode = stat.S_IMODE((installation.data_dir / EXPORT_KEY_NAME).stat().st_mode)
    assert mode == stat.S_IRUSR | stat.S_IWUSR


def test_only_the_public_key_is_needed(
    installation: Installation, file: Path, tmp_path: Path
) -> None:
    key = installation.perdure("export", "--public-key").stdout.strip()
    elsewhere = {"PERDURE_DATA_DIR": str(tmp_path / "nothing")}
    ran = installation.perdure("verify", "--key", key, str(file), variables=elsewhere)
    assert ran.returncode == 0, ran.stderr
    assert not (tmp_path / "nothing").exists()


def test_an_export_of_another_installation_has_another_key(
    installation: Installation, file: Path, tmp_path: Path
) -> None:
    other = str(tmp_path / "other")
    assert installation.perdure("import", "--data-dir", other, str(file)).returncode == 0
    again = installation.perdure("export", "--data-dir", other, "last").stdout
    key = installation.perdure("export", "--public-key").stdout.strip()
    ran = installation.perdure("verify", "--key", key, "-", input=again)
    assert ran.returncode == 1
    assert "was signed with another key" in ran.stderr
    ran = installation.perdure("verify", "-", input=again)
    assert "compare it with the key of the one who exported it" in ran.stdout


@pytest.mark.parametrize("end", [" ", "\n", "{}"])
def test_an_appended_byte_is_found(installation: Installation, file: Path, end: str) -> None:
    ran = installation.perdure("verify", "-", input=file.read_text(encoding="ascii") + end)
    assert ran.returncode == 1
    assert len(ran.stderr.splitlines()) == 1


def test_a_changed_file_is_refused_by_import(installation: Installation, file: Path) -> None:
    changed = file.read_text(encoding="ascii").replace("made.txt", "left.txt")
    for command in (("verify",), ("import", "--copy")):
        ran = installation.perdure(*command, "-", input=changed)
        assert ran.returncode == 1
        assert "was changed after its export: " in ran.stderr
    stored = installation.perdure("import", "--copy", "--unverified", "-", input=changed)
    assert stored.returncode == 0, stored.stderr


def test_white_space_is_a_change_of_the_file_and_not_of_its_records(
    installation: Installation, file: Path
) -> None:
    spaced = json.dumps(json.loads(file.read_text(encoding="ascii")), indent=1)
    ran = installation.perdure("verify", "-", input=spaced)
    assert ran.returncode == 1
    assert "its records say the same as before" in ran.stderr
    assert installation.perdure("import", "-", input=spaced).returncode == 0


def test_an_export_without_a_seal_says_so(installation: Installation, file: Path) -> None:
    exported = json.loads(file.read_text(encoding="ascii"))
    del exported["seal"], exported["chain"]
    ran = installation.perdure("verify", "-", input=json.dumps(exported))
    assert ran.returncode == 1
    assert "has no seal" in ran.stderr
    assert installation.perdure("import", "-", input=json.dumps(exported)).returncode == 0


def test_a_copy_stands_beside_the_original_and_is_made_once(
    installation: Installation, file: Path
) -> None:
    copied, again = (installation.perdure("import", "--copy", str(file)) for _ in range(2))
    assert copied.returncode == 0, copied.stderr
    assert again.stdout == copied.stdout
    listed = installation.perdure("sessions", "--format=json").stdout.splitlines()
    ids = {json.loads(line)["id"] for line in listed}
    assert len(ids) == 2
    (copy,) = [each for each in ids if copied.stdout.startswith(each)]
    shown = installation.perdure("show", copy)
    assert "> write made.txt" in shown.stdout
    assert "Hello" in installation.perdure("run", "-s", copy, "read made.txt").stdout


def test_a_key_that_others_can_read_is_refused(installation: Installation, file: Path) -> None:
    (installation.data_dir / EXPORT_KEY_NAME).chmod(0o644)
    ran = installation.perdure("export")
    assert ran.returncode == 1
    assert EXPORT_KEY_NAME in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
