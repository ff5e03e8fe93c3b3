"""Which processes share a data directory, by the locks that they hold."""

import os
import signal
import stat
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.host.process_locks import ProcessLocks, SingleProcess
from tests.fixtures import child, end, line

WRITER = "tests.contract.store.writer"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "processes"


def test_a_process_knows_itself_and_is_alone_at_first(folder: Path) -> None:
    with ProcessLocks(str(folder), "me") as locks:
        assert locks.me == "me"
        assert locks.alive("me")
        assert not locks.others()
        assert not locks.alive("never-was")
    assert list(folder.iterdir()) == []


def test_the_folder_and_its_locks_are_private(folder: Path) -> None:
    with ProcessLocks(str(folder), "me"):
        (lock,) = folder.iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(lock.stat().st_mode) == 0o600


async def test_another_process_is_seen_while_it_lives_and_gone_when_it_ends(
    tmp_path: Path, folder: Path
) -> None:
    with ProcessLocks(str(folder), "me") as locks:
        process = await child(WRITER, str(tmp_path), "other", "append")
        assert await line(process) == "ready"
        assert locks.alive("other")
        assert locks.others()
        assert await end(process) == 0
        assert not locks.alive("other")
        assert not locks.others()


async def test_no_process_counts_as_dead_while_that_cannot_be_seen(
    tmp_path: Path, folder: Path
) -> None:
    """The data directory is moved away, or no file can be opened any more."""
    aside = tmp_path / "aside"
    with ProcessLocks(str(folder), "me") as locks:
        process = await child(WRITER, str(tmp_path), "other", "append")
        assert await line(process) == "ready"
        folder.rename(aside)
        assert locks.alive("other")
        with pytest.raises(FileNotFoundError):
            locks.others()
        aside.rename(folder)
        (folder / "loop.lock").symlink_to("loop.lock")
        assert locks.alive("loop")
        assert locks.others() > {"loop"}
        (folder / "loop.lock").unlink()
        assert await end(process) == 0
        assert not locks.others()


async def test_a_killed_process_is_gone_at_once_and_its_lock_is_cleared_away(
    tmp_path: Path, folder: Path
) -> None:
    with ProcessLocks(str(folder), "me") as locks:
        process = await child(WRITER, str(tmp_path), "other", "append")
        assert await line(process) == "ready"
        process.kill()
        assert await process.wait() == -signal.SIGKILL
        assert not locks.others()
        assert not locks.alive("other")
        assert [path.name for path in folder.iterdir()] == ["me.lock"]


async def test_two_that_look_at_a_dead_process_at_once_agree(folder: Path) -> None:
    with ProcessLocks(str(folder), "a") as a, ProcessLocks(str(folder), "b") as b:
        (folder / "dead.lock").touch()
        assert [a.alive("dead"), b.alive("dead")] == [False, False]
        assert a.alive("b")
        assert b.alive("a")


def test_looking_does_not_take_anybody_for_dead(folder: Path) -> None:
    with ProcessLocks(str(folder), "a") as a, ProcessLocks(str(folder), "b") as b:
        for _ in range(100):
            assert a.others()
            assert b.others()


def test_a_name_never_leads_out_of_the_folder(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.lock"
    outside.touch()
    with ProcessLocks(str(folder), "me") as locks:
        for name in ("../outside", "", "/etc/passwd"):
            with pytest.raises(AssertionError):
                locks.alive(name)
    assert outside.exists()


def test_a_lock_file_of_a_process_that_is_gone_does_not_outlive_a_look(folder: Path) -> None:
    os.makedirs(folder)
    for number in range(20):
        (folder / f"old{number}.lock").touch()
    with ProcessLocks(str(folder), "me") as locks:
        assert not locks.others()
        assert [path.name for path in folder.iterdir()] == ["me.lock"]


def test_a_store_that_nobody_else_can_see_has_no_neighbours() -> None:
    alone = SingleProcess()
    assert alone.alive(alone.me)
    assert not alone.alive("other")
    assert not alone.others()


def beats(mine: ProcessLocks, times: int, *others: ProcessLocks) -> None:
    for _ in range(times):
        for other in others:
            other.beat()
        mine.beat()


def test_a_process_that_lives_and_does_not_beat_is_named_until_it_does(folder: Path) -> None:
    with ProcessLocks(str(folder), "me") as mine, ProcessLocks(str(folder), "other") as other:
        beats(mine, limits.BEATS_MISSED_MAX * 3, other)
        assert mine.silent() == {}
        beats(mine, limits.BEATS_MISSED_MAX - 1)
        assert mine.silent() == {}
        beats(mine, 1)
        assert mine.silent() == {"other": f"process {os.getpid()}"}
        # It is not named for one moment longer, even before this process looks again.
        other.beat()
        assert mine.silent() == {}


def test_a_process_that_was_itself_stopped_takes_no_other_for_silent(folder: Path) -> None:
    with ProcessLocks(str(folder), "me") as mine, ProcessLocks(str(folder), "other") as other:
        beats(mine, 2, other)
        # However long that lasted, it has looked only once since.
        beats(mine, 1)
        assert mine.silent() == {}


def test_a_silent_process_that_dies_is_dead_and_not_silent(folder: Path) -> None:
    with ProcessLocks(str(folder), "me") as mine:
        with ProcessLocks(str(folder), "other"):
            beats(mine, limits.BEATS_MISSED_MAX + 1)
            assert set(mine.silent()) == {"other"}
        assert mine.silent() == {}


def test_a_lock_without_a_number_is_named_by_its_own_name(folder: Path) -> None:
    with ProcessLocks(str(folder), "me") as mine, ProcessLocks(str(folder), "other"):
        (folder / "other.lock").write_text("")
        beats(mine, limits.BEATS_MISSED_MAX + 1)
        assert mine.silent() == {"other": "process other"}
