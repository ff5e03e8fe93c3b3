"""Repositories as references: fetched from a real git server, beside everything else."""

import asyncio
import logging
import os
import socket
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import UNSET

from perdure.core import limits
from perdure.core.settings import reference
from perdure.location.project.repositories import Repositories
from perdure.schema.settings.reference import GitReference
from perdure.testing import ManualClock, SeededIds
from tests.contract.location.opened_location import LocationFolders
from tests.requirements import requirement

PATIENCE_SECONDS = 20


@asynccontextmanager
async def git_server(folder: Path) -> AsyncGenerator[str]:
    """`git daemon` over the repositories in `folder`; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    daemon = await asyncio.create_subprocess_exec(
        *("git", "daemon", "--verbose", "--listen=127.0.0.1", f"--port={port}", "--reuseaddr"),
        *("--export-all", f"--base-path={folder}"),
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert daemon.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert b"Ready" in await daemon.stderr.readline()
        yield f"git://127.0.0.1:{port}"
    finally:
        os.killpg(daemon.pid, 15)
        await daemon.communicate()


class Shelf:
    """Repositories whose refreshes run when the test says so."""

    def __init__(self, folders: LocationFolders) -> None:
        self.clock = ManualClock()
        self.root = Path(folders.environment.data_dir) / "repos"
        self._place = folders
        self.repositories = self.another()

    def another(self) -> Repositories:
        """As another process would have it."""
        return self._place.repositories(self.clock, SeededIds())

    def look(self, source: GitReference) -> Path | None:
        found = self.repositories.find_copy(source)
        return None if found is None else Path(found)

    async def refreshed(self) -> int:
        """Run what was started; how much that was."""
        started = list(self._place.background)
        self._place.background.clear()
        await asyncio.gather(*started)
        return len(started)

    def later(self) -> None:
        self.clock.advance(limits.REPOSITORY_REFRESH_SECONDS)


@pytest.fixture
def shelf(folders: LocationFolders) -> Shelf:
    return Shelf(folders)


@pytest.fixture
def origin(folders: LocationFolders) -> Path:
    """A repository with one file, ready to be served."""
    at = folders.root / "served" / "ada" / "notes"
    at.mkdir(parents=True)
    folders.git("init", at=at)
    commit(folders, at, "first")
    return at


def commit(folders: LocationFolders, at: Path, text: str) -> None:
    folders.write(at / "notes.txt", text)
    folders.git("add", "-A", at=at)
    folders.git("commit", "-m", text, at=at)


@requirement("S171")
async def test_a_copy_arrives_and_follows_its_origin(
    folders: LocationFolders, shelf: Shelf, origin: Path
) -> None:
    async with git_server(folders.root / "served") as url:
        source = GitReference(repository=f"{url}/ada/notes")
        assert shelf.look(source) is None
        assert await shelf.refreshed() == 1
        copy = shelf.look(source)
        assert copy is not None
        assert (copy / "notes.txt").read_text() == "first"
        commit(folders, origin, "second")
        # Not yet: it was looked for a moment ago.
        assert await shelf.refreshed() == 0
        shelf.later()
        assert shelf.look(source) == copy
        assert await shelf.refreshed() == 1
        assert (copy / "notes.txt").read_text() == "second"
        assert list((shelf.root / ".staging").iterdir()) == []


async def test_an_unchanged_repository_is_not_fetched_again(
    folders: LocationFolders, shelf: Shelf, origin: Path
) -> None:
    async with git_server(folders.root / "served") as url:
        source = GitReference(repository=f"{url}/ada/notes")
        shelf.look(source)
        await shelf.refreshed()
        copy = shelf.look(source)
        assert copy is not None
        (copy / "seen.txt").write_text("still here")
        shelf.later()
        shelf.look(source)
        await shelf.refreshed()
        assert (copy / "seen.txt").exists()


async def test_a_branch_has_a_copy_of_its_own(
    folders: LocationFolders, shelf: Shelf, origin: Path
) -> None:
    folders.git("checkout", "-b", "next/one", at=origin)
    commit(folders, origin, "on the branch")
    folders.git("checkout", "main", at=origin)
    async with git_server(folders.root / "served") as url:
        sources = [
            GitReference(repository=f"{url}/ada/notes", branch=branch)
            for branch in (UNSET, "next/one")
        ]
        for source in sources:
            shelf.look(source)
        await shelf.refreshed()
        copies = [shelf.look(source) for source in sources]
    assert [(copy / "notes.txt").read_text() for copy in copies if copy] == [
        "first",
        "on the branch",
    ]


async def test_what_cannot_be_fetched_is_reported_and_the_copy_stays(
    folders: LocationFolders, shelf: Shelf, origin: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with git_server(folders.root / "served") as url:
        source = GitReference(repository=f"{url}/ada/notes")
        missing = GitReference(repository=f"{url}/ada/nothing")
        unborn = GitReference(repository=f"{url}/ada/notes", branch="no-such")
        for wanted in (source, missing, unborn):
            shelf.look(wanted)
        with caplog.at_level(logging.WARNING, logger="perdure"):
            await shelf.refreshed()
        assert [shelf.look(wanted) is None for wanted in (missing, unborn)] == [True, True]
        assert sorted(record.getMessage().split()[1] for record in caplog.records) == sorted(
            [missing.repository, unborn.repository]
        )
    caplog.clear()
    shelf.later()
    copy = shelf.look(source)
    with caplog.at_level(logging.WARNING, logger="perdure"):
        await shelf.refreshed()
    assert copy is not None
    assert (copy / "notes.txt").read_text() == "first"
    assert "was not refreshed" in caplog.text


async def test_nothing_of_a_repository_is_run_or_followed(
    folders: LocationFolders, shelf: Shelf, origin: Path
) -> None:
    (origin / "link").symlink_to("/etc")
    folders.write(origin / ".gitmodules", '[submodule "x"]\n\tpath = x\n\turl = file:///\n')
    commit(folders, origin, "with a link")
    async with git_server(folders.root / "served") as url:
        source = GitReference(repository=f"{url}/ada/notes")
        shelf.look(source)
        await shelf.refreshed()
        copy = shelf.look(source)
    assert copy is not None
    assert not (copy / "link").is_symlink()
    assert (copy / "link").read_text() == "/etc"
    assert list((copy / ".git").glob("hooks/*")) == []


@pytest.mark.parametrize("address", ["file:///{}/ada/notes", "ext::sh -c touch%20{}/ran"])
async def test_only_servers_are_asked(
    address: str,
    folders: LocationFolders,
    shelf: Shelf,
    origin: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    served = folders.root / "served"
    source = GitReference(repository=address.format(served))
    try:
        shelf.look(source)
    except reference.ReferenceEntryError:
        return
    with caplog.at_level(logging.WARNING, logger="perdure"):
        await shelf.refreshed()
    assert shelf.look(source) is None
    assert "not allowed" in caplog.text


async def test_two_processes_fetch_the_same_repository(
    folders: LocationFolders, shelf: Shelf, origin: Path
) -> None:
    async with git_server(folders.root / "served") as url:
        source = GitReference(repository=f"{url}/ada/notes")
        other = shelf.another()
        shelf.look(source)
        other.find_copy(source)
        assert await shelf.refreshed() == 2
        copy = shelf.look(source)
    assert copy is not None
    assert (copy / "notes.txt").read_text() == "first"
    assert other.find_copy(source) == str(copy)


async def test_what_a_dead_process_left_is_swept(
    folders: LocationFolders, shelf: Shelf, origin: Path
) -> None:
    left = shelf.root / ".staging" / "rep_left"
    left.mkdir(parents=True)
    os.utime(left, (0, 0))
    async with git_server(folders.root / "served") as url:
        shelf.look(GitReference(repository=f"{url}/ada/notes"))
        await shelf.refreshed()
    assert not left.exists()


async def test_without_git_it_is_said(
    folders: LocationFolders, shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    folders.variables["PATH"] = str(folders.home)
    shelf.another().find_copy(GitReference(repository="ada/notes"))
    with caplog.at_level(logging.WARNING, logger="perdure"):
        await shelf.refreshed()
    assert "git is not installed" in caplog.text


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("ada/notes", "https://github.com/ada/notes"),
        ("git.example.org/ada/notes", "https://git.example.org/ada/notes"),
        ("https://git.example.org/a/b.git", "https://git.example.org/a/b.git"),
        ("git@git.example.org:a/b.git", "git@git.example.org:a/b.git"),
    ],
)
def test_git_is_given_an_address(written: str, address: str) -> None:
    assert reference.address(GitReference(repository=written)) == address
