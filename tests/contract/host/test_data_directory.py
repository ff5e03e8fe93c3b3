"""The data directory: private, local, and refused with a remedy when it cannot be."""

import os
import stat
from pathlib import Path

import pytest

from perdure.host import data_directory
from perdure.host.data_directory import DataDirectoryError


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_directory_and_its_database_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = Path(data_directory.prepare(str(tmp_path / "a" / "b")))
    finally:
        os.umask(before)
    assert path == tmp_path / "a" / "b" / "perdure.db"
    assert (mode(path.parent), mode(path)) == (0o700, 0o600)


def test_a_directory_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir(mode=0o755)
    database = directory / data_directory.DATABASE_NAME
    database.write_bytes(b"kept")
    database.chmod(0o644)
    assert data_directory.prepare(str(directory)) == str(database)
    assert (mode(directory), mode(database)) == (0o700, 0o600)
    assert database.read_bytes() == b"kept"


def test_preparing_twice_changes_nothing(tmp_path: Path) -> None:
    assert data_directory.prepare(str(tmp_path)) == data_directory.prepare(str(tmp_path))


@pytest.mark.parametrize("place", ["/proc/self/perdure", "/dev/null/perdure"])
def test_a_place_that_cannot_be_made_is_named_with_a_remedy(place: str) -> None:
    with pytest.raises(DataDirectoryError, match=r"--data-dir or PERDURE_DATA_DIR") as caught:
        data_directory.prepare(place)
    assert place in str(caught.value)


def test_a_database_that_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / data_directory.DATABASE_NAME).mkdir()
    with pytest.raises(DataDirectoryError, match=r"Check its owner and permissions"):
        data_directory.prepare(str(tmp_path))


MOUNTS = [
    ("/", "ext4"),
    ("/home", "nfs4"),
    ("/home/me/local", "xfs"),
    ("/mnt/share", "cifs"),
    ("/auto", "autofs"),
    ("/auto", "nfs"),
    ("/over", "nfs"),
    ("/over", "ext4"),
]


@pytest.mark.parametrize(
    "place", ["/data", "/home/me/local/x", "/mnt/shared", "/homely", "/over/x"]
)
def test_a_local_disk_is_accepted(place: str) -> None:
    data_directory.require_local(place, MOUNTS)


@pytest.mark.parametrize("place", ["/home", "/home/me", "/mnt/share/x", "/auto/x"])
def test_a_network_file_system_is_refused(place: str) -> None:
    with pytest.raises(DataDirectoryError, match=r"network file system .* lose data") as caught:
        data_directory.require_local(place, MOUNTS)
    assert place in str(caught.value)


def test_a_link_into_a_network_file_system_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "remote"
    target.mkdir()
    link = tmp_path / "link"
    link.symlink_to(target)
    with pytest.raises(DataDirectoryError, match=r"fuse\.sshfs"):
        data_directory.require_local(str(link), [("/", "ext4"), (str(target), "fuse.sshfs")])


def test_without_a_table_of_mounts_nothing_is_known_to_be_wrong() -> None:
    data_directory.require_local("/data", [])
