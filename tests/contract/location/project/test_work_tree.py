"""The work tree of a repository: its branch, and what is not committed, as clients see it."""

import os
from pathlib import Path
from subprocess import CalledProcessError

import pytest

from perdure.host.process.runner import LocalProcesses
from perdure.location.project.work_tree import WorkTrees
from perdure.schema.files.vcs import FileStatus, VcsInfo
from tests.contract.location.opened_location import LocationFolders


@pytest.fixture
def repository(folders: LocationFolders) -> Path:
    folders.git("init", "-b", "main")
    folders.write(folders.project / "kept.txt", "one\ntwo\n")
    folders.write(folders.project / "gone.txt", "gone\n")
    folders.write(folders.project / "sub" / "deep.txt", "deep\n")
    folders.write(folders.project / ".gitignore", "ignored.txt\n")
    folders.git("add", "-A")
    folders.git("commit", "-m", "first")
    return folders.project


@pytest.fixture
def trees(folders: LocationFolders) -> WorkTrees:
    return WorkTrees(LocalProcesses(), folders.variables)


async def test_what_is_not_committed_is_listed(
    folders: LocationFolders, repository: Path, trees: WorkTrees
) -> None:
    folders.write(repository / "kept.txt", "one\nTWO\n")
    (repository / "gone.txt").unlink()
    folders.write(repository / "new ä\t.txt", "a\nb\n")
    folders.write(repository / "ignored.txt", "x")
    assert set(await trees.status(str(repository))) == {
        FileStatus("gone.txt", "deleted", 0, 1),
        FileStatus("kept.txt", "modified", 1, 1),
        FileStatus("new ä\t.txt", "added", 2, 0),
    }
    patches = {each.path: each.patch for each in await trees.diff(str(repository), "head")}
    assert "-two\n+TWO\n" in patches["kept.txt"]
    assert "+a\n+b\n" in patches["new ä\t.txt"]
    assert "-gone\n" in patches["gone.txt"]


async def test_a_subdirectory_lists_its_own_files_by_its_own_names(
    folders: LocationFolders, repository: Path, trees: WorkTrees
) -> None:
    folders.write(repository / "kept.txt", "changed\n")
    folders.write(repository / "sub" / "deep.txt", "changed\n")
    found = await trees.status(str(repository / "sub"))
    assert [each.path for each in found] == ["deep.txt"]


async def test_neither_index_nor_objects_of_the_repository_are_touched(
    folders: LocationFolders, repository: Path, trees: WorkTrees
) -> None:
    folders.write(repository / "new.txt", "new\n")
    before = snapshot(repository / ".git")
    await trees.diff(str(repository), "head")
    assert snapshot(repository / ".git") == before


def snapshot(directory: Path) -> dict[str, tuple[int, int]]:
    found = (Path(root) / name for root, _, names in os.walk(directory) for name in names)
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in found}


async def test_a_branch_is_compared_with_where_it_left_the_default_branch(
    folders: LocationFolders, repository: Path, trees: WorkTrees
) -> None:
    folders.git("checkout", "-b", "topic")
    folders.write(repository / "committed.txt", "on the branch\n")
    folders.git("add", "-A")
    folders.git("commit", "-m", "second")
    folders.write(repository / "open.txt", "not committed\n")
    info = await trees.info(str(repository))
    assert (info.branch, info.default_branch) == ("topic", "main")
    head = {each.path for each in await trees.diff(str(repository), "head")}
    branch = {each.path for each in await trees.diff(str(repository), "branch")}
    assert (head, branch) == ({"open.txt"}, {"open.txt", "committed.txt"})


async def test_a_repository_without_a_commit_has_only_new_files(
    folders: LocationFolders, trees: WorkTrees
) -> None:
    folders.git("init", "-b", "main")
    folders.write(folders.project / "first.txt", "first\n")
    found = await trees.status(str(folders.project))
    assert FileStatus("first.txt", "added", 1, 0) in found


async def test_an_unfinished_merge_is_compared_with_the_commit(
    folders: LocationFolders, repository: Path, trees: WorkTrees
) -> None:
    folders.git("checkout", "-b", "other")
    folders.write(repository / "kept.txt", "other\n")
    folders.git("commit", "-am", "other")
    folders.git("checkout", "main")
    folders.write(repository / "kept.txt", "mine\n")
    folders.git("commit", "-am", "mine")
    with pytest.raises(CalledProcessError):
        folders.git("merge", "other")
    (found,) = await trees.diff(str(repository), "head")
    assert (found.path, found.status) == ("kept.txt", "modified")
    assert "<<<<<<<" in found.patch


async def test_a_file_that_became_a_link_keeps_the_patches_of_the_others_in_place(
    folders: LocationFolders, repository: Path, trees: WorkTrees
) -> None:
    (repository / "gone.txt").unlink()
    (repository / "gone.txt").symlink_to("kept.txt")
    folders.write(repository / "kept.txt", "changed\n")
    patches = {each.path: each.patch for each in await trees.diff(str(repository), "head")}
    assert "new file mode 120000" in patches["gone.txt"]
    assert "+changed" in patches["kept.txt"]


async def test_outside_a_repository_there_is_nothing(
    folders: LocationFolders, trees: WorkTrees
) -> None:
    assert await trees.status(str(folders.project)) == ()
    assert await trees.diff(str(folders.project), "head") == ()
    assert await trees.info(str(folders.project)) == VcsInfo()
