"""Moving files back and forth on a real disk: whole, or not at all."""

import asyncio
import errno
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import pytest

from perdure.core import limits
from perdure.host.files import confined
from perdure.host.files.content_store import ContentLostError
from perdure.host.files.restorable import FoundChangedError, RestorableFiles
from perdure.runtime.files.revert import FileReverts
from perdure.runtime.files.snapshots import SnapshotStore
from perdure.schema.errors import RevertConflictError
from perdure.schema.ids import SessionID
from tests.contract.runtime.files.snapshot_bench import Alone, snapshot_bench


@dataclass
class Both:
    """Two processes of one data directory."""

    dead: set[str] = field(default_factory=set[str])


@dataclass
class Member(Alone):
    """One of them."""

    both: Both = field(default_factory=Both)

    def alive(self, process: str) -> bool:
        return process in {"prc_a", "prc_b"} - self.both.dead


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


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


@pytest.mark.parametrize("first", ["ours", "theirs"])
async def test_it_makes_no_difference_that_two_processes_run_these_commands(
    tmp_path: Path, first: str
) -> None:
    """The line of the other process was lost: each took the whole change for its own command's."""
    both = Both()
    async with (
        snapshot_bench(tmp_path, processes=Member("prc_a", both)) as bench,
        snapshot_bench(tmp_path, processes=Member("prc_b", both)) as elsewhere,
    ):
        lines = bench.root / "lines"
        lines.write_text("before\n")
        ours, theirs = await bench.step(), await elsewhere.step(SessionID("ses_other"))
        early, late = (ours, theirs) if first == "ours" else (theirs, ours)
        async with early.watching():
            append(lines, "one\n")
            async with late.watching():
                append(lines, "two\n")
            append(lines, "three\n")
        for other, session in ((bench, bench.session), (elsewhere, SessionID("ses_other"))):
            plan = await other.stage(0, session)
            assert (plan.moves, len(plan.conflicts)) == ((), 1)
        assert lines.read_text() == "before\none\ntwo\nthree\n"
        assert os.listdir(tmp_path / "data" / "watches") == []


async def test_what_file_tools_and_reverts_of_another_process_write_is_not_the_commands(
    tmp_path: Path,
) -> None:
    both, other = Both(), SessionID("ses_other")
    async with (
        snapshot_bench(tmp_path, processes=Member("prc_a", both)) as bench,
        snapshot_bench(tmp_path, processes=Member("prc_b", both)) as elsewhere,
    ):
        (bench.root / "reverted").write_text("before")
        before = await elsewhere.step(other)
        await elsewhere.write(before, "reverted", b"after")
        ours, theirs = await bench.step(), await elsewhere.step(other)
        async with ours.watching():
            await elsewhere.write(theirs, "theirs", b"x")
            await elsewhere.stage(0, other)
            (bench.root / "ours").write_text("x")
        assert ours.files == ("ours",)
        assert (bench.root / "reverted").read_text() == "before"


async def test_the_watch_of_a_killed_process_is_no_longer_in_the_way(tmp_path: Path) -> None:
    both, other = Both(), SessionID("ses_other")
    async with (
        snapshot_bench(tmp_path, processes=Member("prc_a", both)) as bench,
        snapshot_bench(tmp_path, processes=Member("prc_b", both)) as elsewhere,
    ):
        theirs = await elsewhere.step(other)
        async with theirs.watching():
            both.dead.add("prc_b")
            step = await bench.step()
            await bench.command(step, lambda: (bench.root / "ours").write_text("x"))
        plan = await bench.stage(0)
        assert (len(plan.moves), plan.conflicts) == (1, ())


async def test_a_watch_whose_mark_is_lost_claims_no_change(tmp_path: Path) -> None:
    async with snapshot_bench(tmp_path) as bench:
        step = await bench.step()
        async with step.watching():
            (mark,) = (tmp_path / "data" / "watches").iterdir()
            mark.unlink()
            (bench.root / "whose").write_text("?")
        plan = await bench.stage(0)
        assert (plan.moves, len(plan.conflicts)) == ((), 1)


async def test_what_is_appended_at_the_moment_of_the_replacement_is_not_lost(
    tmp_path: Path,
) -> None:
    async with snapshot_bench(tmp_path) as bench:
        path = bench.root / "log"
        path.write_text("before\n")
        await bench.write(await bench.step(), "log", b"session\n")
        plan = await bench.plan(0)
        appended: list[str] = []

        def on_call(frame: FrameType, event: str, called: object) -> None:
            replaces = event == "c_call" and called is os.replace
            if replaces and str(frame.f_locals.get("self")).find("log") > 0 and not appended:
                appended.append("late\n")
                append(path, "late\n")

        (move,) = plan.moves
        sys.setprofile(on_call)
        try:
            with pytest.raises(FoundChangedError):
                bench.snapshots.store.files.put(move)
        finally:
            sys.setprofile(None)
        assert appended == ["late\n"]
        assert path.read_text() == "session\nlate\n"
        assert [each.name for each in bench.root.iterdir()] == ["log"]


async def test_a_directory_with_too_many_files_is_not_watched_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with snapshot_bench(tmp_path) as bench:
        filled(bench.root, 300)
        bench.snapshots = type(bench.snapshots)(
            str(tmp_path / "data"), bench.snapshots.database, Alone(), files_max=200
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
