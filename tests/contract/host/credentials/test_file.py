"""The file of credentials: private, whole, shared by processes, and never thrown away."""

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Final

import pytest

from perdure.core import limits
from perdure.host.credentials import file
from perdure.host.credentials.file import FileCredentials
from perdure.ports import CredentialStoreError
from tests import fixtures
from tests.contract.host.stored import CANARY, key, login

PROCESSES: Final = 4
EACH: Final = 10


@pytest.fixture
def store(tmp_path: Path) -> FileCredentials:
    return FileCredentials(str(tmp_path))


def refused(store: FileCredentials) -> str:
    """Why it cannot be read. The reason names the file and shows nothing of it."""
    with pytest.raises(CredentialStoreError) as raised:
        store.look()
    reason = str(raised.value)
    assert store.path in reason
    chain = [raised.value, raised.value.__cause__, raised.value.__context__]
    assert not any(CANARY in repr(each) for each in chain)
    return reason


def test_where_nothing_was_stored_there_is_nothing(store: FileCredentials) -> None:
    assert store.look() == {}
    assert store.look() is store.look()
    assert not Path(store.path).exists()
    assert store.remove("cred_nope") is False


def test_what_is_stored_is_found_again_by_everyone_and_readable_by_the_user_alone(
    store: FileCredentials, tmp_path: Path
) -> None:
    assert store.put(key("one"), instead_of=None)
    assert store.put(login("two"), instead_of=None)
    expected = {"one": key("one"), "two": login("two")}
    assert store.look() == expected
    assert FileCredentials(str(tmp_path)).look() == expected
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_the_same_object_is_given_until_something_changes(store: FileCredentials) -> None:
    store.put(key("one"), instead_of=None)
    before = store.look()
    assert store.look() is before
    store.put(key("two"), instead_of=None)
    assert store.look() is not before


def test_the_newest_comes_first_and_replaces_what_its_integration_had(
    store: FileCredentials,
) -> None:
    for name in ("one", "two", "one"):
        store.put(key(name), instead_of=None)
    assert list(store.look()) == ["one", "two"]
    store.put(login("one"), instead_of=None)
    assert store.look()["one"] == login("one")


def test_a_change_of_something_that_is_no_longer_there_is_not_made(store: FileCredentials) -> None:
    store.put(login(access="first"), instead_of=None)
    store.put(login(access="second"), instead_of=None)
    assert not store.put(login(access="third"), instead_of=login(access="first"))
    assert store.look() == {"fake": login(access="second")}
    assert store.put(login(access="third"), instead_of=login(access="second"))
    assert store.remove("cred_fake")
    assert not store.put(login(access="fourth"), instead_of=login(access="third"))
    assert store.look() == {}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'{"version":1}',
        b'{"version":1,"credentials":[{"type":"key","id":"' + CANARY.encode() + b'"}]}',
        b'{"version":"' + CANARY.encode() + b'","credentials":[]}',
        b"\xff\x00" * 100,
        b"[" * 200_000,
    ],
)
def test_a_damaged_file_is_not_used_and_is_kept_when_a_new_one_begins(
    store: FileCredentials, tmp_path: Path, content: bytes
) -> None:
    path = Path(store.path)
    path.write_bytes(content)
    path.chmod(0o600)
    assert "damaged" in refused(store)
    with pytest.raises(CredentialStoreError):
        store.remove("cred_one")
    with pytest.raises(CredentialStoreError):
        store.put(login(access="new"), instead_of=login())
    assert path.read_bytes() == content
    store.put(key("one"), instead_of=None)
    assert store.look() == {"one": key("one")}
    (aside,) = tmp_path.glob("credentials.json.damaged-*")
    assert aside.read_bytes() == content


def test_a_file_cut_at_any_byte_is_refused_or_whole(store: FileCredentials) -> None:
    store.put(key("one"), instead_of=None)
    path = Path(store.path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        refused(store)
    path.write_bytes(whole)
    assert store.look() == {"one": key("one")}


def test_a_file_of_another_version_is_neither_used_nor_replaced(store: FileCredentials) -> None:
    store.put(key("one"), instead_of=None)
    path = Path(store.path)
    content = path.read_bytes().replace(b'"version":1', b'"version":2')
    path.write_bytes(content)
    assert "another version" in refused(store)
    with pytest.raises(CredentialStoreError):
        store.put(key("two"), instead_of=None)
    assert path.read_bytes() == content


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o610])
def test_a_file_that_others_may_read_is_refused_with_the_remedy(
    store: FileCredentials, mode: int
) -> None:
    store.put(key("one"), instead_of=None)
    assert store.look()
    Path(store.path).chmod(mode)
    assert f"chmod 600 {store.path}" in refused(store)
    with pytest.raises(CredentialStoreError):
        store.put(key("two"), instead_of=None)
    Path(store.path).chmod(0o600)
    assert store.look() == {"one": key("one")}


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give a file away")
def test_a_file_of_somebody_else_is_refused(store: FileCredentials) -> None:
    store.put(key("one"), instead_of=None)
    os.chown(store.path, 65534, -1)
    assert "belongs to another user" in refused(store)


def test_a_link_a_pipe_and_a_directory_are_not_taken_for_the_file(
    store: FileCredentials, tmp_path: Path
) -> None:
    path = Path(store.path)
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_bytes(b'{"version":1,"credentials":[]}')
    path.symlink_to(elsewhere)
    refused(store)
    path.unlink()
    os.mkfifo(path, 0o600)
    assert "not a regular file" in refused(store)
    path.unlink()
    path.mkdir(0o700)
    refused(store)


def test_a_disk_that_takes_nothing_leaves_everything_as_it_was(tmp_path: Path) -> None:
    gone = FileCredentials(str(tmp_path / "gone"))
    with pytest.raises(CredentialStoreError, match="Cannot lock"):
        gone.put(key("one"), instead_of=None)
    store = FileCredentials(str(tmp_path))
    store.put(key("one"), instead_of=None)
    huge = key("two", value="x" * limits.CREDENTIAL_FILE_BYTES_MAX)
    with pytest.raises(CredentialStoreError, match="too large"):
        store.put(huge, instead_of=None)
    assert store.look()["one"] == key("one")
    assert list(tmp_path.glob("credentials.json.*")) == []


def test_one_login_is_renewed_by_one_at_a_time_and_another_at_the_same_time(
    store: FileCredentials, tmp_path: Path
) -> None:
    other = FileCredentials(str(tmp_path))
    with store.renewing("one") as mine, other.renewing("one") as theirs:
        assert (mine, theirs) == (True, False)
        with other.renewing("../two/\x00") as another:
            assert another
    with other.renewing("one") as free:
        assert free


async def test_processes_that_write_together_lose_nothing(
    store: FileCredentials, tmp_path: Path
) -> None:
    module = "tests.contract.host.credential_writer"
    writers = [
        await fixtures.child(module, str(tmp_path), f"w{number}", str(EACH))
        for number in range(PROCESSES)
    ]
    for writer in writers:
        assert await fixtures.line(writer) == "ready"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"go\n")
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        ends = [group.create_task(writer.wait()) for writer in writers]
        while not all(end.done() for end in ends):
            # A concurrent reader sees a whole file, never half of one.
            store.look()
            await asyncio.sleep(0)
    assert [end.result() for end in ends] == [0] * PROCESSES
    expected = {f"w{w}-{n}" for w in range(PROCESSES) for n in range(EACH)} | {"shared"}
    assert store.look().keys() == expected
    stored = json.loads(Path(store.path).read_bytes())["credentials"]
    assert len(stored) == len(expected)
    assert list(tmp_path.glob(f"{file.NAME}.*")) == []
