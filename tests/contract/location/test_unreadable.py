"""What cannot be looked at is not gone: no Context Source says so, whichever path fails and how."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from perdure.core.context.system_context import Unchanged, Updated
from tests.contract.location.opened_location import LocationFolders, nobody_may_look
from tests.contract.location.told_session import (
    READ_DIRECTORIES,
    READ_FILES,
    ToldSession,
    extend,
    furnish,
)
from tests.harness.faults import failing_paths
from tests.requirements import requirement
from tests.skipping import cannot_run
from tests.support.unreadable import (
    ANYWHERE,
    FILES,
    PROJECT_FILES,
    Place,
    link_to_itself,
    unreadable,
)


def _faults_of(path: str) -> Mapping[str, Place]:
    return FILES if path.startswith("home/") else PROJECT_FILES


CASES: Final = [
    *((path, name) for path in READ_FILES for name in _faults_of(path)),
    *((path, name) for path in READ_DIRECTORIES for name in ANYWHERE),
]


@requirement("S9", "S44")
@pytest.mark.parametrize(("path", "fault"), CASES)
async def test_nothing_is_told_of_a_path_that_cannot_be_looked_at(
    folders: LocationFolders, path: str, fault: str
) -> None:
    furnish(folders)
    session = ToldSession(folders)
    await session.begin()
    settings = session.settings()
    aside = str(folders.root / "aside")
    with unreadable(str(folders.root / path), FILES[fault], aside=aside):
        restarted = session.restarted()
        assert isinstance(await session.changes(), Unchanged)
        assert isinstance(await restarted.changes(), Unchanged)
        assert session.settings() == settings
    assert isinstance(await session.changes(), Unchanged)
    assert isinstance(await restarted.changes(), Unchanged)


@requirement("S9", "S44")
@pytest.mark.parametrize("path", [*READ_FILES, *READ_DIRECTORIES])
async def test_what_another_process_told_is_not_taken_back_by_one_that_knows_less(
    folders: LocationFolders, path: str
) -> None:
    furnish(folders)
    older = ToldSession(folders)
    await older.begin()
    extend(folders)
    newer = ToldSession(folders)
    await newer.begin()
    older.snapshot = newer.snapshot
    aside = str(folders.root / "aside")
    with unreadable(str(folders.root / path), link_to_itself, aside=aside):
        assert isinstance(await older.changes(), Unchanged)
    assert isinstance(await older.changes(), Unchanged)


@requirement("S9", "S44")
async def test_nothing_is_told_while_another_user_may_look_at_nothing(
    folders: LocationFolders,
) -> None:
    furnish(folders)
    session = ToldSession(folders)
    await session.begin()
    with nobody_may_look(folders.root):
        assert isinstance(await session.changes(), Unchanged)
    assert isinstance(await session.changes(), Unchanged)


@requirement("S44")
async def test_the_same_paths_are_told_when_they_are_seen_to_be_gone(
    folders: LocationFolders,
) -> None:
    """Shows that the faults above hide something that would be told."""
    furnish(folders)
    first = await ToldSession(folders).begin()
    for text in ("Mine.", "Theirs.", "Inner.", "Rule.", "A.", "B.", "Shelf.", "Notes.", "Third."):
        assert text in first.baseline
    assert {"mine", "deep"} <= {skill.name for skill in ToldSession(folders).location.skills.list()}
    for path in (*READ_FILES[5:6], "project/docs/rule.md", "project/tree", "project/.opencode"):
        session = ToldSession(folders)
        await session.begin()
        (folders.root / path).rename(folders.root / "aside")
        assert isinstance(await session.changes(), Updated)
        (folders.root / "aside").rename(folders.root / path)


@requirement("S9", "S44")
def test_nothing_is_told_whatever_error_a_look_ends_with(tmp_path: Path) -> None:
    """In a process of its own, into which a library is loaded that makes system calls fail."""
    compiler = shutil.which("cc")
    if compiler is None:
        cannot_run("there is no C compiler")
    library = tmp_path / "failing_paths.so"
    source = Path(failing_paths.__file__).with_suffix(".c")
    command = [compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    result = subprocess.run(
        [sys.executable, "-m", "tests.contract.location.failing_looks", str(tmp_path / "at")],
        env={**os.environ, "LD_PRELOAD": str(library)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{len(failing_paths.ERRORS)} errors" in result.stdout
    assert {errno.EACCES, errno.EIO, errno.ESTALE, errno.EMFILE} <= failing_paths.ERRORS
