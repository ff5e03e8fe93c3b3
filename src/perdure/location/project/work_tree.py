"""The work tree of a repository, for clients: its branch, and what is not committed.

git compares with a scratch repository (location.project.scratch_repository), so that nothing that
the repository configures is run or obeyed, and neither its index nor its objects are touched. Files
that git does not know yet are told as added; ignored ones are left out.

Invariant: every call is bounded in time and output, and says so when it could not finish.
"""

import asyncio
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from msgspec import UNSET

from perdure.core import limits
from perdure.core.files import git_diff
from perdure.location.project import git, scratch_repository
from perdure.location.project.project import (
    Repository,
    RepositoryUnreadableError,
    find_repository,
)
from perdure.ports import ProcessResult, ProcessRunner
from perdure.schema.errors import ServiceUnavailableError
from perdure.schema.files.vcs import DiffBase, FileStatus, VcsInfo
from perdure.schema.session.session import FileDiff
from perdure.schema.value import Value

_BRANCHES: Final = "refs/heads/"
_DEFAULT_BRANCHES: Final = ("main", "master")
_DIFF: Final = (
    *("diff", "--raw", "--numstat", "-z", "--no-renames", "--no-color", "--no-ext-diff"),
    *("--no-textconv", "--ignore-submodules=all", "--relative", "--src-prefix=a/"),
    "--dst-prefix=b/",
)
_EMPTY_TREES: Final = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""The name of a tree without files, which every repository has, by its length."""


class WorkTrees:
    """Answers for the directories of all Locations. One for the process."""

    def __init__(self, processes: ProcessRunner, variables: Mapping[str, str]) -> None:
        self._processes = processes
        self._environment = git.make_environment(variables)
        self._running = asyncio.Semaphore(limits.VCS_CALLS_PARALLEL_MAX)

    async def info(self, directory: str) -> VcsInfo:
        repository = await asyncio.to_thread(_find, directory)
        if repository is None:
            return VcsInfo()
        return await asyncio.to_thread(_read_branches, repository)

    async def status(self, directory: str) -> tuple[FileStatus, ...]:
        """The files below `directory` that differ from the commit that is checked out."""
        found = await self._compare(directory, "head", patches=False)
        return tuple(FileStatus(it.path, it.status, it.additions, it.deletions) for it in found)

    async def diff(self, directory: str, base: DiffBase) -> tuple[FileDiff, ...]:
        """As `status`, with the patch of each file. Patches that exceed the limit are empty."""
        return await self._compare(directory, base, patches=True)

    async def _compare(
        self, directory: str, base: DiffBase, *, patches: bool
    ) -> tuple[FileDiff, ...]:
        from tempfile import TemporaryDirectory

        repository = await asyncio.to_thread(_find, directory)
        if repository is None:
            return ()
        async with self._running:
            with TemporaryDirectory(prefix="perdure-vcs-") as scratch:
                scratch_git = await self._open(repository, directory, scratch)
                commit = await self._base_commit(scratch_git, repository, base)
                options = ("-p",) if patches else ()
                result = await scratch_git.run(
                    *_DIFF, *options, commit, "--", ".", bytes_max=limits.VCS_DIFF_BYTES_MAX
                )
        if result.exit_code != 0 and not result.truncated:
            raise _unavailable(f"git could not compare the files: {_reason(result)}")
        try:
            return await asyncio.to_thread(
                git_diff.parse, result.output, truncated=result.truncated
            )
        except ValueError as error:
            raise _unavailable(f"there are too many changes to list: {error}") from error

    async def _open(self, repository: Repository, directory: str, scratch: str) -> "_ScratchGit":
        """A scratch repository whose index names the files of the work tree."""
        plain = _ScratchGit(self._processes, self._environment, "/")
        listed = await plain.run(
            *("config", "--no-includes", "-z", "--file"),
            os.path.join(repository.common_dir, "config"),
            *("--get-regexp", scratch_repository.COPIED_SETTINGS),
        )
        variables = await asyncio.to_thread(
            scratch_repository.make, scratch, repository.common_dir, listed.output
        )
        work_tree = {"GIT_WORK_TREE": repository.worktree}
        opened = _ScratchGit(
            self._processes, {**self._environment, **variables, **work_tree}, directory
        )
        # With its times: git trusts a file that is older than the index that lists it.
        with suppress(FileNotFoundError):
            await asyncio.to_thread(
                shutil.copy2, os.path.join(repository.git_dir, "index"), f"{scratch}/index"
            )
        unmerged = await opened.run("ls-files", "--unmerged", "-z")
        if unmerged.exit_code != 0 or unmerged.output:
            # A merge that is not finished, or an index that this git cannot read.
            head = await asyncio.to_thread(git.read_head, repository.git_dir, repository.common_dir)
            with suppress(FileNotFoundError):
                os.unlink(f"{scratch}/index")
            if head is not None:
                await opened.run("read-tree", head)
        # Only their names are added, so that the diff shows them.
        await opened.run("add", "--intent-to-add", "--", ".")
        return opened

    async def _base_commit(
        self, scratch_git: "_ScratchGit", repository: Repository, base: DiffBase
    ) -> str:
        head, ancestor = await asyncio.to_thread(_read_commits, repository, base)
        if head is None:
            return _EMPTY_TREES[40]
        if ancestor is None or ancestor == head:
            return head
        merged = await scratch_git.run("merge-base", head, ancestor)
        found = merged.output.decode(errors="replace").strip()
        return found if merged.exit_code == 0 and found else head


class _ScratchGit(Value):
    processes: ProcessRunner
    environment: Mapping[str, str]
    directory: str

    async def run(
        self, *arguments: str, bytes_max: int = limits.GIT_FILE_BYTES_MAX
    ) -> ProcessResult:
        try:
            result = await self.processes.run(
                git.local_command(*arguments),
                directory=self.directory,
                environment=self.environment,
                timeout_seconds=limits.VCS_SECONDS_MAX,
                output_bytes_max=bytes_max,
                separate_errors=True,
            )
        except (FileNotFoundError, PermissionError) as error:
            raise _unavailable(f"git cannot be started: {error}") from error
        if result.timed_out:
            raise _unavailable(f"git took longer than {limits.VCS_SECONDS_MAX} s")
        return result


def _find(directory: str) -> Repository | None:
    try:
        return find_repository(directory)
    except RepositoryUnreadableError as error:
        raise _unavailable(f"the repository of {directory} cannot be read: {error}") from error


def _read_branches(repository: Repository) -> VcsInfo:
    branch = git.read_branch(repository.git_dir)
    default = _default_branch(repository)
    return VcsInfo(branch=branch or UNSET, default_branch=default or UNSET)


def _read_commits(repository: Repository, base: DiffBase) -> tuple[str | None, str | None]:
    """The commit that is checked out, and for `branch` that of the default branch."""
    head = git.read_head(repository.git_dir, repository.common_dir)
    default = _default_branch(repository) if base == "branch" else None
    if default is None:
        return head, None
    names = (f"refs/remotes/origin/{default}", f"{_BRANCHES}{default}")
    found = (git.read_ref(repository.common_dir, name) for name in names)
    return head, next(filter(None, found), None)


def _default_branch(repository: Repository) -> str | None:
    remote = git.read_default_branch(repository.common_dir)
    if remote is not None:
        return remote
    names = (n for n in _DEFAULT_BRANCHES if git.read_ref(repository.common_dir, _BRANCHES + n))
    return next(names, None)


def _unavailable(message: str) -> ServiceUnavailableError:
    return ServiceUnavailableError(message, service="git")


def _reason(result: ProcessResult) -> str:
    return f"git ended with {result.exit_code}"
