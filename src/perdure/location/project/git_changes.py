"""Moves uncommitted changes between git work trees: capture, apply to another, discard the source.

All files that git would add are captured, tracked or not; ignored files and nested repositories
are not. git writes its index and objects to a scratch directory: neither repository's own index is
touched, and a refused move leaves nothing behind. runtime.session.move calls these steps.

Invariant: changes are discarded only if they are still as captured, all of them or none.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

from perdure.core import limits
from perdure.location.project import git, scratch_repository
from perdure.location.project.project import Repository
from perdure.ports import ProcessResult, ProcessRunner
from perdure.schema.value import Value

# Applies patches verbatim, whatever is configured.
_VERBATIM: Final = ("-c", "apply.whitespace=nowarn", "-c", "apply.ignoreWhitespace=no")
_AS_PATCH: Final = (
    *("diff-tree", "-p", "--binary", "--full-index", "--no-renames", "--no-color"),
    *("--no-ext-diff", "--no-textconv", "--ignore-submodules=all"),
)


class ChangesRefusedError(Exception):
    """The changes cannot be moved, and nothing was changed. The text is for the user."""


class GitChanges:
    """Captures changes. One for the process, because moves must not overlap."""

    def __init__(
        self,
        processes: ProcessRunner,
        variables: Mapping[str, str],
        *,
        bytes_max: int = limits.MOVED_PATCH_BYTES_MAX,
    ) -> None:
        self._processes = processes
        self._environment = git.make_environment(variables)
        self._bytes_max = bytes_max
        self._one_at_a_time = asyncio.Lock()

    @asynccontextmanager
    async def capture(self, source: Repository) -> AsyncGenerator["CapturedChanges"]:
        """Capture the current changes. Raises ChangesRefusedError."""
        from tempfile import TemporaryDirectory

        async with self._one_at_a_time:
            with TemporaryDirectory(prefix="perdure-move-") as scratch:
                settings = await _copied_settings(_Git(self._processes, self._environment), source)
                made = scratch_repository.make(scratch, source.common_dir, settings)
                scratch_git = _Git(self._processes, self._environment | made)
                commit = await _require_head(scratch_git, source)
                tree = await _capture_tree(source, scratch, scratch_git)
                patch = await self._difference(source, scratch_git, commit, tree)
                path = os.path.join(scratch, "patch")
                await asyncio.to_thread(_write, path, patch)
                yield CapturedChanges(
                    source=source,
                    commit=commit,
                    tree=tree,
                    patch=path,
                    empty=not patch,
                    scratch_git=scratch_git,
                )

    async def _difference(
        self, source: Repository, scratch_git: "_Git", commit: str, tree: str
    ) -> bytes:
        arguments = (*_AS_PATCH, commit, tree, "--")
        result = await scratch_git.output(
            *arguments, directory=source.worktree, bytes_max=self._bytes_max
        )
        if result.truncated:
            raise ChangesRefusedError(f"the changes are more than {self._bytes_max} bytes")
        if result.exit_code != 0:
            raise ChangesRefusedError(f"the changes cannot be read: {_reason(result)}")
        return result.output


class CapturedChanges(Value, kw_only=True):
    """The difference between a commit and its work tree. Valid in the scope that captured it."""

    source: Repository
    commit: str
    tree: str
    """The work tree as git would have committed it."""
    patch: str
    """The path of the patch file."""
    empty: bool
    scratch_git: "_Git"
    """Runs git with the scratch repository, which has no configuration of the repository."""

    async def apply(self, destination: Repository) -> bool:
        """Apply the changes to another work tree; False when it has them already.

        Raises ChangesRefusedError when they do not fit, and changes nothing then.
        """
        if self.empty:
            return False
        result = await self.scratch_git.run("apply", self.patch, directory=destination.worktree)
        if result.exit_code == 0:
            return True
        # An interrupted move may have applied them already.
        if await self._apply_back(destination, "--check"):
            return False
        raise ChangesRefusedError(f"the changes do not fit there: {_reason(result)}")

    async def undo_apply(self, destination: Repository) -> bool:
        """Undo an `apply`; False when something has changed there since."""
        return await self._apply_back(destination)

    async def discard(self) -> bool:
        """Undo the changes in the source; returns False and does nothing if one has changed since.

        The index of the source is not touched.
        """
        if self.empty:
            return True
        worktree = self.source.worktree
        if git.read_head(self.source.git_dir, self.source.common_dir) != self.commit:
            return False
        switch = ("read-tree", "-m", "-u", "--no-recurse-submodules", self.tree, self.commit)
        return (await self.scratch_git.run(*switch, directory=worktree)).exit_code == 0

    async def _apply_back(self, destination: Repository, *options: str) -> bool:
        undo = ("apply", "--reverse", *options, self.patch)
        return (await self.scratch_git.run(*undo, directory=destination.worktree)).exit_code == 0


class _Git(Value):
    """Runs git: bounded, without input, with a fixed environment."""

    processes: ProcessRunner
    environment: Mapping[str, str]

    async def run(self, *arguments: str, directory: str) -> ProcessResult:
        return await self._run(arguments, directory, limits.GIT_FILE_BYTES_MAX, errors=True)

    async def output(
        self, *arguments: str, directory: str, bytes_max: int = limits.GIT_FILE_BYTES_MAX
    ) -> ProcessResult:
        """As `run`, without the error stream."""
        return await self._run(arguments, directory, bytes_max, errors=False)

    async def _run(
        self, arguments: tuple[str, ...], directory: str, bytes_max: int, *, errors: bool
    ) -> ProcessResult:
        work_tree = {"GIT_WORK_TREE": directory} if "GIT_DIR" in self.environment else {}
        try:
            return await self.processes.run(
                git.local_command(*_VERBATIM, *arguments),
                directory=directory,
                environment={**self.environment, **work_tree},
                timeout_seconds=limits.MOVED_GIT_SECONDS_MAX,
                output_bytes_max=bytes_max,
                separate_errors=not errors,
            )
        except (FileNotFoundError, PermissionError) as error:
            raise ChangesRefusedError(f"git cannot be started: {error}") from error


async def _copied_settings(runner: _Git, source: Repository) -> bytes:
    config = os.path.join(source.common_dir, "config")
    listed = await runner.output(
        *("config", "--no-includes", "-z", "--file", config),
        *("--get-regexp", scratch_repository.COPIED_SETTINGS),
        directory="/",
    )
    return listed.output


async def _require_head(scratch_git: _Git, source: Repository) -> str:
    """The checked-out commit."""
    head = git.read_head(source.git_dir, source.common_dir)
    if head is None:
        raise ChangesRefusedError("the repository has no commit yet, or its refs are not files")
    arguments = ("rev-parse", "--verify", "--quiet", f"{head}^{{commit}}")
    commit = _object_name(await scratch_git.output(*arguments, directory=source.worktree))
    if commit is None:
        raise ChangesRefusedError("the commit that is checked out cannot be read")
    return commit


async def _capture_tree(source: Repository, scratch: str, scratch_git: _Git) -> str:
    """The tree that a commit of all changes would have."""
    worktree = source.worktree
    # With its times: git trusts a file that is older than the index that lists it.
    with suppress(FileNotFoundError):
        shutil.copy2(os.path.join(source.git_dir, "index"), os.path.join(scratch, "index"))
    unmerged = await scratch_git.output("ls-files", "--unmerged", directory=worktree)
    if unmerged.exit_code != 0 or unmerged.output:
        raise ChangesRefusedError("a merge is not finished there")
    added = await scratch_git.run("add", "--all", directory=worktree)
    if added.exit_code != 0:
        raise ChangesRefusedError(f"the changes cannot be read: {_reason(added)}")
    tree = _object_name(await scratch_git.output("write-tree", directory=worktree))
    if tree is None:
        raise ChangesRefusedError("the changes cannot be read")
    return tree


def _object_name(result: ProcessResult) -> str | None:
    name = result.output.decode(errors="replace").strip()
    return name if result.exit_code == 0 and name else None


def _write(path: str, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)


def _reason(result: ProcessResult) -> str:
    """The output of git, on one line."""
    if result.timed_out:
        return f"git took longer than {limits.MOVED_GIT_SECONDS_MAX} s"
    output = " ".join(result.output.decode(errors="replace").split())
    return output[: limits.MOVED_REASON_CHARS_MAX] or f"git ended with {result.exit_code}"
