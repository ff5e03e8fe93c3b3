"""Uncommitted changes of a git work tree: captured, made in another one, undone in the first.

Captured are all files that git would add, tracked or not; what it ignores and what lies in a
repository inside this one stays where it is. git writes its index and objects to a scratch
directory: neither repository's own index is touched, nor is anything left in one that is refused.
When to do what is the caller's decision: see runtime.session.move.

Invariant: changes are undone only where they are still what was captured, all of them or none.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

from perdure.core import limits
from perdure.location.project import project
from perdure.location.project.project import Repository
from perdure.ports import ProcessResult, ProcessRunner
from perdure.schema.value import Value

# No program of the repository's choice, no change to what a patch says, whatever is configured.
_ALWAYS: Final = (
    *("--no-pager", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "apply.whitespace=nowarn", "-c", "apply.ignoreWhitespace=no"),
)
_AS_PATCH: Final = (
    *("diff-tree", "-p", "--binary", "--full-index", "--no-renames", "--no-color"),
    *("--no-ext-diff", "--no-textconv", "--ignore-submodules=all"),
)


class ChangesRefusedError(Exception):
    """The changes cannot be moved, and nothing was changed. The text is for a person."""


class GitChanges:
    """One for the process: those who move changes wait for each other."""

    def __init__(
        self,
        processes: ProcessRunner,
        variables: Mapping[str, str],
        *,
        bytes_max: int = limits.MOVED_PATCH_BYTES_MAX,
    ) -> None:
        self._processes = processes
        self._environment = project.git_environment(variables)
        self._bytes_max = bytes_max
        self._one_at_a_time = asyncio.Lock()

    @asynccontextmanager
    async def captured(self, source: Repository) -> AsyncGenerator["CapturedChanges"]:
        """The changes as they are now; raises ChangesRefusedError."""
        from tempfile import TemporaryDirectory

        async with self._one_at_a_time:
            with TemporaryDirectory(prefix="perdure-move-") as scratch:
                own = self._environment | _scratch_variables(scratch, source)
                here, there = _Git(self._processes, own), _Git(self._processes, self._environment)
                commit, tree = await _captured_tree(source, scratch, here)
                patch = await self._difference(source, here, commit, tree)
                path = os.path.join(scratch, "patch")
                await asyncio.to_thread(_write, path, patch)
                yield CapturedChanges(
                    source=source,
                    commit=commit,
                    tree=tree,
                    patch=path,
                    empty=not patch,
                    here=here,
                    there=there,
                )

    async def _difference(self, source: Repository, git: "_Git", commit: str, tree: str) -> bytes:
        asked = (*_AS_PATCH, commit, tree, "--")
        made = await git.output(*asked, directory=source.worktree, bytes_max=self._bytes_max)
        if made.truncated:
            raise ChangesRefusedError(f"the changes are more than {self._bytes_max} bytes")
        if made.exit_code != 0:
            raise ChangesRefusedError(f"the changes cannot be read: {_reason(made)}")
        return made.output


class CapturedChanges(Value, kw_only=True):
    """The difference between a commit and its work tree. Valid in the scope that captured it."""

    source: Repository
    commit: str
    tree: str
    """The work tree as git would have committed it."""
    patch: str
    """The path of the difference as a patch."""
    empty: bool
    here: "_Git"
    there: "_Git"

    async def apply(self, destination: Repository) -> bool:
        """Make the changes there too; False when they were there already.

        Raises ChangesRefusedError when they do not fit, and changes nothing then.
        """
        if self.empty:
            return False
        result = await self.there.run("apply", self.patch, directory=destination.worktree)
        if result.exit_code == 0:
            return True
        # A move that was cut off may have brought them already.
        if await self._apply_back(destination, "--check"):
            return False
        raise ChangesRefusedError(f"the changes do not fit there: {_reason(result)}")

    async def take_back(self, destination: Repository) -> bool:
        """Undo an `apply`; False when something has changed there since."""
        return await self._apply_back(destination)

    async def discard(self) -> bool:
        """Undo the changes at the source; False, and nothing, when one is not as it was captured.

        The index of the source keeps what it holds.
        """
        if self.empty:
            return True
        at = self.source.worktree
        if await _head(self.here, at) != self.commit:
            return False
        switch = ("read-tree", "-m", "-u", "--no-recurse-submodules", self.tree, self.commit)
        return (await self.here.run(*switch, directory=at)).exit_code == 0

    async def _apply_back(self, destination: Repository, *options: str) -> bool:
        undo = ("apply", "--reverse", *options, self.patch)
        return (await self.there.run(*undo, directory=destination.worktree)).exit_code == 0


class _Git(Value):
    """git as it is started here: bounded, without input, in an environment of our choice."""

    processes: ProcessRunner
    environment: Mapping[str, str]

    async def run(self, *arguments: str, directory: str) -> ProcessResult:
        return await self._started(arguments, directory, limits.GIT_FILE_BYTES_MAX, errors=True)

    async def output(
        self, *arguments: str, directory: str, bytes_max: int = limits.GIT_FILE_BYTES_MAX
    ) -> ProcessResult:
        """As `run`, without what git says beside its answer."""
        return await self._started(arguments, directory, bytes_max, errors=False)

    async def _started(
        self, arguments: tuple[str, ...], directory: str, bytes_max: int, *, errors: bool
    ) -> ProcessResult:
        try:
            return await self.processes.run(
                ("git", *_ALWAYS, *arguments),
                directory=directory,
                environment=self.environment,
                timeout_seconds=limits.MOVED_GIT_SECONDS_MAX,
                output_bytes_max=bytes_max,
                separate_errors=not errors,
            )
        except (FileNotFoundError, PermissionError) as error:
            raise ChangesRefusedError(f"git cannot be started: {error}") from error


async def _captured_tree(source: Repository, scratch: str, git: _Git) -> tuple[str, str]:
    """The commit that is checked out, and the tree that a commit of everything would have."""
    at = source.worktree
    commit = await _head(git, at)
    if commit is None:
        raise ChangesRefusedError("there is no commit yet that the changes could be taken from")
    # With its times: git trusts a file that is older than the index that lists it.
    with suppress(FileNotFoundError):
        shutil.copy2(os.path.join(source.git_dir, "index"), os.path.join(scratch, "index"))
    unmerged = await git.output("ls-files", "--unmerged", directory=at)
    if unmerged.exit_code != 0 or unmerged.output:
        raise ChangesRefusedError("a merge is not finished there")
    added = await git.run("add", "--all", directory=at)
    if added.exit_code != 0:
        raise ChangesRefusedError(f"the changes cannot be read: {_reason(added)}")
    tree = _object_name(await git.output("write-tree", directory=at))
    if tree is None:
        raise ChangesRefusedError("the changes cannot be read")
    return commit, tree


async def _head(git: _Git, directory: str) -> str | None:
    asked = ("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    return _object_name(await git.output(*asked, directory=directory))


def _object_name(result: ProcessResult) -> str | None:
    name = result.output.decode(errors="replace").strip()
    return name if result.exit_code == 0 and name else None


def _scratch_variables(scratch: str, source: Repository) -> dict[str, str]:
    objects = os.path.join(scratch, "objects")
    os.mkdir(objects)
    known = os.path.join(source.common_dir, "objects").replace("\\", "\\\\").replace('"', '\\"')
    return {
        "GIT_INDEX_FILE": os.path.join(scratch, "index"),
        "GIT_OBJECT_DIRECTORY": objects,
        # A list; quoted, because a colon in the path would end an entry of it.
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{known}"',
    }


def _write(path: str, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)


def _reason(result: ProcessResult) -> str:
    """What git said, on one line."""
    if result.timed_out:
        return f"git took longer than {limits.MOVED_GIT_SECONDS_MAX} s"
    said = " ".join(result.output.decode(errors="replace").split())
    return said[: limits.MOVED_REASON_CHARS_MAX] or f"git ended with {result.exit_code}"
