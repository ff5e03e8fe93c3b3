"""Secrets in the data directory: one value for all, whole and private, or a clear refusal."""

import stat
import threading
from pathlib import Path

import pytest

from perdure.host.credentials import secrets
from perdure.host.credentials.secrets import SecretFileError


def test_a_secret_is_made_once_and_stays(tmp_path: Path) -> None:
    key = secrets.load_cursor_key(str(tmp_path))
    assert len(key) == 32
    assert secrets.load_cursor_key(str(tmp_path)) == key
    assert secrets.find_server_password(str(tmp_path)) is None
    password = secrets.load_server_password(str(tmp_path))
    assert secrets.find_server_password(str(tmp_path)) == password
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_those_who_start_together_get_the_same_secret(tmp_path: Path) -> None:
    found: list[bytes] = []
    barrier = threading.Barrier(8)

    def start() -> None:
        barrier.wait(5)
        found.append(secrets.load_cursor_key(str(tmp_path)))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert len(found) == 8
    assert len(set(found)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["cursor-key"]


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"ab", b"zz" * 32, b"00" * 31, b"\xff" * 64, b"0" * 100_000]
)
def test_a_damaged_secret_is_refused_with_a_remedy(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cursor-key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(SecretFileError, match="Remove it"):
        secrets.load_cursor_key(str(tmp_path))
    assert path.read_bytes() == content


def test_a_link_a_directory_or_an_open_file_is_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "server-password"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("stolen", encoding="utf-8")
    elsewhere.chmod(0o600)
    path.symlink_to(elsewhere)
    with pytest.raises(SecretFileError):
        secrets.find_server_password(str(tmp_path))
    path.unlink()
    path.mkdir()
    with pytest.raises(SecretFileError):
        secrets.find_server_password(str(tmp_path))
    path.rmdir()
    path.write_text("secret", encoding="utf-8")
    path.chmod(0o640)
    with pytest.raises(SecretFileError, match="others"):
        secrets.find_server_password(str(tmp_path))


def test_a_directory_that_is_not_there_is_a_clear_refusal(tmp_path: Path) -> None:
    with pytest.raises(SecretFileError, match="Cannot write"):
        secrets.load_server_password(str(tmp_path / "missing"))
