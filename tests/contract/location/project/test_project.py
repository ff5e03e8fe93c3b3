"""Project identity: the same for every clone, found without starting git where possible."""

import asyncio
import hashlib
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from perdure.host.process.runner import LocalProcesses
from perdure.location.project import project
from perdure.location.project.project import GLOBAL, Projects
from perdure.schema.ids import ProjectID
from perdure.schema.location import ProjectRef
from tests.contract.location.opened_location import LocationFolders
from tests.support.watched_processes import WatchedProcesses


class CountedProcesses(WatchedProcesses):
    def __init__(self) -> None:
        super().__init__()
        self.started = 0

    async def starting(self, arguments: Sequence[str], seconds: float) -> float:
        self.started += 1
        return seconds


@pytest.fixture
def processes() -> CountedProcesses:
    return CountedProcesses()


@pytest.fixture
def projects(folders: LocationFolders, processes: CountedProcesses) -> Projects:
    return Projects(processes, folders.variables)


def commit(folders: LocationFolders, at: Path | None = None) -> str:
    folders.git("commit", "--allow-empty", "-m", "c", at=at)
    return folders.git("rev-list", "--max-parents=0", "HEAD", at=at)


async def test_outside_a_repository_the_project_is_global(
    folders: LocationFolders, projects: Projects
) -> None:
    assert await projects.resolve(str(folders.project)) == ProjectRef(id=GLOBAL.id, directory="/")


async def test_a_remote_identifies_every_clone_without_starting_git(
    folders: LocationFolders, projects: Projects, processes: CountedProcesses
) -> None:
    folders.git("init")
    folders.git("remote", "add", "origin", "git@GitHub.example:team/Thing.git")
    inner = folders.project / "a" / "b"
    inner.mkdir(parents=True)
    digest = hashlib.sha1(b"git-remote:github.example/team/Thing").hexdigest()
    assert await projects.resolve(str(inner)) == ProjectRef(ProjectID(digest), str(folders.project))
    assert processes.started == 0


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("https://github.com/a/b.git", "github.com/a/b"),
        ("https://user:token@GitHub.com/a/b/", "github.com/a/b"),
        ("ssh://git@github.com:22/a/b.git", "github.com/a/b"),
        ("git@github.com:a/b.git", "github.com/a/b"),
        ("github.com:/a/b.git/", "github.com/a/b"),
        ("git://host/a//", "host/a"),
        ("[::1]:a/b", "[::1]/a/b"),
        ("/srv/git/b.git", None),
        ("../b.git", None),
        ("file:///srv/b.git", None),
        ("C:\\repo", None),
        ("ext::sh -c evil", None),
        ("https://host/", None),
        ("https://host", None),
        ("", None),
        (":", None),
    ],
)
def test_a_remote_is_the_same_however_it_is_reached(url: str, normal: str | None) -> None:
    assert project.normalize_remote(url) == normal


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ('[remote "origin"]\n\turl = a:b\n', "a:b"),
        ('[core]\nurl=no\n[REMOTE "origin"] URL = "a b" ; said\n', "a b"),
        ('[remote "Origin"]\nurl = no\n[remote "origin"]\nfetch = x\nurl=one\nurl=two', "one"),
        ('[remote "origin"]\n# url = no\n[branch "x"]\nurl = no', None),
        ("[remote origin\nurl = no", None),
        ("", None),
    ],
)
def test_the_origin_is_read_from_the_config(text: str, url: str | None) -> None:
    assert project.origin_url(text) == url


async def test_a_kept_id_is_used_without_a_remote(
    folders: LocationFolders, projects: Projects, processes: CountedProcesses
) -> None:
    folders.git("init")
    folders.write(folders.project / ".git" / "opencode", "kept-id\n")
    assert (await projects.resolve(str(folders.project))).id == "kept-id"
    folders.write(folders.project / ".git" / "opencode", "../../etc/passwd and more")
    assert (await projects.resolve(str(folders.project))).id == GLOBAL.id


async def test_without_remote_the_first_commit_identifies_and_git_is_asked_once(
    folders: LocationFolders, projects: Projects, processes: CountedProcesses
) -> None:
    folders.git("init")
    root = commit(folders)
    answers = await asyncio.gather(*(projects.resolve(str(folders.project)) for _ in range(20)))
    assert {answer.id for answer in answers} == {root}
    assert processes.started == 1
    commit(folders)
    assert (await projects.resolve(str(folders.project))).id == root
    assert processes.started == 1
    assert not (folders.project / ".git" / "opencode").exists()


async def test_the_first_commit_and_a_new_remote_are_noticed(
    folders: LocationFolders, projects: Projects
) -> None:
    folders.git("init")
    assert (await projects.resolve(str(folders.project))) == ProjectRef(
        GLOBAL.id, str(folders.project)
    )
    root = commit(folders)
    assert (await projects.resolve(str(folders.project))).id == root
    folders.git("remote", "add", "origin", "https://host.example/a")
    digest = hashlib.sha1(b"git-remote:host.example/a").hexdigest()
    assert (await projects.resolve(str(folders.project))).id == digest


async def test_a_linked_work_tree_is_the_same_project_with_its_own_directory(
    folders: LocationFolders, projects: Projects
) -> None:
    folders.git("init")
    root = commit(folders)
    linked = folders.root / "linked"
    folders.git("worktree", "add", str(linked), "-b", "side")
    assert await projects.resolve(str(linked)) == ProjectRef(ProjectID(root), str(linked))


async def test_a_submodule_is_a_project_of_its_own(
    folders: LocationFolders, projects: Projects
) -> None:
    other = folders.root / "other"
    other.mkdir()
    folders.git("init", at=other)
    inner_root = commit(folders, other)
    folders.git("init")
    commit(folders)
    folders.git("-c", "protocol.file.allow=always", "submodule", "add", str(other), "sub")
    folders.git("remote", "remove", "origin", at=folders.project / "sub")
    found = await projects.resolve(str(folders.project / "sub"))
    assert found == ProjectRef(ProjectID(inner_root), str(folders.project / "sub"))


@pytest.mark.parametrize("content", ["", "gitdir:", "gitdir: /nowhere", "nonsense", "gitdir: ."])
async def test_a_broken_git_file_is_no_repository(
    folders: LocationFolders, projects: Projects, content: str
) -> None:
    folders.write(folders.project / ".git", content)
    assert await projects.resolve(str(folders.project)) == GLOBAL


async def test_variables_that_point_git_elsewhere_are_not_followed(
    folders: LocationFolders,
) -> None:
    folders.git("init")
    root = commit(folders)
    misled = Projects(LocalProcesses(), {**folders.variables, "GIT_DIR": "/nowhere"})
    assert (await misled.resolve(str(folders.project))).id == root


async def test_without_git_a_repository_without_remote_is_global(folders: LocationFolders) -> None:
    folders.git("init")
    commit(folders)
    without = Projects(LocalProcesses(), {**folders.variables, "PATH": str(folders.root)})
    assert await without.resolve(str(folders.project)) == ProjectRef(
        GLOBAL.id, str(folders.project)
    )


async def test_asking_again_costs_a_few_looks_at_the_disk(
    folders: LocationFolders, projects: Projects
) -> None:
    folders.git("init")
    commit(folders)
    await projects.resolve(str(folders.project))
    fastest = float("inf")
    for _ in range(50):
        start = time.perf_counter()
        await projects.resolve(str(folders.project))
        fastest = min(fastest, time.perf_counter() - start)
    assert fastest < 0.0005


async def test_a_repository_made_nearer_to_the_location_is_noticed(
    folders: LocationFolders, projects: Projects
) -> None:
    inner = folders.project / "inner"
    inner.mkdir()
    assert await projects.resolve(str(inner)) == GLOBAL
    folders.git("init")
    outer_root = commit(folders)
    assert (await projects.resolve(str(inner))).id == outer_root
    folders.git("init", at=inner)
    folders.git("commit", "--allow-empty", "-m", "another", at=inner)
    found = await projects.resolve(str(inner))
    assert found.directory == str(inner)
    assert found.id != outer_root


async def test_directories_of_one_repository_share_one_answer_of_git(
    folders: LocationFolders, projects: Projects, processes: CountedProcesses
) -> None:
    folders.git("init")
    commit(folders)
    for name in "abc":
        (folders.project / name).mkdir()
        await projects.resolve(str(folders.project / name))
    assert processes.started == 1
