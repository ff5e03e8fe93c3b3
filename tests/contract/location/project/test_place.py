"""The place of a directory: shared by work trees, and by no directory that only claims it."""

import os
import shutil
from pathlib import Path

import pytest

from perdure.location.project import place
from tests.contract.location.opened_location import LocationFolders


@pytest.fixture
def good(folders: LocationFolders, tmp_path: Path) -> Path:
    """A repository with one commit, a remote, and an id of its own."""
    made = tmp_path / "good"
    made.mkdir()
    folders.git("init", "-q", ".", at=made)
    folders.git("remote", "add", "origin", "https://example.org/good.git", at=made)
    (made / ".git" / "opencode").write_text("the-good-project")
    (made / "a.txt").write_text("a")
    folders.git("add", "-A", at=made)
    folders.git("commit", "-q", "-m", "first", at=made)
    return made


def key(directory: Path) -> str:
    return place.find_place(str(directory)).key


def test_work_trees_and_directories_of_a_repository_share_its_place(
    folders: LocationFolders, good: Path, tmp_path: Path
) -> None:
    folders.git("worktree", "add", "-q", str(tmp_path / "tree"), at=good)
    (good / "packages" / "web").mkdir(parents=True)
    (tmp_path / "link").symlink_to(good)
    others = (tmp_path / "tree", good / "packages" / "web", tmp_path / "link", good / ".git")
    assert {key(each) for each in others} == {key(good)}


def test_outside_a_repository_each_directory_is_its_own_place(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert len({key(tmp_path), key(tmp_path / "a"), key(tmp_path / "a" / "b")}) == 3


def test_what_a_copy_says_about_itself_does_not_count(good: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(good, copy, symlinks=True)
    assert (copy / ".git" / "opencode").read_text() == "the-good-project"
    assert key(copy) != key(good)


def test_a_moved_directory_and_one_that_takes_its_path_are_other_places(
    good: Path, tmp_path: Path
) -> None:
    before = key(good)
    good.rename(tmp_path / "moved")
    assert key(tmp_path / "moved") != before
    shutil.copytree(tmp_path / "moved", good, symlinks=True)
    assert key(good) != before
    shutil.rmtree(good)
    (tmp_path / "moved").rename(good)
    assert key(good) == before


def test_a_directory_that_names_the_repository_of_another_is_its_own_place(
    folders: LocationFolders, good: Path, tmp_path: Path
) -> None:
    folders.git("worktree", "add", "-q", str(tmp_path / "tree"), at=good)
    [admin] = (good / ".git" / "worktrees").iterdir()
    claims = {
        "file": f"gitdir: {good}/.git\n",
        "worktree": f"gitdir: {admin}\n",
        "relative": f"gitdir: ../good/.git/worktrees/{admin.name}\n",
    }
    for name, text in claims.items():
        evil = tmp_path / name
        evil.mkdir()
        (evil / ".git").write_text(text)
        assert key(evil) != key(good), name
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / ".git").symlink_to(good / ".git")
    assert key(linked) != key(good)
    common = tmp_path / "common"
    common.mkdir()
    folders.git("init", "-q", ".", at=common)
    (common / ".git" / "commondir").write_text(str(good / ".git"))
    assert key(common) != key(good)


def test_an_admin_directory_that_a_stranger_brings_confirms_nothing(
    folders: LocationFolders, good: Path, tmp_path: Path
) -> None:
    evil = tmp_path / "evil"
    admin = evil / "admin" / "worktrees" / "x"
    admin.mkdir(parents=True)
    (admin / "HEAD").write_text("ref: refs/heads/main\n")
    (admin / "commondir").write_text(f"{good}/.git\n")
    (admin / "gitdir").write_text(f"{evil}/.git\n")
    (evil / ".git").write_text(f"gitdir: {admin}\n")
    assert key(evil) != key(good)


def test_a_name_that_is_no_text_has_a_place(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\n"))
    odd.mkdir()
    found = place.find_place(str(odd))
    assert found.path.endswith(b"/\xff\n")
    assert "\ufffd" in found.display_path


def test_a_directory_that_is_gone_has_none(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="gone"):
        place.find_place(str(tmp_path / "gone"))
