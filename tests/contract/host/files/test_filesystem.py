"""The local disk behind its port."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

from perdure.core.limits import FILE_INLINE_BYTES_MAX
from perdure.host.files.filesystem import LocalFilesystem

LARGE = FILE_INLINE_BYTES_MAX + 1


@pytest.fixture
def files() -> LocalFilesystem:
    return LocalFilesystem()


@pytest.mark.parametrize("size", [0, 10, FILE_INLINE_BYTES_MAX, LARGE, 3 * 1024 * 1024])
async def test_a_file_comes_back_as_it_was_written(
    files: LocalFilesystem, tmp_path: Path, size: int
) -> None:
    path, data = str(tmp_path / "file"), os.urandom(size)
    await files.write_atomic(path, data)
    assert await files.read(path) == data
    assert await files.read(path, offset=3, bytes_max=5) == data[3:8]
    assert await files.read(path, offset=size) == b""
    assert [name for name, _ in await files.list(str(tmp_path))] == ["file"]


async def test_a_file_whose_size_is_unknown_is_read_to_its_end(files: LocalFilesystem) -> None:
    assert b"Name:" in await files.read("/proc/self/status")


async def test_a_directory_and_a_missing_file_fail_as_themselves(
    files: LocalFilesystem, tmp_path: Path
) -> None:
    with pytest.raises(IsADirectoryError):
        await files.read(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        await files.read(str(tmp_path / "missing"))
    with pytest.raises(FileNotFoundError):
        await files.write_atomic(str(tmp_path / "missing" / "file"), b"")


async def test_reading_a_named_pipe_is_refused_and_does_not_hang(
    files: LocalFilesystem, tmp_path: Path
) -> None:
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    async with asyncio.timeout(5):
        with pytest.raises(OSError, match="not a regular file"):
            await files.read(pipe)


async def test_replacing_keeps_the_mode_and_writes_through_a_link(
    files: LocalFilesystem, tmp_path: Path
) -> None:
    script, link = tmp_path / "script", tmp_path / "link"
    script.write_bytes(b"old")
    script.chmod(0o751)
    link.symlink_to(script)
    await files.write_atomic(str(link), b"new")
    assert link.is_symlink()
    assert script.read_bytes() == b"new"
    assert stat.S_IMODE(script.stat().st_mode) == 0o751


async def test_a_replacement_that_fails_leaves_nothing_behind(
    files: LocalFilesystem, tmp_path: Path
) -> None:
    directory = tmp_path / "directory"
    (directory / "child").mkdir(parents=True)
    with pytest.raises(OSError, match="irectory"):
        await files.write_atomic(str(directory), b"data")
    assert [path.name for path in tmp_path.iterdir()] == ["directory"]


async def test_readers_see_the_old_file_or_the_new_one(
    files: LocalFilesystem, tmp_path: Path
) -> None:
    path = str(tmp_path / "file")
    versions = [bytes([65 + turn]) * LARGE for turn in range(8)]
    await files.write_atomic(path, versions[0])

    async def write() -> None:
        for version in versions:
            await files.write_atomic(path, version)

    async def read() -> None:
        for _ in range(20):
            assert await files.read(path) in versions

    async with asyncio.TaskGroup() as group:
        group.create_task(write())
        group.create_task(read())


async def test_a_cancelled_write_is_finished_before_the_caller_learns_of_it(
    files: LocalFilesystem, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    data = b"x" * (8 * 1024 * 1024)
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(files.write_atomic(str(path), data))
        await asyncio.sleep(0)
        writing.cancel()
    assert writing.cancelled()
    assert path.read_bytes() == data
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


async def test_an_exclusive_file_is_private_and_never_replaces(
    files: LocalFilesystem, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    await files.create_exclusive(str(path), b"mine")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        await files.create_exclusive(str(path), b"x" * LARGE)
    assert path.read_bytes() == b"mine"


async def test_a_listing_is_ordered_and_describes_links_by_their_target(
    files: LocalFilesystem, tmp_path: Path
) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "to_b").symlink_to(tmp_path / "b")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    listing = dict(await files.list(str(tmp_path)))
    assert list(listing) == ["a", "b", "nowhere", "to_b"]
    assert (listing["a"].is_file, listing["a"].size) == (True, 5)
    assert listing["to_b"].is_directory
    assert (listing["nowhere"].is_file, listing["nowhere"].is_directory) == (False, False)


async def test_paths_resolve_through_links_though_the_end_is_missing(
    files: LocalFilesystem, tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    resolved = await files.real_path(str(tmp_path / "link" / "new" / "file"))
    assert resolved == str(tmp_path / "real" / "new" / "file")


async def test_making_and_removing_are_plain(files: LocalFilesystem, tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    await files.make_directories(str(deep))
    await files.make_directories(str(deep))
    (deep / "file").touch()
    await files.remove(str(deep / "file"))
    assert list(deep.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        await files.remove(str(deep / "file"))
