"""The files of a Location: what is inside can be read, and nothing else."""

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.location import factory
from perdure.location.workspace.files import LocationFiles
from perdure.schema.errors import InvalidRequestError, NotFoundError
from perdure.schema.files.fs import Span
from tests.contract.location.opened_location import LocationFolders


@pytest.fixture
def folders(tmp_path: Path) -> LocationFolders:
    folders = LocationFolders(tmp_path)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    (folders.project / "sub").mkdir()
    (folders.project / "sub" / "inner.txt").write_text("inner")
    (folders.project / "hello.txt").write_text("0123456789")
    return folders


@pytest.fixture
def files(folders: LocationFolders) -> LocationFiles:
    return factory.open_location(folders.ref, folders.host()).files


async def test_a_file_is_read_with_the_type_of_its_name(files: LocationFiles) -> None:
    content = await files.read("sub/inner.txt")
    assert (content.data, content.content_type) == (b"inner", "text/plain")
    assert (await files.read("./sub/../hello.txt")).data == b"0123456789"


@pytest.mark.parametrize(
    ("span", "data", "offset"),
    [
        (Span(2, 4), b"234", 2),
        (Span(8, None), b"89", 8),
        (Span(0, 10**17), b"0123456789", 0),
        (Span(None, 3), b"789", 7),
        (Span(None, 99), b"0123456789", 0),
    ],
)
async def test_a_part_of_a_file_is_read(
    files: LocationFiles, span: Span, data: bytes, offset: int
) -> None:
    content = await files.read("hello.txt", span)
    assert (content.data, content.offset, content.size) == (data, offset, 10)


@pytest.mark.parametrize("span", [Span(10, None), Span(10**17, None), Span(None, 0)])
async def test_a_part_that_is_not_there_is_refused(files: LocationFiles, span: Span) -> None:
    with pytest.raises(InvalidRequestError, match="10 bytes"):
        await files.read("hello.txt", span)


async def test_a_huge_file_is_read_in_parts_only(
    files: LocationFiles, folders: LocationFolders
) -> None:
    huge = folders.project / "huge.bin"
    huge.touch()
    os.truncate(huge, limits.FS_READ_BYTES_MAX + 1)
    with pytest.raises(InvalidRequestError, match="ask for a range"):
        await files.read("huge.bin")
    whole = await files.read("huge.bin", Span(0, None))
    assert len(whole.data) == limits.FS_READ_BYTES_MAX
    assert len((await files.read("huge.bin", Span(None, 5))).data) == 5


HOSTILE = (
    "../outside/secret.txt",
    "..",
    "sub/../../outside/secret.txt",
    "/etc/hostname",
    "//etc/hostname",
    "link",
    "folder/secret.txt",
    "loop",
    "a\0b",
    "x" * (limits.PATH_CHARS_MAX + 1),
    "x" * 300,
    "~/secret",
    "pipe",
    "sub",
    "",
    ".",
    "\ud800",
)


@pytest.mark.parametrize("path", HOSTILE)
async def test_what_is_outside_or_no_file_is_never_read(
    files: LocationFiles, folders: LocationFolders, path: str
) -> None:
    (folders.project / "link").symlink_to(folders.root / "outside" / "secret.txt")
    (folders.project / "folder").symlink_to(folders.root / "outside")
    (folders.project / "loop").symlink_to("loop")
    os.mkfifo(folders.project / "pipe")
    with pytest.raises((InvalidRequestError, NotFoundError)):
        await files.read(path)


async def test_a_link_that_stays_inside_is_followed(
    files: LocationFiles, folders: LocationFolders
) -> None:
    (folders.project / "alias").symlink_to("sub/inner.txt")
    assert (await files.read("alias")).data == b"inner"


async def test_a_file_that_becomes_a_link_while_it_is_read_never_leads_outside(
    files: LocationFiles, folders: LocationFolders
) -> None:
    target, other = folders.project / "swapped.txt", folders.project / "other"
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            other.write_text("mine")
            other.replace(target)
            other.symlink_to(folders.root / "outside" / "secret.txt")
            other.replace(target)

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen: set[bytes] = set()
    try:
        for _ in range(2_000):
            with suppress(InvalidRequestError, NotFoundError):
                seen.add((await files.read("swapped.txt")).data)
    finally:
        over.set()
        swapper.join()
    # The file is empty for a moment while it is made.
    assert b"mine" in seen
    assert seen <= {b"", b"mine"}


async def test_a_folder_is_listed_directories_first_relative_to_the_location(
    files: LocationFiles, folders: LocationFolders
) -> None:
    (folders.project / ".hidden").mkdir()
    (folders.project / os.fsdecode(b"bad\xff")).touch()
    listed = [(entry.path, entry.type) for entry in await files.list()]
    assert listed == [
        (".hidden/", "directory"),
        ("sub/", "directory"),
        ("bad\ufffd", "file"),
        ("hello.txt", "file"),
    ]
    assert [entry.path for entry in await files.list("sub")] == ["sub/inner.txt"]


@pytest.mark.parametrize("path", ["none", "hello.txt", "hello.txt/x", "..", "/", "folder"])
async def test_only_folders_inside_are_listed(
    files: LocationFiles, folders: LocationFolders, path: str
) -> None:
    (folders.project / "folder").symlink_to(folders.root / "outside")
    with pytest.raises((InvalidRequestError, NotFoundError)):
        await files.list(path)


async def test_finding_leaves_out_what_is_hidden_or_ignored(
    files: LocationFiles, folders: LocationFolders
) -> None:
    (folders.project / ".gitignore").write_text("ignored.txt\n")
    (folders.project / "ignored.txt").touch()
    found = await files.find("")
    assert {entry.path for entry in found} == {"sub/", "sub/inner.txt", "hello.txt"}
    directories = await files.find("sub", type="directory")
    assert [entry.path for entry in directories] == ["sub/"]
    assert [entry.path for entry in await files.find("inn", type="file")] == ["sub/inner.txt"]
    assert len(await files.find("", limit=1)) == 1


async def test_a_query_that_is_too_long_is_refused(files: LocationFiles) -> None:
    with pytest.raises(InvalidRequestError, match="longer"):
        await files.find("x" * 5_000)
