"""Copies of repositories that the configuration names, fetched beside everything else.

What lies on disk is what counts, so nobody ever waits for a server. Looking at a repository starts
a refresh, at most one at a time and one in an hour: git is asked for the newest commit, and only
when there is another one a new shallow copy is made aside and put in the place of the old. Whatever
fails is reported, and the copy on disk stays.

Invariant: git runs no program that a repository brings, asks nobody for a password, and speaks only
protocols that go to a server.
"""

import asyncio
import logging
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from msgspec import UNSET

from perdure.core import limits
from perdure.core.settings import reference
from perdure.host.files import atomic
from perdure.location.project import project
from perdure.ports import Clock, IdSource, ProcessRunner
from perdure.ports.tasks import StartTask
from perdure.schema.settings.reference import GitReference

logger = logging.getLogger(__name__)


_PROTOCOLS: Final = "https:http:ssh:git"
_ALWAYS: Final = (
    *("git", "--no-pager", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    # A link of the repository is a file with the link's text: it leads nowhere.
    *("-c", "core.symlinks=false", "-c", "submodule.recurse=false"),
)
_COMMIT: Final = re.compile(rb"[0-9a-f]{40,64}")


class FetchError(Exception):
    """A repository could not be fetched. The message says why."""


class Repositories:
    """Every repository of the process; `root` is where their copies lie."""

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

    def look(self, source: GitReference) -> str | None:
        """Where the copy lies, if there is one. It is brought up to date afterwards, when due."""
        directory = self.directory(source)
        if self._is_due(directory):
            self._started_at[directory] = self._clock.now_millis()
            self._running.add(directory)
            self._start(self._refreshed(source, directory))
        return directory if os.path.isdir(directory) else None

    def _is_due(self, directory: str) -> bool:
        if directory in self._running:
            return False
        started = self._started_at.get(directory)
        since = None if started is None else self._clock.now_millis() - started
        # A clock that was set back must not stop refreshes until it has caught up.
        return since is None or not 0 <= since < limits.REPOSITORY_REFRESH_SECONDS * 1000

    async def _refreshed(self, source: GitReference, directory: str) -> None:
        try:
            async with asyncio.timeout(limits.REPOSITORY_SECONDS_MAX):
                await self._copies.refresh(source, directory)
        except TimeoutError:
            _report(source, f"it takes longer than {limits.REPOSITORY_SECONDS_MAX} s")
        except (FetchError, OSError) as error:
            _report(source, str(error))
        finally:
            self._running.discard(directory)


class _Copies:
    """Copies are made aside and put in place whole; several processes may do so at once."""

    def __init__(self, root: str, git: "_Git", *, clock: Clock, ids: IdSource) -> None:
        self._git = git
        self._staging = os.path.join(root, ".staging")
        self._clock = clock
        self._ids = ids

    async def refresh(self, source: GitReference, directory: str) -> None:
        await asyncio.to_thread(self._sweep)
        newest = await self._newest(source)
        if newest == await self._current(directory):
            return
        stage = os.path.join(self._staging, self._ids.named("rep"))
        await asyncio.to_thread(os.makedirs, stage)
        try:
            copy = os.path.join(stage, "new")
            await self._clone(source, copy, at=stage)
            await asyncio.to_thread(_put_in_place, copy, directory, os.path.join(stage, "old"))
        finally:
            shutil.rmtree(stage, ignore_errors=True)

    async def _newest(self, source: GitReference) -> bytes:
        named = "HEAD" if source.branch is UNSET else f"refs/heads/{source.branch}"
        address = reference.address(source)
        said = await self._git.run("ls-remote", "--exit-code", "--", address, named, at="/")
        found = _COMMIT.match(said)
        if found is None:
            raise FetchError(f"it has no {named}")
        return found[0]

    async def _current(self, directory: str) -> bytes | None:
        # Named, so that git does not find a repository around the directory instead.
        own = f"--git-dir={os.path.join(directory, '.git')}"
        try:
            found = _COMMIT.match(await self._git.run(own, "rev-parse", "HEAD", at="/"))
        except FetchError:
            # Nothing is there, or something that is no copy: it is replaced.
            return None
        return None if found is None else found[0]

    async def _clone(self, source: GitReference, copy: str, *, at: str) -> None:
        shallow = ("clone", "--quiet", "--depth=1", "--single-branch", "--no-tags", "--template=")
        branch = () if source.branch is UNSET else (f"--branch={source.branch}",)
        await self._git.run(*shallow, *branch, "--", reference.address(source), copy, at=at)

    def _sweep(self) -> None:
        """Remove what dead processes were fetching. What is young may still be arriving."""
        oldest = self._clock.now_millis() / 1000 - 2 * limits.REPOSITORY_SECONDS_MAX
        with suppress(FileNotFoundError):
            for entry in os.scandir(self._staging):
                with suppress(FileNotFoundError):
                    if entry.stat(follow_symlinks=False).st_mtime <= oldest:
                        shutil.rmtree(entry.path, ignore_errors=True)


class _Git:
    def __init__(self, processes: ProcessRunner, variables: Mapping[str, str]) -> None:
        self._processes = processes
        self._environment = project.git_environment(variables) | {
            "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
            "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
            "SSH_ASKPASS_REQUIRE": "never",
        }

    async def run(self, *arguments: str, at: str) -> bytes:
        """What git says. Raises FetchError with its complaint when it fails."""
        try:
            result = await self._processes.run(
                (*_ALWAYS, *arguments),
                directory=at,
                environment=self._environment,
                timeout_seconds=limits.REPOSITORY_SECONDS_MAX,
                output_bytes_max=limits.GIT_FILE_BYTES_MAX,
            )
        except FileNotFoundError as error:
            raise FetchError("git is not installed") from error
        if result.exit_code != 0:
            said = result.output.decode(errors="replace").strip()
            raise FetchError(said.splitlines()[-1] if said else "git failed without a word")
        return result.output


def _put_in_place(copy: str, directory: str, aside: str) -> None:
    os.makedirs(os.path.dirname(directory), exist_ok=True)
    with suppress(FileNotFoundError):
        os.rename(directory, aside)
    # Where another process was quicker, its copy is as good.
    atomic.put_in_place(copy, directory)


def _report(source: GitReference, reason: str) -> None:
    shown = "".join(char if char.isprintable() else "?" for char in reason)
    shown = shown[: limits.REPOSITORY_REASON_CHARS_MAX]
    logger.warning("repository %s stays as it is: %s", source.repository, shown)
