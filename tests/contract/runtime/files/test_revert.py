"""Moving files back and forth on a real disk: whole, or not at all."""

import asyncio
import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.host.files import confined
from perdure.host.files.content_store import ContentLostError
from perdure.host.files.restorable import RestorableFiles
from perdure.runtime.files.revert import FileReverts
from perdure.runtime.files.snapshots import SnapshotStore
from perdure.schema.errors import RevertConflictError
from perdure.schema.ids import SessionID
from tests.contract.runtime.files.snapshot_bench import Alone, snapshot_bench


def filled(root: Path, count: int) -> None:
    for number in range(count):
        folder = root / f"d{number // 100}"
        folder.mkdir(exist_ok=True)
        (folder / f"f{number}.txt").write_text(f"{number}\n")


def spoil(root: Path) -> None:
    for path in root.rglob("*.txt"):
        path.write_text("spoilt\n")


def refusing(name: str) -> confined.OpenDirectory:
    """A walk that reaches every directory but one, as if that were read-only."""
    walk = confined.choose_opener()

    def walked(root: str, names: Sequence[str]) -> int:
        if name in names:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return walk(root, names)

    return walked


async def test_when_one_file_cannot_be_written_all_stay_as_they_are(tmp_path: Path) -> None:
    async with snapshot_bench(tmp_path) as bench:
        step = await bench.step()
        for name in ("a", "b/closed", "c"):
            await bench.write(step, name, name.encode())
        plan = await bench.plan(0)
        contents = bench.snapshots.store.contents
        bench.snapshots.store = SnapshotStore(
            contents, RestorableFiles(contents, open_directory=refusing("b"))
        )
        files = FileReverts(bench.snapshots, Alone())
        with pytest.raises(RevertConflictError, match=r"b/closed cannot be restored.*denied"):
            async with files.apply_plan(bench.session, plan):
                pytest.fail("the scope was entered")
        assert {name: (bench.root / name).exists() for name in ("a", "b/closed", "c")} == {
            "a": True,
            "b/closed": True,
            "c": True,
        }
        # It is forgotten, too: nothing is staged, and nothing is on its way.
        assert (await bench.plan(None)).moves == ()
        assert not list(bench.root.rglob("*.tmp"))


async def test_a_file_that_changes_at_the_last_moment_stays_and_so_do_the_others(
    tmp_path: Path,
) -> None:
    async with snapshot_bench(tmp_path) as bench:
        step = await bench.step()
        for name in ("a", "b"):
            await bench.write(step, name, b"session")
        plan = await bench.plan(0)
        (bench.root / "b").write_bytes(b"person")
        with pytest.raises(RevertConflictError, match="being changed"):
            async with bench.files.apply_plan(bench.session, plan):
                pytest.fail("the scope was entered")
        assert [(bench.root / name).read_bytes() for name in ("a", "b")] == [b"session", b"person"]


async def test_a_content_that_is_lost_is_an_error_and_never_other_bytes(tmp_path: Path) -> None:
    async with snapshot_bench(tmp_path) as bench:
        (bench.root / "a").write_bytes(b"before")
        await bench.write(await bench.step(), "a", b"after")
        contents = Path(bench.snapshots.store.contents.directory)
        files = [path for path in contents.rglob("*") if path.is_file()]
        (kept,) = [path for path in files if path.read_bytes() == b"before"]
        kept.write_bytes(b"BEFORE")
        plan = await bench.plan(0)
        with pytest.raises(RevertConflictError, match="damaged"):
            async with bench.files.apply_plan(bench.session, plan):
                pytest.fail("the scope was entered")
        assert (bench.root / "a").read_bytes() == b"after"
        with pytest.raises(ContentLostError):
            bench.snapshots.store.contents.read("0" * 40)


async def test_a_change_that_was_not_made_leaves_no_trace(tmp_path: Path) -> None:
    async with snapshot_bench(tmp_path) as bench:
        step = await bench.step()
        await bench.write(step, "a", b"one")
        with pytest.raises(OSError, match="full"):
            async with step.changing(str(bench.root), str(bench.root / "a"), b"two"):
                raise OSError(errno.ENOSPC, "full")
        again = await bench.step()
        assert (step.end, step.files) == (again.start, ("a",))
        await bench.stage(0)
        assert not (bench.root / "a").exists()


async def test_commands_side_by_side_are_one_look_and_files_named_meanwhile_count_once(
    tmp_path: Path,
) -> None:
    async with snapshot_bench(tmp_path) as bench:
        step = await bench.step()

        async def command(name: str) -> None:
            await bench.command(step, lambda: (bench.root / name).write_text(name))

        await asyncio.gather(
            command("one"), bench.write(step, "named", b"n"), command("two"), command("three")
        )
        assert step.files == ("named", "one", "three", "two")
        plan = await bench.stage(0)
        assert (len(plan.moves), plan.conflicts) == (4, ())
        assert list(bench.root.iterdir()) == []


async def test_when_commands_of_two_sessions_overlap_nobody_is_given_the_changes(
    tmp_path: Path,
) -> None:
    other = SessionID("ses_other")
    async with snapshot_bench(tmp_path) as bench:
        ours, theirs = await bench.step(), await bench.step(other)
        async with ours.watching():
            await bench.command(theirs, lambda: (bench.root / "whose").write_text("?"))
        for session in (bench.session, other):
            plan = await bench.stage(0, session)
            assert (plan.moves, len(plan.conflicts)) == ((), 1)
        assert (bench.root / "whose").exists()


async def test_a_directory_with_too_many_files_is_not_watched_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with snapshot_bench(tmp_path) as bench:
        filled(bench.root, 300)
        bench.snapshots = type(bench.snapshots)(
            str(tmp_path / "data"), bench.snapshots.database, files_max=200
        )
        step = await bench.step()
        await bench.command(step, lambda: (bench.root / "a").write_text("x"))
        assert step.files == ()
    assert "more than 200 files" in caplog.text


@pytest.mark.parametrize("count", [int(os.environ.get("PERDURE_FILES", "300"))])
async def test_a_command_that_touches_every_file_is_taken_back_whole(
    tmp_path: Path, count: int
) -> None:
    async with snapshot_bench(tmp_path) as bench:
        filled(bench.root, count)
        step = await bench.step()
        await bench.command(step, lambda: spoil(bench.root))
        assert len(step.files) == count
        await bench.stage(0)
        assert all(path.read_text() == f"{path.stem[1:]}\n" for path in bench.root.rglob("*.txt"))


async def test_contents_nobody_needs_are_swept_and_the_others_kept(tmp_path: Path) -> None:
    async with snapshot_bench(tmp_path) as bench:
        (bench.root / "kept").write_bytes(b"needed")
        (bench.root / "other").write_bytes(b"only looked at")
        step = await bench.step()
        await bench.command(step, lambda: (bench.root / "kept").write_bytes(b"new"))
        contents = Path(bench.snapshots.store.contents.directory)
        old = limits.SNAPSHOT_KEPT_SECONDS + 60
        young = bench.snapshots.store.contents.keep(b"just kept")
        for path in contents.rglob("*/*"):
            if path.name != young[2:]:
                stamp = path.stat().st_mtime - old
                os.utime(path, (stamp, stamp))
        await bench.snapshots.sweep()
        left = {path.read_bytes() for path in contents.rglob("*/*")}
        assert left == {b"needed", b"new", b"just kept"}
        await bench.stage(0)
        assert (bench.root / "kept").read_bytes() == b"needed"
