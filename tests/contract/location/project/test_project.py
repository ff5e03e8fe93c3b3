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
from tests.contract.location.opened_location import Place
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
def projects(place: Place, processes: CountedProcesses) -> Projects:
    return Projects(processes, place.variables)


def commit(place: Place, at: Path | None = None) -> str:
    place.git("commit", "--allow-empty", "-m", "c", at=at)
    return place.git("rev-list", "--max-parents=0", "HEAD", at=at)


async def test_outside_a_repository_the_project_is_global(place: Place, projects: Projects) -> None:
    assert await projects.resolve(str(place.project)) == ProjectRef(id=GLOBAL.id, directory="/")


async def test_a_remote_identifies_every_clone_without_starting_git(
    place: Place, projects: Projects, processes: CountedProcesses
) -> None:
    place.git("init")
    place.git("remote", "add", "origin", "git@GitHub.example:team/Thing.git")
    inner = place.project / "a" / "b"
    inner.mkdir(parents=True)
    digest = hashlib.sha1(b"git-remote:github.example/team/Thing").hexdigest()
    assert await projects.resolve(str(inner)) == ProjectRef(ProjectID(digest), str(place.project))
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
    place: Place, projects: Projects, processes: CountedProcesses
) -> None:
    place.git("init")
    place.write(place.project / ".git" / "opencode", "kept-id\n")
    assert (await projects.resolve(str(place.project))).id == "kept-id"
    place.write(place.project / ".git" / "opencode", "../../etc/passwd and more")
    assert (await projects.resolve(str(place.project))).id == GLOBAL.id


async def test_without_remote_the_first_commit_identifies_and_git_is_asked_once(
    place: Place, projects: Projects, processes: CountedProcesses
) -> None:
    place.git("init")
    root = commit(place)
    answers = await asyncio.gather(*(projects.resolve(str(place.project)) for _ in range(20)))
    assert {answer.id for answer in answers} == {root}
    assert processes.started == 1
    commit(place)
    assert (await projects.resolve(str(place.project))).id == root
    assert processes.started == 1
    assert not (place.project / ".git" / "opencode").exists()


async def test_the_first_commit_and_a_new_remote_are_noticed(
    place: Place, projects: Projects
) -> None:
    place.git("init")
    assert (await projects.resolve(str(place.project))) == ProjectRef(GLOBAL.id, str(place.project))
    root = commit(place)
    assert (await projects.resolve(str(place.project))).id == root
    place.git("remote", "add", "origin", "https://host.example/a")
    digest = hashlib.sha1(b"git-remote:host.example/a").hexdigest()
    assert (await projects.resolve(str(place.project))).id == digest


async def test_a_linked_work_tree_is_the_same_project_with_its_own_directory(
    place: Place, projects: Projects
) -> None:
    place.git("init")
    root = commit(place)
    linked = place.root / "linked"
    place.git("worktree", "add", str(linked), "-b", "side")
    assert await projects.resolve(str(linked)) == ProjectRef(ProjectID(root), str(linked))


async def test_a_submodule_is_a_project_of_its_own(place: Place, projects: Projects) -> None:
    other = place.root / "other"
    other.mkdir()
    place.git("init", at=other)
    inner_root = commit(place, other)
    place.git("init")
    commit(place)
    place.git("-c", "protocol.file.allow=always", "submodule", "add", str(other), "sub")
    place.git("remote", "remove", "origin", at=place.project / "sub")
    found = await projects.resolve(str(place.project / "sub"))
    assert found == ProjectRef(ProjectID(inner_root), str(place.project / "sub"))


@pytest.mark.parametrize("content", ["", "gitdir:", "gitdir: /nowhere", "nonsense", "gitdir: ."])
async def test_a_broken_git_file_is_no_repository(
    place: Place, projects: Projects, content: str
) -> None:
    place.write(place.project / ".git", content)
    assert await projects.resolve(str(place.project)) == GLOBAL


async def test_variables_that_point_git_elsewhere_are_not_followed(place: Place) -> None:
    place.git("init")
    root = commit(place)
    misled = Projects(LocalProcesses(), {**place.variables, "GIT_DIR": "/nowhere"})
    assert (await misled.resolve(str(place.project))).id == root


async def test_without_git_a_repository_without_remote_is_global(place: Place) -> None:
    place.git("init")
    commit(place)
    without = Projects(LocalProcesses(), {**place.variables, "PATH": str(place.root)})
    assert await without.resolve(str(place.project)) == ProjectRef(GLOBAL.id, str(place.project))


async def test_asking_again_costs_a_few_looks_at_the_disk(place: Place, projects: Projects) -> None:
    place.git("init")
    commit(place)
    await projects.resolve(str(place.project))
    fastest = float("inf")
    for _ in range(50):
        start = time.perf_counter()
        await projects.resolve(str(place.project))
        fastest = min(fastest, time.perf_counter() - start)
    assert fastest < 0.0005


async def test_a_repository_made_nearer_to_the_location_is_noticed(
    place: Place, projects: Projects
) -> None:
    inner = place.project / "inner"
    inner.mkdir()
    assert await projects.resolve(str(inner)) == GLOBAL
    place.git("init")
    outer_root = commit(place)
    assert (await projects.resolve(str(inner))).id == outer_root
    place.git("init", at=inner)
    place.git("commit", "--allow-empty", "-m", "another", at=inner)
    found = await projects.resolve(str(inner))
    assert found.directory == str(inner)
    assert found.id != outer_root


async def test_directories_of_one_repository_share_one_answer_of_git(
    place: Place, projects: Projects, processes: CountedProcesses
) -> None:
    place.git("init")
    commit(place)
    for name in "abc":
        (place.project / name).mkdir()
        await projects.resolve(str(place.project / name))
    assert processes.started == 1
