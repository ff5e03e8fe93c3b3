"""A process that is killed while a revert moves files leaves none of them halfway.

The child is a fork with its own database connection. It kills itself with SIGKILL at the n-th of
its moments: before and after each file is moved, and after the end is durable.
"""

import asyncio
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import pytest

from perdure.core.files.revert import Move
from perdure.host.files.restorable import RestorableFiles
from perdure.runtime.files.revert import FileReverts
from perdure.runtime.files.snapshots import SnapshotStore
from tests.contract.runtime.files.snapshot_bench import Alone, SnapshotBench, snapshot_bench
from tests.figures import Figure

NAMES: Final = ("changed", "created", "deep/removed")
Verb = Literal["stage", "restage", "clear"]
MOMENTS: Final = 2 * len(NAMES) + 1
"""Around each file, and one after the last commit."""


@dataclass
class Countdown:
    left: int

    def tick(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class DyingFiles(RestorableFiles):
    """Dies before or after it has moved a file."""

    countdown: Countdown

    def put(self, move: Move) -> None:
        self.countdown.tick()
        super().put(move)
        self.countdown.tick()


@pytest.mark.parametrize("verb", ["stage", "restage", "clear"])
def test_files_are_all_where_they_were_or_all_where_they_were_to_go(
    tmp_path: Path, verb: Verb, figure: Figure
) -> None:
    for moment in range(1, MOMENTS + 1):
        directory = tmp_path / str(moment)
        directory.mkdir()
        expected = asyncio.run(_prepared(directory, verb))
        _killed(directory, verb, moment)
        found = asyncio.run(_restarted(directory))
        told = moment == MOMENTS
        assert found == expected[1 if told else 0], moment
        figure("crash points of a revert", 1)


async def _prepared(directory: Path, verb: Verb) -> tuple[dict[str, str], dict[str, str]]:
    """A Session with two steps of work; its files before the verb, and after it."""
    async with snapshot_bench(directory) as bench:
        (bench.root / "deep").mkdir()
        for name in ("changed", "deep/removed"):
            (bench.root / name).write_text("at first")
        first = await bench.step()
        await bench.write(first, "changed", b"one")
        await bench.write(first, "created", b"one")
        await bench.write(first, "deep/removed", None)
        second = await bench.step()
        await bench.write(second, "changed", b"two")
        await bench.write(second, "created", b"two")
        await bench.write(second, "deep/removed", b"two")
        worked, between = _tree(bench), {"changed": "one", "created": "one"}
        origin = {"changed": "at first", "deep/removed": "at first"}
        if verb == "stage":
            return worked, origin
        await bench.stage(1)
        assert _tree(bench) == between
        return between, origin if verb == "restage" else worked


def _killed(directory: Path, verb: Verb, moment: int) -> None:
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(_dying(directory, verb, Countdown(moment)))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, (verb, moment)


async def _dying(directory: Path, verb: Verb, countdown: Countdown) -> None:
    processes = Alone(me="prc_dying")
    async with snapshot_bench(directory, processes=processes) as bench:
        contents = bench.snapshots.store.contents
        files = DyingFiles(contents)
        files.countdown = countdown
        bench.snapshots.store = SnapshotStore(contents, files)
        bench.files = FileReverts(bench.snapshots, processes)
        await (bench.clear() if verb == "clear" else bench.stage(0))
        countdown.tick()


async def _restarted(directory: Path) -> dict[str, str]:
    async with snapshot_bench(directory) as bench:
        await bench.files.restore_interrupted()
        found = _tree(bench)
        # What was taken back once is not taken back again.
        await bench.files.restore_interrupted()
        assert _tree(bench) == found
        return found


def _tree(bench: SnapshotBench) -> dict[str, str]:
    paths = [bench.root / name for name in NAMES]
    return {str(p.relative_to(bench.root)): p.read_text() for p in paths if p.exists()}
