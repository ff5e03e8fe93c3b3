"""Local copies of repositories that the configuration names, fetched in the background.

Callers get the copy on disk and never wait for a server. Using a repository starts a refresh, at
most one at a time and one in an hour: git is asked for the newest commit, and only if it changed a
new shallow copy is made in a staging directory and replaces the old one. Failures are logged, and
the copy on disk stays.

Invariant: git runs no program of the repository, never asks for a password, and uses only network
protocols.
"""

import asyncio
import logging
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from msgspec import UNSET

from perdure.core import limits
from perdure.core.settings import reference
from perdure.host.files import atomic, cached_files
from perdure.lazy_pattern import lazy_pattern
from perdure.location.project import git
from perdure.ports import Clock, IdSource, ProcessRunner
from perdure.ports.tasks import StartTask
from perdure.schema.settings.reference import GitReference

logger = logging.getLogger(__name__)


_PROTOCOLS: Final = "https:http:ssh:git"
# Links of the repository become plain files, so that none can point outside.
_WITHOUT_LINKS: Final = ("-c", "core.symlinks=false")
_COMMIT: Final = lazy_pattern(rb"[0-9a-f]{40,64}")


class FetchError(Exception):
    """A repository could not be fetched. The message says why."""


class Repositories:
    """All repositories of the process; their copies are below `root`."""

    def __init__(
        self,
        root: str,
        *,
        processes: ProcessRunner,
        variables: Mapping[str, str],
        clock: Clock,
        ids: IdSource,
        start: StartTask,
    ) -> None:
        self._root = root
        self._clock = clock
        self._start = start
        self._copies = _Copies(root, _Git(processes, variables), clock=clock, ids=ids)
        self._started_at: dict[str, int] = {}
        self._running: set[str] = set()

    def directory(self, source: GitReference) -> str:
        return os.path.join(self._root, reference.repository_directory(source))

    def find_copy(self, source: GitReference) -> str | None:
        """The directory of the copy, if there is one. Starts a refresh when one is due.

        Raises OSError when the directory cannot be looked at.
        """
        directory = self.directory(source)
        if self._is_due(directory):
            self._started_at[directory] = self._clock.now_millis()
            self._running.add(directory)
            self._start(self._refresh(source, directory))
        return directory if cached_files.is_directory(directory) else None

    def _is_due(self, directory: str) -> bool:
        if directory in self._running:
            return False
        started = self._started_at.get(directory)
        since = None if started is None else self._clock.now_millis() - started
        # A negative age means that the clock was set back; refresh then too.
        return since is None or not 0 <= since < limits.REPOSITORY_REFRESH_SECONDS * 1000

    async def _refresh(self, source: GitReference, directory: str) -> None:
        try:
            async with asyncio.timeout(limits.REPOSITORY_SECONDS_MAX):
                await self._copies.refresh(source, directory)
        except TimeoutError:
            _report(source, f"git took longer than {limits.REPOSITORY_SECONDS_MAX} s")
        except (FetchError, OSError) as error:
            _report(source, str(error))
        finally:
            self._running.discard(directory)


class _Copies:
    """Makes copies in a staging directory and moves them into place; safe between processes."""

    def __init__(self, root: str, git: "_Git", *, clock: Clock, ids: IdSource) -> None:
        self._git = git
        self._staging = os.path.join(root, ".staging")
        self._clock = clock
        self._ids = ids

    async def refresh(self, source: GitReference, directory: str) -> None:
        await asyncio.to_thread(self._sweep)
        newest = await self._newest(source)
        git_dir = os.path.join(directory, ".git")
        if newest == git.read_head(git_dir, git_dir):
            return
        stage = os.path.join(self._staging, self._ids.named("rep"))
        await asyncio.to_thread(os.makedirs, stage)
        try:
            copy = os.path.join(stage, "new")
            await self._clone(source, copy, directory=stage)
            await asyncio.to_thread(_put_in_place, copy, directory, os.path.join(stage, "old"))
        finally:
            shutil.rmtree(stage, ignore_errors=True)

    async def _newest(self, source: GitReference) -> str:
        ref = "HEAD" if source.branch is UNSET else f"refs/heads/{source.branch}"
        address = reference.address(source)
        output = await self._git.run("ls-remote", "--exit-code", "--", address, ref, directory="/")
        found = _COMMIT.match(output)
        if found is None:
            raise FetchError(f"it has no {ref}")
        return found[0].decode()

    async def _clone(self, source: GitReference, copy: str, *, directory: str) -> None:
        shallow = ("clone", "--quiet", "--depth=1", "--single-branch", "--no-tags", "--template=")
        branch = () if source.branch is UNSET else (f"--branch={source.branch}",)
        await self._git.run(
            *shallow, *branch, "--", reference.address(source), copy, directory=directory
        )

    def _sweep(self) -> None:
        """Remove unfinished copies of dead processes. A young one may still be in progress."""
        oldest = self._clock.now_millis() / 1000 - 2 * limits.REPOSITORY_SECONDS_MAX
        with suppress(FileNotFoundError):
            for entry in os.scandir(self._staging):
                with suppress(FileNotFoundError):
                    if entry.stat(follow_symlinks=False).st_mtime <= oldest:
                        shutil.rmtree(entry.path, ignore_errors=True)


class _Git:
    def __init__(self, processes: ProcessRunner, variables: Mapping[str, str]) -> None:
        self._processes = processes
        self._environment = git.make_environment(variables) | {
            "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
            "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
            "SSH_ASKPASS_REQUIRE": "never",
        }

    async def run(self, *arguments: str, directory: str) -> bytes:
        """Run git and return its output. Raises FetchError with the last line of its errors."""
        try:
            result = await self._processes.run(
                git.network_command(*_WITHOUT_LINKS, *arguments),
                directory=directory,
                environment=self._environment,
                timeout_seconds=limits.REPOSITORY_SECONDS_MAX,
                output_bytes_max=limits.GIT_FILE_BYTES_MAX,
            )
        except FileNotFoundError as error:
            raise FetchError("git is not installed") from error
        if result.exit_code != 0:
            output = result.output.decode(errors="replace").strip()
            raise FetchError(output.splitlines()[-1] if output else "git failed without a message")
        return result.output


def _put_in_place(copy: str, directory: str, aside: str) -> None:
    os.makedirs(os.path.dirname(directory), exist_ok=True)
    with suppress(FileNotFoundError):
        os.rename(directory, aside)
    # If another process was first, its copy is as good.
    atomic.put_in_place(copy, directory)


def _report(source: GitReference, reason: str) -> None:
    printable = "".join(char if char.isprintable() else "?" for char in reason)
    printable = printable[: limits.REPOSITORY_REASON_CHARS_MAX]
    logger.warning("repository %s was not refreshed: %s", source.repository, printable)
