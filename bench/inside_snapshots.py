"""Measures the cost of recording file changes: `python -m bench inside snapshots`.

The budget: a step that changes nothing starts no process and costs at most 5 ms in a project of
10,000 files. A command costs two additional scans of the tree.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.inside import measure
from perdure.runtime.files import step_journal
from perdure.schema.ids import MessageID
from tests.contract.runtime.files.snapshot_bench import SnapshotBench, snapshot_bench

FILES = 10_000
FOLDER_FILES = 100
ROUNDS = 50


@measure
async def snapshots() -> dict[str, object]:
    """CPU and wall time of the journal of a step, in a project of 10,000 files."""
    with tempfile.TemporaryDirectory() as directory:
        async with snapshot_bench(Path(directory)) as bench:
            furnish(bench.root)
            first = await timed(lambda: command(bench), rounds=1)
            return {
                "files": FILES,
                "step without a change": await timed(lambda: quiet(bench)),
                "step that writes a file": await timed(lambda: written(bench)),
                "first command": first,
                "command that changes nothing": await timed(lambda: command(bench), rounds=10),
            }


def furnish(root: Path) -> None:
    for number in range(FILES):
        folder = root / f"folder{number // FOLDER_FILES}"
        folder.mkdir(exist_ok=True)
        (folder / f"file{number}.py").write_text(f"value = {number}\n" * 50)


async def quiet(bench: SnapshotBench) -> None:
    message = MessageID("msg_quiet")
    step = await step_journal.begin(
        bench.snapshots, bench.session, message, directory=str(bench.root)
    )
    assert step.files == ()


async def written(bench: SnapshotBench) -> None:
    step = await bench.step()
    await bench.write(step, "folder0/file0.py", f"{bench.steps}\n".encode())


async def command(bench: SnapshotBench) -> None:
    await bench.command(await bench.step(), lambda: None)


async def timed(work: Callable[[], Awaitable[None]], *, rounds: int = ROUNDS) -> str:
    cpu: list[float] = []
    wall: list[float] = []
    for _ in range(rounds):
        began, used = time.perf_counter(), time.process_time()
        await work()
        wall.append(time.perf_counter() - began)
        cpu.append(time.process_time() - used)
    return f"{statistics.median(cpu) * 1e3:.2f} ms CPU, {statistics.median(wall) * 1e3:.2f} ms"
