"""The disk below a pinned directory: no link leads out of it, whichever way the path is walked."""

import errno
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from perdure.host.files import confined
from perdure.host.files.confined import OpenDirectory
from perdure.host.files.filesystem import LocalFilesystem
from perdure.ports import Filesystem
from tests.requirements import requirement
from tests.skipping import cannot_run

Operation = Callable[[Filesystem, str], Awaitable[object]]

OPERATIONS: dict[str, Operation] = {
    "stat": lambda files, path: files.stat(path),
    "read": lambda files, path: files.read(path),
    "write": lambda files, path: files.write_atomic(path, b"changed"),
    "create": lambda files, path: files.create_exclusive(f"{path}.new", b"made"),
    "directories": lambda files, path: files.make_directories(f"{path}.d/below"),
    "remove": lambda files, path: files.remove(path),
}
LISTED: dict[str, Operation] = {"list": lambda files, path: files.list(os.path.dirname(path))}


@pytest.fixture(params=["one call", "step by step"])
def walk(request: pytest.FixtureRequest) -> OpenDirectory:
    if request.param == "step by step":
        return confined.open_step_by_step
    walk = confined.make_kernel_opener()
    if walk is None:
        cannot_run("this kernel has no openat2")
    return walk


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "f").write_bytes(b"inside")
    (tmp_path / "outside" / "b").mkdir(parents=True)
    (tmp_path / "outside" / "b" / "f").write_bytes(b"secret")
    return root


def contents(directory: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in sorted(directory.rglob("*"))
    }


async def test_everything_works_below_the_root(walk: OpenDirectory, root: Path) -> None:
    files = LocalFilesystem(open_directory=walk).confined_to(str(root))
    path = str(root / "a/b/f")
    assert await files.read(path, offset=2) == b"side"
    assert (await files.stat(str(root))).is_directory
    assert [name for name, _ in await files.list(str(root))] == ["a"]
    await files.write_atomic(path, b"new")
    await files.make_directories(str(root / "x/y/z"))
    await files.make_directories(str(root / "x/y/z"))
    await files.create_exclusive(str(root / "x/y/z/made"), b"1")
    with pytest.raises(FileExistsError):
        await files.create_exclusive(str(root / "x/y/z/made"), b"2")
    await files.remove(str(root / "a/b/f"))
    assert contents(root) == {
        "a": None,
        "a/b": None,
        "x": None,
        "x/y": None,
        "x/y/z": None,
        "x/y/z/made": b"1",
    }


@requirement("S175")
@pytest.mark.parametrize("operation", [*OPERATIONS, *LISTED])
@pytest.mark.parametrize("place", ["a", "a/b"])
async def test_a_directory_that_became_a_link_is_not_entered(
    walk: OpenDirectory, root: Path, operation: str, place: str
) -> None:
    outside = root.parent / "outside"
    (root / place).rename(root.parent / "moved")
    (root / place).symlink_to(outside if place == "a" else outside / "b")
    before = contents(outside)
    files = LocalFilesystem(open_directory=walk).confined_to(str(root))
    with pytest.raises(OSError, match=r"symbolic|directory") as caught:
        await (OPERATIONS | LISTED)[operation](files, str(root / "a/b/f"))
    assert caught.value.errno in (errno.ELOOP, errno.ENOTDIR)
    assert contents(outside) == before


@pytest.mark.parametrize("operation", ["stat", "read", "write"])
async def test_a_file_that_became_a_link_is_neither_read_nor_written_through(
    walk: OpenDirectory, root: Path, operation: str
) -> None:
    secret = root.parent / "outside/b/f"
    (root / "a/b/f").unlink()
    (root / "a/b/f").symlink_to(secret)
    files = LocalFilesystem(open_directory=walk).confined_to(str(root))
    with pytest.raises(OSError, match="symbolic"):
        await OPERATIONS[operation](files, str(root / "a/b/f"))
    assert secret.read_bytes() == b"secret"
    assert sorted(os.listdir(root / "a/b")) == ["f"]


async def test_of_many_paths_only_files_that_no_link_leads_to_are_files(
    walk: OpenDirectory, root: Path
) -> None:
    (root / "a/link").symlink_to(root / "a/b/f")
    (root / "linked").symlink_to(root.parent / "outside/b")
    os.mkfifo(root / "a/pipe")
    asked = {
        "a/b/f": True,
        "a/b/gone": False,
        "a/b/..": False,
        "a/b/f\0": False,
        "a/link": False,
        "a/pipe": False,
        "a/b": False,
        "linked/f": False,
        "gone/f": False,
        "../outside/b/f": False,
    }
    files = LocalFilesystem(open_directory=walk).confined_to(str(root))
    assert await files.are_files([f"{root}/{path}" for path in asked]) == list(asked.values())
    assert await files.are_files([]) == []
    anywhere = LocalFilesystem(open_directory=walk)
    assert await anywhere.are_files([f"{root}/a/link", f"{root}/a", "/gone"]) == [
        True,
        False,
        False,
    ]


async def test_removing_a_link_removes_the_link(walk: OpenDirectory, root: Path) -> None:
    (root / "link").symlink_to(root.parent / "outside/b/f")
    await LocalFilesystem(open_directory=walk).confined_to(str(root)).remove(str(root / "link"))
    assert (root.parent / "outside/b/f").read_bytes() == b"secret"
    assert not (root / "link").is_symlink()


async def test_a_root_that_became_a_link_is_not_entered(walk: OpenDirectory, root: Path) -> None:
    root.rename(root.parent / "moved")
    root.symlink_to(root.parent / "outside")
    files = LocalFilesystem(open_directory=walk).confined_to(str(root))
    with pytest.raises(OSError, match=r"symbolic|directory"):
        await files.read(str(root / "b/f"))


@pytest.mark.parametrize("path", ["../x", "../outside/b/f", "a/../../outside/b/f", "a/b\0"])
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_what_is_not_below_the_root_is_not_touched(
    walk: OpenDirectory, root: Path, path: str, operation: str
) -> None:
    files = LocalFilesystem(open_directory=walk).confined_to(str(root))
    before = contents(root.parent)
    with pytest.raises(OSError, match="not below"):
        await OPERATIONS[operation](files, f"{root}/{path}")
    with pytest.raises(OSError, match="not below"):
        await OPERATIONS[operation](files, f"{root}-sibling")
    assert contents(root.parent) == before


async def test_missing_files_and_other_failures_are_themselves(
    walk: OpenDirectory, root: Path
) -> None:
    files = LocalFilesystem(open_directory=walk).confined_to(str(root))
    with pytest.raises(FileNotFoundError):
        await files.read(str(root / "gone/f"))
    with pytest.raises(NotADirectoryError):
        await files.read(str(root / "a/b/f/below"))
    with pytest.raises(NotADirectoryError):
        await files.make_directories(str(root / "a/b/f/below"))
    with pytest.raises(IsADirectoryError):
        await files.read(str(root))


async def test_a_leftover_of_a_dead_process_is_in_nobodys_way(
    walk: OpenDirectory, root: Path
) -> None:
    leftover = root / f"a/b/.perdure-{os.getpid()}-1.tmp"
    leftover.write_bytes(b"half")
    await (
        LocalFilesystem(open_directory=walk)
        .confined_to(str(root))
        .write_atomic(str(root / "a/b/f"), b"new")
    )
    assert (root / "a/b/f").read_bytes() == b"new"
    assert leftover.read_bytes() == b"half"


async def test_no_descriptor_stays_open(walk: OpenDirectory, root: Path) -> None:
    files = LocalFilesystem(open_directory=walk).confined_to(str(root))
    (root / "link").symlink_to(root / "a")
    before = len(os.listdir("/proc/self/fd"))
    for operation in OPERATIONS.values():
        for path in ("a/b/f", "gone/f", "link/b/f", "../x"):
            with suppress(OSError):
                await operation(files, f"{root}/{path}")
            await files.are_files([f"{root}/{path}"] * 2)
    assert len(os.listdir("/proc/self/fd")) == before
