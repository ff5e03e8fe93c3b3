"""Every git call of the program: nothing of a repository is run, no secret is passed."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from perdure.host.process.runner import LocalProcesses
from perdure.location.project import git, project
from perdure.location.project.git_changes import GitChanges
from perdure.location.project.project import Projects
from perdure.location.project.repositories import Repositories
from perdure.ports import ProcessResult
from perdure.schema.settings.reference import GitReference
from perdure.testing import ManualClock, SeededIds
from tests.contract.location.opened_location import LocationFolders
from tests.figures import Figure

OFF: Final = (
    *("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.pager=cat", "core.editor=false"),
    *("core.alternateRefsCommand=false", "core.gitProxy=", "diff.external=", "gpg.program=false"),
    "submodule.recurse=false",
)
OFF_WITHOUT_NETWORK: Final = (
    *("core.sshCommand=false", "credential.helper=", "core.askPass=", "protocol.allow=never"),
)
VERBS: Final = {
    *("rev-list", "rev-parse", "config", "ls-files", "add", "write-tree", "diff-tree", "apply"),
    *("read-tree", "ls-remote", "clone"),
}
"""All that the program asks git for. A new one is added here, with a flow below that calls it."""
SECRET: Final = "canary-of-the-environment"


class Recorded:
    """Implements ports.ProcessRunner; keeps how git was called."""

    def __init__(self) -> None:
        self.calls: list[tuple[tuple[str, ...], Mapping[str, str], str]] = []

    async def run(
        self,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float,
        output_bytes_max: int,
        separate_errors: bool = False,
    ) -> ProcessResult:
        self.calls.append((tuple(arguments), environment or os.environ, directory))
        return await LocalProcesses().run(
            arguments,
            directory=directory,
            environment=environment,
            timeout_seconds=timeout_seconds,
            output_bytes_max=output_bytes_max,
            separate_errors=separate_errors,
        )


def options_of(arguments: Sequence[str]) -> tuple[set[str], str]:
    """The settings on a command line, and what git is asked for."""
    words = iter(arguments[1:])
    settings: set[str] = set()
    for word in words:
        if word == "-c":
            settings.add(next(words))
        elif not word.startswith("-"):
            return settings, word
    return settings, ""


@pytest.fixture
def repository(folders: LocationFolders) -> Path:
    folders.git("init")
    folders.write(folders.project / "file.txt", "one\n")
    folders.git("add", "-A")
    folders.git("commit", "-m", "first")
    return folders.project


async def test_every_call_has_all_programs_off(
    folders: LocationFolders, repository: Path, figure: Figure
) -> None:
    folders.git("worktree", "add", "../other")
    folders.write(repository / "file.txt", "two\n")
    variables = {**folders.variables, "OPENAI_API_KEY": SECRET, "GIT_DIR": "/nowhere"}
    recorded = Recorded()
    await Projects(recorded, variables).resolve(str(repository))
    source = project.find_repository(str(repository))
    destination = project.find_repository(str(folders.root / "other"))
    assert source is not None
    assert destination is not None
    async with GitChanges(recorded, variables).capture(source) as captured:
        assert await captured.apply(destination)
        assert await captured.undo_apply(destination)
        assert await captured.apply(destination)
        assert await captured.discard()
    local = len(recorded.calls)
    repositories = Repositories(
        str(folders.root / "repos"),
        processes=recorded,
        variables=variables,
        clock=ManualClock(),
        ids=SeededIds(),
        start=folders.background.append,
    )
    repositories.find_copy(GitReference(repository="http://127.0.0.1:1/nothing"))
    await folders.background.pop()
    seen: set[str] = set()
    for number, (arguments, environment, directory) in enumerate(recorded.calls):
        settings, verb = options_of(arguments)
        seen.add(verb)
        assert arguments[:2] == ("git", "--no-pager")
        assert settings >= {*OFF, *(OFF_WITHOUT_NETWORK if number < local else ())}, arguments
        assert SECRET not in environment.values()
        # Its own git directory, or none around: the repository's configuration is not read.
        inside = str(environment.get("GIT_DIR", "")).startswith(str(repository))
        assert not inside
        assert "GIT_DIR" in environment or not directory.startswith(str(folders.root)), arguments
    # A copy is only made of a repository that answers; test_repositories does that.
    assert seen == VERBS - {"clone"}
    figure("git calls with everything off", len(recorded.calls))


HEADS: Final = {
    "a branch": (),
    "packed": (("pack-refs", "--all"),),
    "detached": (("checkout", "--detach"),),
    "a branch with an odd name": (("checkout", "-b", "a/b.c@d-ü"),),
    "packed, with a tag": (("tag", "-a", "-m", "x", "v1"), ("pack-refs", "--all")),
    "the newer of packed and loose": (
        ("pack-refs", "--all"),
        ("commit", "--allow-empty", "-m", "second"),
    ),
    "an indirect ref": (
        ("symbolic-ref", "refs/heads/other", "refs/heads/main"),
        ("symbolic-ref", "HEAD", "refs/heads/other"),
    ),
}


@pytest.mark.parametrize("steps", HEADS.values(), ids=HEADS.keys())
@pytest.mark.parametrize("format", ["sha1", "sha256"])
async def test_the_commit_is_read_as_git_reads_it(
    folders: LocationFolders, steps: tuple[tuple[str, ...], ...], format: str
) -> None:
    folders.git("init", f"--object-format={format}")
    folders.git("commit", "--allow-empty", "-m", "first")
    for step in steps:
        folders.git(*step)
    expected = folders.git("rev-parse", "HEAD")
    at = str(folders.project / ".git")
    assert git.read_head(at, at) == expected
    folders.git("worktree", "add", "--detach", "../linked")
    linked = project.find_repository(str(folders.root / "linked"))
    assert linked is not None
    assert git.read_head(linked.git_dir, linked.common_dir) == expected
    first = folders.git("rev-list", "--max-parents=0", "HEAD")
    found = await Projects(LocalProcesses(), folders.variables).resolve(str(folders.project))
    assert found.id == first


@pytest.mark.parametrize(
    "head",
    [
        "ref: refs/heads/missing",
        "ref: ../../secret",
        "ref: refs/../../secret",
        "ref: refs/heads/../../secret",
        "ref: /etc/passwd",
        "ref: HEAD",
        "ref:",
        "",
        "not a commit",
        "0123",
    ],
)
def test_a_head_that_names_no_commit_leads_nowhere(
    folders: LocationFolders, repository: Path, head: str
) -> None:
    folders.write(folders.project / ".git" / "HEAD", head)
    folders.write(folders.root / "secret", "a" * 40)
    at = str(repository / ".git")
    assert git.read_head(at, at) is None


def test_a_pipe_or_a_loop_of_names_is_not_waited_for(
    folders: LocationFolders, repository: Path
) -> None:
    at = repository / ".git"
    folders.write(at / "HEAD", "ref: refs/heads/one")
    folders.write(at / "refs" / "heads" / "one", "ref: refs/heads/two")
    folders.write(at / "refs" / "heads" / "two", "ref: refs/heads/one")
    assert git.read_head(str(at), str(at)) is None
    (at / "HEAD").unlink()
    os.mkfifo(at / "HEAD")
    assert git.read_head(str(at), str(at)) is None


async def test_a_shallow_clone_has_an_identity(folders: LocationFolders, repository: Path) -> None:
    folders.write(repository / "file.txt", "two\n")
    folders.git("commit", "-am", "second")
    folders.git("clone", "--depth=1", f"file://{repository}", "../shallow")
    shallow = folders.root / "shallow"
    folders.git("remote", "remove", "origin", at=shallow)
    found = await Projects(LocalProcesses(), folders.variables).resolve(str(shallow))
    assert found.id == folders.git("rev-parse", "HEAD", at=shallow)
