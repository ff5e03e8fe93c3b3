"""Uncommitted changes go from one work tree to another whole, or they stay where they are."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.host.process.runner import LocalProcesses
from perdure.location.project import project
from perdure.location.project.git_changes import CapturedChanges, ChangesRefusedError, GitChanges
from perdure.location.project.project import Repository
from tests.contract.location.opened_location import LocationFolders

BINARY = bytes(range(256)) * 8


@pytest.fixture
def other(folders: LocationFolders) -> Path:
    """A second work tree of a repository that has a few files."""
    folders.git("init")
    for name, text in (("kept.txt", "kept\n"), ("edited.txt", "one\n"), ("gone.txt", "gone\n")):
        folders.write(folders.project / name, text)
    folders.write(folders.project / "run.sh", "true\n")
    folders.write(folders.project / ".gitignore", "*.log\n")
    (folders.project / "image.bin").write_bytes(BINARY)
    folders.git("add", "-A")
    folders.git("commit", "-m", "first")
    folders.git("worktree", "add", "../other")
    return folders.root / "other"


@pytest.fixture
def changes(folders: LocationFolders) -> GitChanges:
    return GitChanges(LocalProcesses(), folders.variables)


def repository(path: Path) -> Repository:
    found = project.find_repository(str(path))
    assert found is not None
    return found


def edit(folders: LocationFolders) -> None:
    """One change of every kind."""
    at = folders.project
    folders.write(at / "edited.txt", "two\n")
    folders.write(at / "new" / "deep" / "file.txt", "new\n")
    folders.write(at / "staged.txt", "staged\n")
    folders.git("add", "staged.txt")
    folders.write(at / "staged.txt", "staged, then edited\n")
    folders.write(at / "debug.log", "ignored\n")
    folders.write(at / 'odd "name"\n.txt', "odd\n")
    (at / "gone.txt").unlink()
    (at / "image.bin").write_bytes(BINARY[::-1])
    (at / "added.bin").write_bytes(BINARY)
    (at / "link").symlink_to("kept.txt")
    (at / "run.sh").chmod(0o755)


def files(root: Path) -> dict[str, bytes]:
    """Everything below `root` that is not git's own; a link by where it leads."""
    return {
        str(path.relative_to(root)): (
            str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
        )
        for path in root.rglob("*")
        if (path.is_symlink() or path.is_file()) and ".git" not in path.relative_to(root).parts
    }


async def test_changes_of_every_kind_are_made_there_and_undone_here(
    folders: LocationFolders, other: Path, changes: GitChanges
) -> None:
    clean = files(folders.project)
    edit(folders)
    changed = files(folders.project)
    async with changes.capture(repository(folders.project)) as captured:
        assert await captured.apply(repository(other))
        assert files(folders.project) == changed
        assert await captured.discard()
    assert files(other) == {name: data for name, data in changed.items() if name != "debug.log"}
    assert (other / "run.sh").stat().st_mode & 0o100
    # What git ignores is no change, and stays.
    assert files(folders.project) == clean | {"debug.log": b"ignored\n"}
    assert not (folders.project / "new").exists()
    assert not (folders.project / "run.sh").stat().st_mode & 0o100


async def test_the_index_of_the_source_keeps_what_was_staged(
    folders: LocationFolders, other: Path, changes: GitChanges
) -> None:
    edit(folders)
    async with changes.capture(repository(folders.project)) as captured:
        await captured.apply(repository(other))
        await captured.discard()
    assert folders.git("show", ":staged.txt") == "staged"
    assert folders.git("status", "--porcelain", "--untracked-files=all") == "AD staged.txt"
    assert folders.git("diff", "--cached", "--name-only", at=other) == ""


async def test_capturing_leaves_no_trace_in_the_repository(
    folders: LocationFolders, other: Path, changes: GitChanges
) -> None:
    edit(folders)
    before = folders.git("count-objects", "-v"), (folders.project / ".git" / "index").read_bytes()
    async with changes.capture(repository(folders.project)):
        pass
    after = folders.git("count-objects", "-v"), (folders.project / ".git" / "index").read_bytes()
    assert after == before


def same_line(other: Path) -> None:
    (other / "edited.txt").write_text("three\n", encoding="utf-8")


def untracked_in_the_way(other: Path) -> None:
    (other / "new" / "deep").mkdir(parents=True)
    (other / "new" / "deep" / "file.txt").write_text("mine\n", encoding="utf-8")


def another_image(other: Path) -> None:
    (other / "image.bin").write_bytes(b"\0 another")


@pytest.mark.parametrize("meanwhile", [same_line, untracked_in_the_way, another_image])
async def test_what_does_not_fit_there_changes_nothing_anywhere(
    folders: LocationFolders, other: Path, changes: GitChanges, meanwhile: Callable[[Path], None]
) -> None:
    edit(folders)
    meanwhile(other)
    here, there = files(folders.project), files(other)
    async with changes.capture(repository(folders.project)) as captured:
        with pytest.raises(ChangesRefusedError, match="do not fit"):
            await captured.apply(repository(other))
    assert (files(folders.project), files(other)) == (here, there)


async def test_other_changes_at_the_destination_are_left_alone(
    folders: LocationFolders, other: Path, changes: GitChanges
) -> None:
    edit(folders)
    folders.write(other / "kept.txt", "changed there\n")
    folders.write(other / "theirs.txt", "theirs\n")
    async with changes.capture(repository(folders.project)) as captured:
        assert await captured.apply(repository(other))
    assert (other / "kept.txt").read_text() == "changed there\n"
    assert (other / "theirs.txt").read_text() == "theirs\n"
    assert (other / "edited.txt").read_text() == "two\n"


async def test_what_was_applied_can_be_taken_back(
    folders: LocationFolders, other: Path, changes: GitChanges
) -> None:
    edit(folders)
    there = files(other)
    async with changes.capture(repository(folders.project)) as captured:
        await captured.apply(repository(other))
        assert await captured.undo_apply(repository(other))
    assert files(other) == there


async def test_changes_that_are_there_already_are_not_made_twice(
    folders: LocationFolders, other: Path, changes: GitChanges
) -> None:
    edit(folders)
    async with changes.capture(repository(folders.project)) as captured:
        assert await captured.apply(repository(other))
    there = files(other)
    async with changes.capture(repository(folders.project)) as captured:
        assert not await captured.apply(repository(other))
    assert files(other) == there


async def test_what_changed_again_since_is_not_undone(
    folders: LocationFolders, other: Path, changes: GitChanges
) -> None:
    edit(folders)
    async with changes.capture(repository(folders.project)) as captured:
        await captured.apply(repository(other))
        folders.write(folders.project / "new" / "deep" / "file.txt", "newer\n")
        before = files(folders.project)
        assert not await captured.discard()
    assert files(folders.project) == before


async def test_what_was_committed_since_is_not_undone(
    folders: LocationFolders, other: Path, changes: GitChanges
) -> None:
    edit(folders)
    async with changes.capture(repository(folders.project)) as captured:
        folders.git("add", "-A")
        folders.git("commit", "-m", "second")
        before = files(folders.project)
        assert not await captured.discard()
    assert files(folders.project) == before


async def test_without_changes_there_is_nothing_to_do(
    folders: LocationFolders, other: Path, changes: GitChanges
) -> None:
    async with changes.capture(repository(folders.project)) as captured:
        assert captured.empty
        assert not await captured.apply(repository(other))
        assert await captured.discard()


async def test_a_repository_inside_the_work_tree_stays_whole(
    folders: LocationFolders, other: Path, changes: GitChanges
) -> None:
    inner = folders.project / "inner"
    folders.git("worktree", "add", "inner")
    folders.write(inner / "mine.txt", "mine\n")
    folders.write(folders.project / "edited.txt", "two\n")
    async with changes.capture(repository(folders.project)) as captured:
        await captured.apply(repository(inner))
        assert await captured.discard()
    assert (inner / "mine.txt").read_text() == "mine\n"
    assert (inner / "edited.txt").read_text() == "two\n"
    assert (folders.project / "edited.txt").read_text() == "one\n"


async def test_between_clones_changes_need_no_common_objects(
    folders: LocationFolders, other: Path, changes: GitChanges
) -> None:
    # A colon separates the entries of git's lists of directories.
    clone = folders.root / 'a:"clone'
    folders.git("clone", "--no-local", str(folders.project), str(clone))
    (clone / "image.bin").write_bytes(BINARY[::-1])
    async with changes.capture(repository(clone)) as captured:
        assert await captured.apply(repository(other))
        assert await captured.discard()
    assert (other / "image.bin").read_bytes() == BINARY[::-1]
    assert (clone / "image.bin").read_bytes() == BINARY


async def test_configuration_of_the_user_does_not_change_what_is_moved(
    folders: LocationFolders, other: Path, changes: GitChanges
) -> None:
    settings = {
        "apply.whitespace": "fix",
        "diff.noprefix": "true",
        "diff.external": "false",
        "color.ui": "always",
        "core.hooksPath": str(folders.root / "hooks"),
    }
    folders.write(folders.root / "hooks" / "post-index-change", "#!/bin/sh\ntouch ../hooked\n")
    (folders.root / "hooks" / "post-index-change").chmod(0o755)
    for name, value in settings.items():
        folders.git("config", name, value)
    folders.write(folders.project / "edited.txt", "spaces at the end   \n")
    async with changes.capture(repository(folders.project)) as captured:
        assert await captured.apply(repository(other))
        assert await captured.discard()
    assert (other / "edited.txt").read_text() == "spaces at the end   \n"
    assert not (folders.root / "hooked").exists()


async def test_too_many_changes_are_refused_and_stay(
    folders: LocationFolders, other: Path, changes: GitChanges
) -> None:
    edit(folders)
    before = files(folders.project)
    small = GitChanges(LocalProcesses(), folders.variables, bytes_max=1_000)
    with pytest.raises(ChangesRefusedError, match="more than 1000 bytes"):
        async with small.capture(repository(folders.project)):
            pytest.fail("captured")
    assert files(folders.project) == before


async def test_an_unfinished_merge_is_not_moved(
    folders: LocationFolders, other: Path, changes: GitChanges
) -> None:
    for at, text in ((other, "theirs\n"), (folders.project, "ours\n")):
        folders.write(at / "edited.txt", text)
        folders.git("commit", "-a", "-m", "edit", at=at)
    with pytest.raises(Exception, match="merge"):
        folders.git("merge", "other")
    with pytest.raises(ChangesRefusedError, match="merge is not finished"):
        async with changes.capture(repository(folders.project)):
            pytest.fail("captured")


async def test_a_repository_without_a_commit_has_nothing_to_compare_with(
    folders: LocationFolders, changes: GitChanges
) -> None:
    folders.git("init")
    with pytest.raises(ChangesRefusedError, match="no commit"):
        async with changes.capture(repository(folders.project)):
            pytest.fail("captured")


async def test_without_git_that_is_said(folders: LocationFolders, other: Path) -> None:
    changes = GitChanges(
        LocalProcesses(), folders.variables | {"PATH": str(folders.root / "empty")}
    )
    with pytest.raises(ChangesRefusedError, match="git cannot be started"):
        async with changes.capture(repository(folders.project)):
            pytest.fail("captured")


async def test_those_who_move_at_once_wait_for_each_other(
    folders: LocationFolders, other: Path, changes: GitChanges
) -> None:
    edit(folders)
    folders.git("worktree", "add", "../third")
    third = folders.root / "third"
    brought: list[bool] = []

    async def carry(to: Path) -> None:
        async with changes.capture(repository(folders.project)) as captured:
            await _carried(captured, to, brought)

    async with asyncio.TaskGroup() as group:
        for to in (other, third):
            group.create_task(carry(to))
    assert sorted(brought) == [False, True]
    assert files(folders.project).keys() & {"new/deep/file.txt"} == set()


async def _carried(captured: CapturedChanges, to: Path, brought: list[bool]) -> None:
    brought.append(await captured.apply(repository(to)))
    assert await captured.discard()
